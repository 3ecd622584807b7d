// What boards may draw, according to data sheets.
#pragma once

#include <optional>
#include <string_view>

namespace rehearse {

// Watts of one device (of a die, where a board has two and each is a device); nothing if no data
// sheet says it, or if it gives a range.
std::optional<double> BoardPowerOf(std::string_view device);

}  // namespace rehearse
