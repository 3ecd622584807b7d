// Whether a JSON value is what a table says (sim/base/json_shape.h), by a walk of its own: readers
// are not asked.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_shape.h"

namespace rehearse {

// "" where the value fits; else where it does not, and why.
std::string Mismatch(const JsonShape& shape, const nlohmann::json& value);

}  // namespace rehearse
