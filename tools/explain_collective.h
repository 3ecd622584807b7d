// Why a collective takes what it takes: what was chosen among which, along which rings or trees,
// and which link binds.
#pragma once

#include <string>

#include "collectives/lowering/trial.h"
#include "collectives/lowering/tuning.h"
#include "tools/output_format.h"

namespace rehearse {

// Of the trial's first group. Ends with a newline.
std::string ExplainCollective(const Trial& trial, Bytes bytes, Router& router,
                              ChannelFinder& finder, Tuner& tuner, OutputFormat format);

}  // namespace rehearse
