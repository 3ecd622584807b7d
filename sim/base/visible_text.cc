#include "sim/base/visible_text.h"

#include <cstdint>

namespace rehearse {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: not UTF-8
};

// The character that the text begins with.
Character FirstOf(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t code = first & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool is_longer_than_needed = code < (bytes == 4 ? 0x10000u : bytes == 3 ? 0x800u : 0x80u);
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (is_longer_than_needed || is_surrogate || code > 0x10ffff) return {};
  return {code, bytes};
}

bool IsVisible(uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool ends_a_line = code == 0x2028 || code == 0x2029;
  const bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !is_control && !ends_a_line && !turns && code != 0xfffe && code != 0xffff;
}

void AppendDigits(uint32_t value, int digits, std::string* text) {
  for (int digit = digits - 1; digit >= 0; --digit)
    *text += "0123456789abcdef"[value >> (4 * digit) & 0xf];
}

void AppendEscape(uint32_t code, std::string* text) {
  *text += '\\';
  if (code == '\n' || code == '\t' || code == '\r') {
    *text += code == '\n' ? 'n' : code == '\t' ? 't' : 'r';
  } else if (code < 0x80) {
    *text += 'x';
    AppendDigits(code, 2, text);
  } else {
    *text += 'u';
    AppendDigits(code, 4, text);
  }
}

std::string Visible(std::string_view text, bool keeps_lines) {
  std::string visible;
  visible.reserve(text.size());
  while (!text.empty()) {
    const Character character = FirstOf(text);
    if (character.bytes == 0) {
      visible += "\\x";
      AppendDigits(static_cast<unsigned char>(text[0]), 2, &visible);
      text.remove_prefix(1);
      continue;
    }
    if (IsVisible(character.code) || (keeps_lines && character.code == '\n')) {
      visible += text.substr(0, character.bytes);
    } else {
      AppendEscape(character.code, &visible);
    }
    text.remove_prefix(character.bytes);
  }
  return visible;
}

}  // namespace

std::string VisibleText(std::string_view text) { return Visible(text, false); }
std::string VisibleLines(std::string_view text) { return Visible(text, true); }

}  // namespace rehearse
