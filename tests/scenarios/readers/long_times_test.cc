#include "scenarios/readers/long_times.h"

#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace long_times_test {

TEST(LongTimesTest, TimesHaveUnitsUpToYears) {
  EXPECT_EQ(ParseLongTime("10min"), Seconds(600));
  EXPECT_EQ(ParseLongTime("3h"), Seconds(10'800));
  EXPECT_EQ(ParseLongTime("54 days"), Seconds(54 * 86'400.0));
  EXPECT_EQ(ParseLongTime("1 year"), Seconds(365.25 * 86'400));
  for (const char* text : {"10", "-1h", "1 month", "h", "", "inf s", "1e300 years", "nan s"})
    EXPECT_THROW(ParseLongTime(text), Error) << text;
}

TEST(LongTimesTest, FailuresAreRatesOrMeanTimes) {
  EXPECT_DOUBLE_EQ(ParseFailureRate("3.6e-3/h").per_second, 1e-6);
  EXPECT_DOUBLE_EQ(ParseFailureRate("1000s").per_second, 1e-3);
  EXPECT_DOUBLE_EQ(ParseFailureRate("1 / year").per_second, 1 / (365.25 * 86'400));
  EXPECT_EQ(ParseFailureRate("never").per_second, 0);
  EXPECT_EQ(ParseFailureRate("0/h").per_second, 0);
  for (const char* text : {"-1e-5/h", "1e-5", "0h", "often", "1e9/s", "1e-5/fortnight", "1e-300/h"})
    EXPECT_THROW(ParseFailureRate(text), Error) << text;
}

TEST(LongTimesTest, NumbersOfTokensMayBeShort) {
  EXPECT_EQ(ParseCount("15T"), 15e12);
  EXPECT_EQ(ParseCount("300B"), 300e9);
  EXPECT_EQ(ParseCount("1000000"), 1e6);
  for (const char* text : {"0", "-1T", "15t", "T", "1e30T", "0.1"})
    EXPECT_THROW(ParseCount(text), Error) << text;
}

TEST(LongTimesTest, AreShownToThreeDigits) {
  EXPECT_EQ(PrintLongTime(Seconds(5.2e6)), "60.2 days");
  EXPECT_EQ(PrintLongTime(Seconds(11'131)), "3.09 h");
  EXPECT_EQ(PrintLongTime(Seconds(600)), "10 min");
  EXPECT_EQ(PrintLongTime(Seconds(2.84)), "2.84 s");
  EXPECT_EQ(PrintCount(15e12), "15T");
}

}  // namespace long_times_test
}  // namespace rehearse
