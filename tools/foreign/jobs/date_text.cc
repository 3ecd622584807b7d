#include "tools/foreign/jobs/date_text.h"

#include <charconv>
#include <chrono>

namespace rehearse {
namespace {

constexpr int kFirstYear = 1970;
constexpr int kLastYear = 2069;
constexpr double kHourSeconds = 3600;
constexpr double kMinuteSeconds = 60;
constexpr int kMostZoneHours = 14;

// Reads a text from its beginning; each function says whether it found what it is called after.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : text_(text) {}

  bool Digits(size_t count, int most, int* value) {
    if (text_.size() < count) return false;
    const char* const end = text_.data() + count;
    const auto [next, problem] = std::from_chars(text_.data(), end, *value);
    if (problem != std::errc() || next != end || *value < 0 || *value > most) return false;
    text_.remove_prefix(count);
    return true;
  }
  bool OneOf(std::string_view characters) {
    if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool Word(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  // What is behind the point of "18:41:01.25".
  double Fraction() {
    double fraction = 0;
    double unit = 1;
    while (!text_.empty() && text_.front() >= '0' && text_.front() <= '9') {
      constexpr double kTen = 10;
      unit /= kTen;
      fraction += unit * (text_.front() - '0');
      text_.remove_prefix(1);
    }
    return fraction;
  }
  bool IsAtEnd() const { return text_.empty(); }

 private:
  std::string_view text_;
};

// The zone's seconds before UTC; false where the rest is none.
bool ReadZone(DateReader* at, double* ahead) {
  at->OneOf(" ");
  if (at->Word("Z") || at->Word("UTC")) return at->IsAtEnd();
  if (at->Word("PDT")) {
    *ahead = -7 * kHourSeconds;
    return at->IsAtEnd();
  }
  if (at->Word("PST")) {
    *ahead = -8 * kHourSeconds;
    return at->IsAtEnd();
  }
  const bool is_ahead = at->Word("+");
  int hours = 0;
  int minutes = 0;
  if ((!is_ahead && !at->Word("-")) || !at->Digits(2, kMostZoneHours, &hours)) return false;
  at->OneOf(":");
  if (!at->IsAtEnd() && !at->Digits(2, 59, &minutes)) return false;
  *ahead = (is_ahead ? 1 : -1) * (hours * kHourSeconds + minutes * kMinuteSeconds);
  return at->IsAtEnd();
}

}  // namespace

std::optional<DatedTime> ParseDate(std::string_view text) {
  DateReader at(text);
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  const bool is_date = at.Digits(4, kLastYear, &year) && at.OneOf("-") &&
                       at.Digits(2, 12, &month) && at.OneOf("-") && at.Digits(2, 31, &day) &&
                       at.OneOf(" T") && at.Digits(2, 23, &hour) && at.OneOf(":") &&
                       at.Digits(2, 59, &minute) && at.OneOf(":") && at.Digits(2, 60, &second);
  if (!is_date || year < kFirstYear) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) return std::nullopt;
  const double fraction = at.OneOf(".") ? at.Fraction() : 0;
  DatedTime time;
  constexpr double kDaySeconds = 86400;
  time.seconds = std::chrono::sys_days(date).time_since_epoch().count() * kDaySeconds +
                 hour * kHourSeconds + minute * kMinuteSeconds + second + fraction;
  time.has_zone = !at.IsAtEnd();
  double ahead = 0;
  if (time.has_zone && !ReadZone(&at, &ahead)) return std::nullopt;
  time.seconds -= ahead;
  return time;
}

}  // namespace rehearse
