// What boards may draw, by data sheet.
#pragma once

#include <optional>
#include <string_view>

namespace rehearse {

// Watts of one device (of a die, where a board has two and each is a device); nothing where no data
// sheet says it, or says a range.
std::optional<double> BoardPowerOf(std::string_view device);

}  // namespace rehearse
