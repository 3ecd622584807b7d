// What stands in a shell's $((...)): whole numbers, variables, + - * / % and parentheses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace rehearse {

// Nothing where a variable has no number, where anything else stands there, and where 64 bits do
// not do.
std::optional<int64_t> ShellArithmetic(
    std::string_view text,
    const std::function<std::optional<int64_t>(std::string_view variable)>& value_of);

}  // namespace rehearse
