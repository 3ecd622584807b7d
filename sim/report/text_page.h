// What commands print for people: lines, ink, and numbers as a person reads them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace rehearse {

enum class Ink { kBold, kFaint, kGreen, kYellow, kRed, kBlue };

// Paints finished (padded) text, or leaves it as it is.
class Pen {
 public:
  explicit Pen(bool color) : color_(color) {}
  std::string operator()(Ink ink, const std::string& text) const;

 private:
  bool color_;
};

// Text by the line, without blanks at their ends.
class Page {
 public:
  explicit Page(bool color) : pen(color) {}

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    std::string line = fmt::format(format, std::forward<Args>(args)...);
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
// The middle of a long name is the least telling part of it. Cuts bytes, so names that are not
// ASCII and too long may lose a character more.
std::string Shortened(const std::string& name, size_t width);

}  // namespace rehearse
