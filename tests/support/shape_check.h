// Whether a JSON value is what a table says (sim/base/json_shape.h), by its own walk, without
// asking the readers.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_shape.h"

namespace rehearse {

// "" if the value fits; else where it does not, and why.
std::string Mismatch(const JsonShape& shape, const nlohmann::json& value);

}  // namespace rehearse
