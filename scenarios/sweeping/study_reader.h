// Reads a study file; scenarios/sweeping/study.h says what it contains.
#pragma once

#include "scenarios/sweeping/study.h"
#include "sim/base/json_reader.h"

namespace rehearse {

// Throws Error (file, line, pointer, found, expected). The scenarios of points are not read here.
Study ReadStudy(const JsonDocument& document);

}  // namespace rehearse
