// A YAML file as the JSON document that a JsonReader reads, each value in the line that it has in
// the file. By yaml-cpp, where it was there when this was built.
//
// One document, keys that are plain texts; aliases are written out. Plain scalars are numbers,
// true, false and null where JSON has them so, and texts otherwise. Limits are those of JSON
// (sim/base/json_document.h), and 8 MiB of what aliases repeat.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_document.h"

namespace rehearse {

bool HasYaml();

// Throws Error with file and line for what is no YAML, and where !HasYaml().
JsonDocument ReadYaml(std::string_view text, const std::string& name);

}  // namespace rehearse
