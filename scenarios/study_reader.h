// Reading a study's file; scenarios/study.h says what it holds.
#pragma once

#include "scenarios/study.h"
#include "sim/json_reader.h"

namespace rehearse {

// Throws Error (file, line, pointer, found, expected). The scenarios of points are not read here.
Study ReadStudy(const JsonDocument& document);

}  // namespace rehearse
