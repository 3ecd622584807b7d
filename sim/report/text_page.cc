#include "sim/report/text_page.h"

#include <fmt/format.h>

namespace rehearse {

Inked Pen::operator()(Ink ink, const std::string& text) const {
  static constexpr const char* kCodes[] = {"1", "2", "32", "33", "31", "34"};
  const std::string visible = VisibleText(text);
  if (!color_ || text.empty()) return {visible};
  return {fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(ink)], visible)};
}

std::string Grouped(uint64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string Shortened(const std::string& name, size_t width) {
  if (name.size() <= width) return name;
  const auto continues = [&](size_t at) {
    return at < name.size() && (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80;
  };
  size_t head = (width - 1) / 2;
  size_t tail = name.size() - (width - 1 - head);
  while (head > 0 && continues(head)) --head;
  while (continues(tail)) ++tail;
  return name.substr(0, head) + "…" + name.substr(tail);
}

}  // namespace rehearse
