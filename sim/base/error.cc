#include "sim/base/error.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

std::string Located(const Place& place, const std::string& message) {
  std::string text = place.file;
  if (place.line > 0) text += fmt::format(":{}", place.line);
  if (!text.empty()) text += ": ";
  if (!place.pointer.empty()) text += place.pointer + ": ";
  return text + message;
}

// The message made safe to show. What a message quotes is mostly shortened where the message is
// made; where it is not, a file of megabytes would be shown whole, so the middle is left out.
std::string Shown(const std::string& message) {
  constexpr size_t kLongest = 2000;
  constexpr size_t kBegin = 1400;
  constexpr size_t kEnd = 500;
  std::string text = VisibleLines(message);
  if (text.size() <= kLongest) return text;
  const auto is_inside = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80; };
  size_t begin = kBegin;
  while (is_inside(begin)) --begin;
  size_t end = text.size() - kEnd;
  while (end < text.size() && is_inside(end)) ++end;
  return fmt::format("{} ... ({} bytes left out) ... {}", text.substr(0, begin), end - begin,
                     text.substr(end));
}

}  // namespace

Error::Error(const std::string& message) : std::runtime_error(Shown(message)) {}
Error::Error(const Place& place, const std::string& message)
    : std::runtime_error(Shown(Located(place, message))), place_(place) {}

namespace internal {

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost 1.
// Where the lengths alone show that the words are not near (DidYouMean), their difference will do:
// a word may be a file of megabytes.
int EditDistance(const std::string& a, const std::string& b) {
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > a.size() / 3 + 1) return static_cast<int>(difference);
  std::vector<int> before_previous(b.size() + 1);
  std::vector<int> previous(b.size() + 1);
  std::vector<int> current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) current[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_previous, previous);
    std::swap(previous, current);
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before_previous[j - 2] + 1);
    }
  }
  return current[b.size()];
}

void FailCheck(const char* file, int line, const std::string& what) {
  throw InternalError(VisibleLines(fmt::format("{}:{}: check failed: {}", file, line, what)));
}

void FailComparison(const char* file, int line, const char* text, const std::string& a,
                    const std::string& b) {
  FailCheck(file, line, fmt::format("{} ({} against {})", text, a, b));
}

std::string TextOf(double value) { return fmt::format("{}", value); }

}  // namespace internal
}  // namespace rehearse
