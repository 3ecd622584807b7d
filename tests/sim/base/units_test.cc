#include "sim/base/units.h"

#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace units_test {

using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(UnitsTest, ReadsBandwidthsInBytesAndBits) {
  EXPECT_EQ(ParseBandwidth("25GBps"), BytesPerSecond(25e9));
  EXPECT_EQ(ParseBandwidth("25 GB/s"), BytesPerSecond(25e9));
  EXPECT_EQ(ParseBandwidth("200Gbps"), BytesPerSecond(25e9));  // 200e9 bits / 8
  EXPECT_EQ(ParseBandwidth("200 Gb/s"), BytesPerSecond(25e9));
  EXPECT_EQ(ParseBandwidth("1KiBps"), BytesPerSecond(1024));
  EXPECT_EQ(ParseBandwidth("1kBps"), BytesPerSecond(1000));
  EXPECT_EQ(ParseBandwidth("8bps"), BytesPerSecond(1));
  EXPECT_EQ(ParseBandwidth("0.3TBps"), BytesPerSecond(3e11));
}

TEST(UnitsTest, ReadsDurationsWithOneRounding) {
  // The double nearest to the decimal number, as the compiler reads it.
  EXPECT_EQ(ParseDuration("1.5us"), Seconds(1.5e-6));
  EXPECT_EQ(ParseDuration("250ns"), Seconds(250e-9));
  EXPECT_EQ(ParseDuration("7ps"), Seconds(7e-12));
  EXPECT_EQ(ParseDuration("3 ms"), Seconds(3e-3));
  EXPECT_EQ(ParseDuration("2s"), Seconds(2));
  EXPECT_EQ(ParseDuration("1e-3s"), Seconds(1e-3));
}

