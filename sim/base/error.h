// The two ways to fail.
//
// Error: the user's mistake. Says where (file, line, JSON pointer), what was found and what was
// expected; main() prints it and exits with 1.
// CHECK: a fault of ours. On in every build, prints both values, and throws InternalError, which
// main() prints and turns into exit code 2.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rehearse {

// Where in the user's input a mistake lies; every part may be empty.
struct Place {
  std::string file;
  int line = 0;         // 1-based, 0 when unknown
  std::string pointer;  // RFC 6901 JSON pointer such as "/cluster/preset"; "" is the whole document
};

// One line: "file:line: /pointer: message", as it may be shown (sim/base/visible_text.h).
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  Error(const Place& place, const std::string& message);

  const Place& place() const { return place_; }

 private:
  Place place_;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// `candidates` is a range of strings. Returns `; did you mean "x"?` for the candidate nearest to
// `word` when it is near enough (edit distance at most a third of the length, at least 1; swapping
// two neighbours is one edit), else "".
template <typename Range>
std::string DidYouMean(const std::string& word, const Range& candidates);

namespace internal {

int EditDistance(const std::string& a, const std::string& b);
[[noreturn]] void FailCheck(const char* file, int line, const std::string& what);

[[noreturn]] void FailComparison(const char* file, int line, const char* text, const std::string& a,
                                 const std::string& b);
std::string TextOf(double value);

// A compared value as text; without fmt, which would be compiled wherever an error is thrown.
template <typename T>
std::string Shown(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return TextOf(value);
  } else {
    return std::string(std::string_view(value));
  }
}

}  // namespace internal

template <typename Range>
std::string DidYouMean(const std::string& word, const Range& candidates) {
  std::string best;
  int best_distance = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  for (const auto& candidate : candidates) {
    const int distance = internal::EditDistance(word, std::string(candidate));
    if (distance < best_distance) {  // the first of equally near ones wins
      best = candidate;
      best_distance = distance;
    }
  }
  return best.empty() ? "" : "; did you mean \"" + best + "\"?";
}

}  // namespace rehearse

// An expression: so gcc sees without optimisation, too, that CHECK(false) ends a function.
#define CHECK(condition) \
  ((condition) ? void() : ::rehearse::internal::FailCheck(__FILE__, __LINE__, #condition))

#define REHEARSE_CHECK_COMPARE(a, op, b)                                          \
  do {                                                                            \
    const auto& check_a = (a);                                                    \
    const auto& check_b = (b);                                                    \
    if (!(check_a op check_b))                                                    \
      ::rehearse::internal::FailComparison(__FILE__, __LINE__, #a " " #op " " #b, \
                                           ::rehearse::internal::Shown(check_a),  \
                                           ::rehearse::internal::Shown(check_b)); \
  } while (false)

#define CHECK_EQ(a, b) REHEARSE_CHECK_COMPARE(a, ==, b)
#define CHECK_NE(a, b) REHEARSE_CHECK_COMPARE(a, !=, b)
#define CHECK_LT(a, b) REHEARSE_CHECK_COMPARE(a, <, b)
#define CHECK_LE(a, b) REHEARSE_CHECK_COMPARE(a, <=, b)
#define CHECK_GT(a, b) REHEARSE_CHECK_COMPARE(a, >, b)
#define CHECK_GE(a, b) REHEARSE_CHECK_COMPARE(a, >=, b)
