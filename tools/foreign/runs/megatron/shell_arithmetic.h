// What a shell's $((...)) may contain: whole numbers, variables, + - * / % and parentheses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace rehearse {

// Nothing if a variable is no number, if it contains anything else, or if 64 bits are not enough.
std::optional<int64_t> ShellArithmetic(
    std::string_view text,
    const std::function<std::optional<int64_t>(std::string_view variable)>& value_of);

}  // namespace rehearse
