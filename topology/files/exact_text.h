// Quantities as cluster files and calibrations write them: the shortest text that sim/base/units.h
// reads as exactly this quantity.
#pragma once

#include <string>

#include "sim/base/json_fields.h"
#include "sim/base/quantity.h"

namespace rehearse {

std::string ExactText(BytesPerSecond bandwidth);
std::string ExactText(Seconds duration);
std::string ExactText(Bytes size);
std::string ExactText(FlopsPerSecond rate);

// For rows that are written so.
FieldShape AnExactBandwidth();
FieldShape AnExactDuration();
FieldShape AnExactDurationUpTo(Seconds longest);
FieldShape AnExactSize();
FieldShape AnExactFlopRate();

}  // namespace rehearse
