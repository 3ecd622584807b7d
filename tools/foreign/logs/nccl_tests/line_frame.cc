#include "tools/foreign/logs/nccl_tests/line_frame.h"

#include <algorithm>
#include <iterator>

namespace rehearse {
namespace {

constexpr std::string_view kFrameBlank = " \t\r";
constexpr size_t kLongestFrame = 200;
constexpr size_t kLongestStream = 12;
constexpr int kMostFrames = 6;  // one around the other

bool IsFrameDigit(char c) { return c >= '0' && c <= '9'; }
bool IsFrameName(char c) {
  return IsFrameDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_' || c == '.';
}

std::string_view TrimmedLine(std::string_view text) {
  const size_t begin = text.find_first_not_of(kFrameBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kFrameBlank) - begin + 1);
}

// How long a terminal's sequence is at this place: "ESC[1;32m", also where ESC itself was lost; 0
// if there is none.
size_t SequenceAt(std::string_view text) {
  const bool has_escape = text.starts_with('\x1b');
  size_t at = has_escape ? 1 : 0;
  if (at >= text.size() || text[at] != '[')
    return has_escape ? std::min<size_t>(2, text.size()) : 0;
  ++at;
  while (at < text.size() && (IsFrameDigit(text[at]) || text[at] == ';' || text[at] == '?')) ++at;
  if (at >= text.size()) return 0;
  const char last = text[at];
  const bool is_letter = (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z');
  return (has_escape && is_letter) || last == 'm' ? at + 1 : 0;
}

std::string WithoutColours(std::string_view line) {
  if (line.find('[') == std::string_view::npos && line.find('\x1b') == std::string_view::npos)
    return std::string(line);
  std::string plain;
  for (size_t at = 0; at < line.size();) {
    const size_t length = SequenceAt(line.substr(at));
    if (length == 0) plain += line[at++];
    at += length;
  }
  return plain;
}

// How many letters of the text fit this shape, in which 0 stands for a digit; 0 if it does not fit.
size_t Shaped(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == '0' ? !IsFrameDigit(text[i]) : text[i] != shape[i]) return 0;
  }
  return shape.size();
}

// "2024-05-01T12:34:56.789Z ", "2024/05/01 12:34:56,789 ", "12:34:56 ", "May  1 12:34:56 ".
size_t TimeStamp(std::string_view text) {
  size_t at = std::max(Shaped(text, "0000-00-00"), Shaped(text, "0000/00/00"));
  constexpr std::string_view kMonths[] = {"Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ",
                                          "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec "};
  const bool has_month =
      std::any_of(std::begin(kMonths), std::end(kMonths),
                  [&](std::string_view month) { return text.starts_with(month); });
  if (has_month) at = Shaped(text.substr(4), "00") + Shaped(text.substr(4), " 0") + 4;
  if (at > 0 && at < text.size() && (text[at] == 'T' || text[at] == ' ')) ++at;
  const size_t clock = Shaped(text.substr(std::min(at, text.size())), "00:00:00");
  if (clock == 0) return 0;
  at += clock;
  // Parts of a second, and the zone.
  const std::string_view parts = "0123456789.,+-:Z";
  while (at < text.size() && parts.find(text[at]) != std::string_view::npos) ++at;
  if (at < text.size() && kFrameBlank.find(text[at]) == std::string_view::npos) return 0;
  // Containers add the stream, and whether the line is full: " stdout F".
  const std::string_view stream = text.substr(at);
  const size_t full =
      stream.starts_with(" std") ? stream.find_first_of("FP") : std::string_view::npos;
  if (full < kLongestStream) at += full + 1;
  return at;
}

// "[1,0]<stdout>:", "[pod/launcher/main]", "(worker pid=7)".
size_t Bracketed(std::string_view text) {
  const bool is_round = text.starts_with('(');
  if (!is_round && !text.starts_with('[')) return 0;
  size_t at = text.find(is_round ? ')' : ']');
  if (at == std::string_view::npos || at == 1 || at > kLongestFrame) return 0;
  // Units of a table, "(B)", are no names.
  if (is_round && text.substr(0, at).find('=') == std::string_view::npos) return 0;
  ++at;
  if (text.substr(at).starts_with("<std")) at = std::min(text.find('>', at), text.size() - 1) + 1;
  if (at < text.size() && text[at] == ':') ++at;
  return at;
}

// "0: ", "node01: " or "worker-0  | ", before a comment or a number.
size_t Named(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && at < kLongestFrame && IsFrameName(text[at])) ++at;
  if (at == 0) return 0;
  const bool is_number = std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(at),
                                     [](char c) { return IsFrameDigit(c); });
  if (at + 1 < text.size() && text[at] == ':' && text[at + 1] == ' ') {
    const std::string_view rest = TrimmedLine(text.substr(at + 1));
    const bool is_of_table = !rest.empty() && (rest[0] == '#' || IsFrameDigit(rest[0]));
    return is_number || is_of_table ? at + 1 : 0;
  }
  const size_t bar = text.find_first_not_of(kFrameBlank, at);
  const bool has_bar = bar != std::string_view::npos && bar > at && text[bar] == '|';
  return has_bar && !is_number ? bar + 1 : 0;
}

}  // namespace

std::string WithoutFrame(std::string_view line) {
  const std::string plain = WithoutColours(line);
  std::string_view text = TrimmedLine(plain);
  for (int i = 0; i < kMostFrames; ++i) {
    const size_t frame = std::max({TimeStamp(text), Bracketed(text), Named(text)});
    if (frame == 0) break;
    text = TrimmedLine(text.substr(std::min(frame, text.size())));
  }
  return std::string(text);
}

}  // namespace rehearse
