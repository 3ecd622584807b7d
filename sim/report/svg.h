// Little helpers to write SVG.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/visible_text.h"

namespace rehearse::svg {

// `&`, `<`, `>` and quotes as XML wants them; what XML forbids is written out.
inline std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : VisibleText(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// A coordinate in pixels, to a hundredth, without zeros at the end.
inline std::string Pixels(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

// About how wide a text is in a sans-serif font of that size.
inline double TextWidth(std::string_view text, double font_size) {
  double letters = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) continue;  // the rest of a UTF-8 character
    letters += std::string_view("iljftrI .,:;|'()[]-").find(c) != std::string_view::npos ? 0.36
               : std::string_view("mwMW").find(c) != std::string_view::npos              ? 0.88
                                                                                         : 0.58;
  }
  return letters * font_size;
}

// Colours that tell series apart.
inline constexpr std::array<const char*, 8> kColors = {"#2f6fb0", "#d1622b", "#3b8f4a", "#8a4fa3",
                                                       "#b08a1e", "#1d8f94", "#b23a5e", "#5b6470"};

inline std::string TextAt(double x, double y, std::string_view text, std::string_view style = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", Pixels(x), Pixels(y),
                     style.empty() ? "" : " ", style, Escape(text));
}

// The beginning of a picture on white; "</svg>" ends it.
inline std::string Begin(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n<rect "
      "width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      Pixels(width), Pixels(height));
}

inline std::string Line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", Pixels(x1), Pixels(y1),
                     Pixels(x2), Pixels(y2), style);
}

// The path of a small diamond.
inline std::string Diamond(double x, double y) {
  constexpr double kReach = 4.5;
  return fmt::format("M{} {}L{} {}L{} {}L{} {}Z", Pixels(x), Pixels(y - kReach), Pixels(x + kReach),
                     Pixels(y), Pixels(x), Pixels(y + kReach), Pixels(x - kReach), Pixels(y));
}

}  // namespace rehearse::svg