TEST(UnitsTest, ReadsSizes) {
  EXPECT_EQ(ParseSize("40GiB"), Bytes(42'949'672'960));  // 40·2^30
  EXPECT_EQ(ParseSize("40GB"), Bytes(40e9));
  EXPECT_EQ(ParseSize("512B"), Bytes(512));
  EXPECT_EQ(ParseSize("1.5KiB"), Bytes(1536));
  EXPECT_EQ(ParseSize("2TiB"), Bytes(2'199'023'255'552));  // 2·2^40
}

TEST(UnitsTest, ReadsRatesOfComputation) {
  EXPECT_EQ(ParseFlopRate("312TFLOPS"), FlopsPerSecond(312e12));
  EXPECT_EQ(ParseFlopRate("312 TFLOP/s"), FlopsPerSecond(312e12));
  EXPECT_EQ(ParseFlopRate("1PFLOPS"), FlopsPerSecond(1e15));
  EXPECT_EQ(ParseFlopRate("9.7TFLOPS"), FlopsPerSecond(9.7e12));
}

TEST(UnitsTest, ABareNumberIsRefusedWithAnExample) {
  EXPECT_THAT([] { ParseBandwidth("25"); },
              ThrowsMessage<Error>(
                  StrEq("found \"25\", expected a bandwidth with its unit such as \"25GBps\"")));
  EXPECT_THAT(
      [] { ParseDuration("0"); },
      ThrowsMessage<Error>(StrEq("found \"0\", expected a time with its unit such as \"1.5us\"")));
  EXPECT_THAT([] { ParseSize("4096"); },
              ThrowsMessage<Error>(
                  StrEq("found \"4096\", expected a size with its unit such as \"40GiB\"")));
  EXPECT_THAT([] { ParseFlopRate("312e12"); },
              ThrowsMessage<Error>(StrEq("found \"312e12\", expected a rate of computation with "
                                         "its unit such as \"312TFLOPS\"")));
}

TEST(UnitsTest, AUnitOfAnotherKindIsRefused) {
  EXPECT_THROW(ParseBandwidth("25GB"), Error);
  EXPECT_THROW(ParseSize("25GBps"), Error);
  EXPECT_THROW(ParseDuration("25B"), Error);
  EXPECT_THROW(ParseFlopRate("312TB"), Error);
}

TEST(UnitsTest, BitsAndBytesDiffer) {
  EXPECT_THAT([] { ParseSize("40Gb"); }, ThrowsMessage<Error>(HasSubstr("did you mean \"GB\"?")));
  EXPECT_NE(ParseBandwidth("1Gbps"), ParseBandwidth("1GBps"));
}

TEST(UnitsTest, AMistypedUnitSuggestsTheNearest) {
  EXPECT_THAT([] { ParseBandwidth("25KBps"); },
              ThrowsMessage<Error>(HasSubstr("did you mean \"kBps\"?")));
}

TEST(UnitsTest, ANegativeBandwidthIsRefused) {
  EXPECT_THAT([] { ParseBandwidth("-25GBps"); },
              ThrowsMessage<Error>(
                  StrEq("found \"-25GBps\", expected a bandwidth above zero such as \"25GBps\"")));
  EXPECT_THAT([] { ParseDuration("-1us"); },
              ThrowsMessage<Error>(
                  StrEq("found \"-1us\", expected a time not below zero such as \"1.5us\"")));
}

TEST(UnitsTest, OnlyATimeMayBeZero) {
  EXPECT_EQ(ParseDuration("0us"), Seconds(0));
  EXPECT_THROW(ParseBandwidth("0GBps"), Error);
  EXPECT_THROW(ParseSize("0B"), Error);
  EXPECT_THROW(ParseFlopRate("0TFLOPS"), Error);
  EXPECT_THROW(ParseDuration("-0us"), Error);
}

TEST(UnitsTest, NumbersBeyondTheRangeAreRefused) {
  EXPECT_THAT([] { ParseBandwidth("1e999GBps"); },
              ThrowsMessage<Error>(HasSubstr("neither astronomically large nor small")));
  EXPECT_THROW(ParseBandwidth("1e308GBps"), Error);  // finite, but 1e317 B/s is not
  EXPECT_THROW(ParseDuration("1e-320ps"), Error);    // 1e-332 s would be zero
  EXPECT_THROW(ParseDuration("1e-999s"), Error);
  EXPECT_THROW(ParseBandwidth("1e30GBps"), Error);
  EXPECT_THROW(ParseBandwidth("1e-30GBps"), Error);
  EXPECT_EQ(ParseBandwidth("1e-12GBps"), BytesPerSecond(1e-3));
}

// 2^63 ps are 9,223,372 s.
TEST(UnitsTest, TimesAreThoseOfTheClock) {
  EXPECT_EQ(ParseDuration("9223372s"), Seconds(9223372));
  EXPECT_THAT([] { ParseDuration("9223373s"); },
              ThrowsMessage<Error>(HasSubstr("expected a time of at most 106 days")));
  EXPECT_THROW(ParseDuration("1e10s"), Error);
}

TEST(UnitsTest, JunkIsRefused) {
  for (const char* text :
       {"",         " ",        "GBps",    " 25GBps", "25GBps ", "25GBps!", "+25GBps",
        "25,5GBps", "0x10GBps", "infGBps", "nanGBps", "inf",     "--5GBps", "-",
        "25\tGBps", "25G Bps",  "25gbps",  "2 5GBps", ".5GBps",  "25GBps\n"})
    EXPECT_THROW(ParseBandwidth(text), Error) << text;
}

TEST(UnitsTest, AnErrorStaysOnOneShortLine) {
  EXPECT_THAT([] { ParseSize("1\n\x1b[31m"); }, ThrowsMessage<Error>(HasSubstr("1\\n\\x1b[31m")));
  const std::string longest(100'000, 'x');
  EXPECT_THAT([&] { ParseSize(longest); }, ThrowsMessage<Error>(testing::Property(
                                               "size", &std::string::size, testing::Lt(200u))));
}

TEST(UnitsTest, PrintsFourSignificantDigits) {
  EXPECT_EQ(Print(BytesPerSecond(24.8765e9)), "24.88 GB/s");
  EXPECT_EQ(Print(Seconds(1.37449)), "1.374 s");
  EXPECT_EQ(Print(Bytes(38.2111 * 1073741824.0)), "38.21 GiB");
  EXPECT_EQ(Print(FlopsPerSecond(312e12)), "312 TFLOP/s");
}

TEST(UnitsTest, PrintsInTheUnitThatFits) {
  EXPECT_EQ(Print(Seconds(2.5e-3)), "2.5 ms");
  EXPECT_EQ(Print(Seconds(2.5e-6)), "2.5 us");
  EXPECT_EQ(Print(Seconds(2.5e-9)), "2.5 ns");
  EXPECT_EQ(Print(Seconds(2e-12)), "2 ps");
  EXPECT_EQ(Print(Seconds(90)), "90 s");
  EXPECT_EQ(Print(Bytes(1023)), "1023 B");
  EXPECT_EQ(Print(Bytes(1536)), "1.5 KiB");
  EXPECT_EQ(Print(BytesPerSecond(1e15)), "1 PB/s");
}

TEST(UnitsTest, PrintsTheNextUnitWhenRoundingReachesIt) {
  EXPECT_EQ(Print(BytesPerSecond(999.96e9)), "1 TB/s");
  EXPECT_EQ(Print(Seconds(0.99999)), "1 s");
  // 1023.96 MiB has 1024 as its four digits, which is 0.99996 GiB.
  EXPECT_EQ(Print(Bytes(1023.96 * 1048576)), "1 GiB");
}

TEST(UnitsTest, PrintsEveryDigitBeforeThePoint) {
  EXPECT_EQ(Print(Seconds(86'400)), "86400 s");
  EXPECT_EQ(Print(BytesPerSecond(12'345'678e15)), "12345678 PB/s");
}

TEST(UnitsTest, PrintsZeroInBaseUnits) {
  EXPECT_EQ(Print(Seconds(0)), "0 s");
  EXPECT_EQ(Print(Bytes(0)), "0 B");
  EXPECT_EQ(Print(BytesPerSecond(0)), "0 B/s");
  EXPECT_EQ(Print(FlopsPerSecond(0)), "0 FLOP/s");
}

TEST(UnitsTest, PrintsNegativeAndInfiniteValues) {
  EXPECT_EQ(Print(Seconds(-2.5e-3)), "-2.5 ms");
  EXPECT_EQ(Print(BytesPerSecond(std::numeric_limits<double>::infinity())), "inf PB/s");
}

// What is printed can be read again, to half a unit of the fourth digit (at most 1 in 2,000).
bool IsPrinted(double value, double read) { return std::abs(read - value) <= value / 2000; }

RC_GTEST_PROP(UnitsTest, WhatIsPrintedIsReadAgain, ()) {
  const double mantissa = *rc::gen::inRange(100'000, 1'000'000) / 100'000.0;
  const double value = mantissa * std::pow(10.0, *rc::gen::inRange(0, 18));
  RC_ASSERT(IsPrinted(value, ParseBandwidth(Print(BytesPerSecond(value))).value()));
  RC_ASSERT(IsPrinted(value, ParseSize(Print(Bytes(value))).value()));
  RC_ASSERT(IsPrinted(value, ParseFlopRate(Print(FlopsPerSecond(value))).value()));
  const double seconds = value * 1e-12;
  RC_ASSERT(IsPrinted(seconds, ParseDuration(Print(Seconds(seconds))).value()));
}

RC_GTEST_PROP(UnitsTest, AnyTextIsReadOrRefused, (const std::string& text)) {
  // Never crashes, never returns something that is not a number above zero.
  try {
    RC_ASSERT(ParseBandwidth(text).value() > 0);
  } catch (const Error&) {
  }
}

TEST(UnitsTest, ReadsNumbersOfOperations) {
  EXPECT_EQ(ParseFlops("1.5TFLOP"), Flops(1.5e12));
  EXPECT_EQ(ParseFlops("0FLOP"), Flops(0));
  EXPECT_THAT([] { ParseFlops("1TFLOPS"); }, ThrowsMessage<Error>(HasSubstr("\"TFLOP\"")));
}

TEST(UnitsTest, PrintsExactlyInTheShortestUnit) {
  EXPECT_EQ(PrintExactly(Bytes(67'108'864)), "64MiB");  // 64·2^20
  EXPECT_EQ(PrintExactly(Bytes(1000)), "1kB");
  EXPECT_EQ(PrintExactly(Bytes(123'457)), "123457B");  // as short in kB
  EXPECT_EQ(PrintExactly(Bytes(0)), "0B");
  EXPECT_EQ(PrintExactly(Seconds(0.003)), "3ms");
  EXPECT_EQ(PrintExactly(Seconds(0)), "0s");
  EXPECT_EQ(PrintExactly(Flops(1.5e12)), "1.5TFLOP");
}

RC_GTEST_PROP(UnitsTest, WhatIsPrintedExactlyIsReadAsTheSameNumber, (uint64_t mantissa)) {
  const int exponent = *rc::gen::inRange(-80, 80);
  const double value = std::ldexp(static_cast<double>(mantissa | 1), exponent - 32);
  const double seconds = std::ldexp(value, -96);  // below 2^112 / 2^96, within the clock's range
  RC_ASSERT(ParseDuration(PrintExactly(Seconds(seconds))) == Seconds(seconds));
  RC_ASSERT(ParseSize(PrintExactly(Bytes(value))) == Bytes(value));
  RC_ASSERT(ParseFlops(PrintExactly(Flops(value))) == Flops(value));
}

// What is too long is shown from its beginning.
TEST(UnitsTest, LongJunkIsShownFromItsBeginning) {
  try {
    ParseBandwidth("abcdefghij" + std::string(100, 'k'));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("\"abcdefghijkkk"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("k\"..."));
  }
}

}  // namespace units_test
}  // namespace rehearse
