// What C++20 has and the standard library of emscripten 3.1.6 (libc++ of LLVM 14) lacks, so that
// nothing else has to know of it. Included before everything else, only in that build (live.cmake).
#pragma once

#include <charconv>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>

namespace std {

template <typename To, typename From>
To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From) && is_trivially_copyable_v<To>);
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

inline strong_ordering operator<=>(const string& a, const string& b) { return a.compare(b) <=> 0; }

template <typename T>
strong_ordering operator<=>(const optional<T>& a, const optional<T>& b) {
  if (a && b) return *a <=> *b;
  return a.has_value() <=> b.has_value();
}

// No sign but '-' and no space before the number, as the standard has it.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const auto begins = [](char c) { return c == '-' || c == '.' || (c >= '0' && c <= '9'); };
  if (first == last || !begins(*first)) return {first, errc::invalid_argument};
  size_t most = 0;
  while (first + most < last && (begins(first[most]) || strchr("eE+", first[most]) != nullptr))
    ++most;
  const string text(first, most);
  char* end = nullptr;
  const double read = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  if (read == HUGE_VAL || read == -HUGE_VAL) return {first, errc::result_out_of_range};
  value = read;
  return {first + (end - text.c_str()), errc()};
}

}  // namespace std
