#include "tools/foreign/jobs/date_text.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace date_text_test {

double SecondsOf(const char* text) {
  const std::optional<DatedTime> time = ParseDate(text);
  EXPECT_TRUE(time) << text;
  return time ? time->seconds : -1;
}

TEST(DateTextTest, SecondsCountFromTheBeginningOf1970) {
  EXPECT_EQ(SecondsOf("1970-01-01 00:00:00"), 0);
  EXPECT_EQ(SecondsOf("1970-01-02 01:02:03"), 86400 + 3723);
  // 1972 was a leap year: 2 * 365 days before it, 31 + 29 in it.
  EXPECT_EQ(SecondsOf("1972-03-01 00:00:00"), (730 + 60) * 86400.0);
  EXPECT_EQ(SecondsOf("1970-01-01T00:00:00.25"), 0.25);
}

TEST(DateTextTest, AZoneIsTakenToUtc) {
  for (const char* text :
       {"1970-01-02 00:00:00Z", "1970-01-02 08:00:00+08:00", "1970-01-02 08:00:00+0800",
        "1970-01-01 17:00:00 PDT", "1970-01-01 16:00:00 PST", "1970-01-01 18:30:00-05:30",
        "1970-01-02 00:00:00 UTC", "1970-01-02T08:00:00.000+08"}) {
    EXPECT_EQ(SecondsOf(text), 86400) << text;
    EXPECT_TRUE(ParseDate(text)->has_zone) << text;
  }
  EXPECT_FALSE(ParseDate("1970-01-02 00:00:00")->has_zone);
}

TEST(DateTextTest, OtherTextsAreNoDates) {
  for (const char* text :
       {"", "x", "2020", "2020-06-09", "2020-6-9 18:41:01", "2020-13-01 00:00:00",
        "2020-02-30 00:00:00", "2020-06-09 24:00:00", "2020-06-09 00:60:00", "2020-06-09 00:00:61",
        "1969-12-31 23:59:59", "2070-01-01 00:00:00", "2020-06-09 18:41:01 CET",
        "2020-06-09 18:41:01+", "2020-06-09 18:41:01+15:00", "2020-06-09 18:41:01x",
        "-020-06-09 18:41:01", "2020-06-09 18:41:-1", "1591728061"})
    EXPECT_FALSE(ParseDate(text)) << text;
}

}  // namespace date_text_test
}  // namespace rehearse
