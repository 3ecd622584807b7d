// What commands print for people: lines, ink, and numbers as a person reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "sim/base/visible_text.h"

namespace rehearse {

enum class Ink { kBold, kFaint, kGreen, kYellow, kRed, kBlue };

// Painted text, only for a Page: no other text may hold anything that a terminal obeys.
struct Inked {
  std::string text;
};

// Paints finished (padded) text, or leaves it as it is.
class Pen {
 public:
  explicit Pen(bool color) : color_(color) {}
  Inked operator()(Ink ink, const std::string& text) const;

 private:
  bool color_;
};

// What a page writes for an argument of a line: text made safe to show, all else as it is.
template <typename T>
decltype(auto) OnPage(const T& value) {
  if constexpr (std::is_same_v<T, Inked>) {
    return std::string_view(value.text);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return VisibleText(value);
  } else {
    return value;
  }
}

// Text line by line, without trailing blanks.
class Page {
 public:
  explicit Page(bool color) : pen(color) {}

  template <typename... Args>
  void Line(fmt::format_string<decltype(OnPage(std::declval<const Args&>()))...> format,
            const Args&... args) {
    std::string line = fmt::format(format, OnPage(args)...);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line;
    text += '\n';
  }
  void Gap() { text += '\n'; }

  const Pen pen;
  std::string text;
};

std::string Grouped(uint64_t value);      // "1,234,567"
double Share(double part, double whole);  // 0 of nothing
std::string Percent(double share);        // "12.3 %"
// Leaves out the middle of a long name, its least telling part. Cuts bytes, so long names that are
// not ASCII may lose one character more.
std::string Shortened(const std::string& name, size_t width);

}  // namespace rehearse
