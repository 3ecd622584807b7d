// A TOML file as the JSON object that a JsonReader reads: its values under dotted keys,
// "training.seq_len", each on the line that it has in the file. Needs toml++ at build time.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_document.h"

namespace rehearse {

bool HasToml();

// Throws Error with file and line for what is not TOML, and if !HasToml().
JsonDocument ReadToml(std::string_view text, const std::string& name);

}  // namespace rehearse
