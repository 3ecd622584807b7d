// What a JSON file is, told by its keys, for those who give a command the wrong one.
#pragma once

#include <cstdint>

#include "sim/base/json_reader.h"

namespace rehearse {

enum class FileKind : uint8_t { kScenario, kStudy, kCluster, kCalibration, kJobTrace };

// Throws Error where the root of a document is clearly that of another kind of file, written by
// people or by Rehearse: "found a study, expected a scenario: rehearse sweep plays studies".
// Whether it is one of `wanted` is for its reader to find out.
void RefuseOtherKinds(const JsonReader& root, FileKind wanted);

}  // namespace rehearse
