#include "sim/base/quantity.h"

#include <concepts>
#include <type_traits>

#include <gtest/gtest.h>

namespace rehearse {
namespace quantity_test {

template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a < b;
};

TEST(QuantityTest, BytesOverBandwidthAreSeconds) {
  static_assert(std::same_as<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
  // 50 GB at 25 GB/s take 2 s.
  EXPECT_EQ((Bytes(50e9) / BytesPerSecond(25e9)).value(), 2.0);
}

TEST(QuantityTest, BandwidthTimesSecondsAreBytes) {
  static_assert(std::same_as<decltype(BytesPerSecond(1) * Seconds(1)), Bytes>);
  EXPECT_EQ((BytesPerSecond(25e9) * Seconds(2)).value(), 50e9);
}

TEST(QuantityTest, FlopsOverRateAreSeconds) {
  static_assert(std::same_as<decltype(Flops(1) / FlopsPerSecond(1)), Seconds>);
  // 624 TFLOP at 312 TFLOP/s take 2 s.
  EXPECT_EQ((Flops(624e12) / FlopsPerSecond(312e12)).value(), 2.0);
}

TEST(QuantityTest, ARatioOfEqualDimensionsIsAPlainNumber) {
  static_assert(std::same_as<decltype(Seconds(1) / Seconds(1)), double>);
  EXPECT_EQ(Seconds(3) / Seconds(2), 1.5);
}

TEST(QuantityTest, DifferentDimensionsDoNotMix) {
  static_assert(Addable<Bytes, Bytes>);
  static_assert(!Addable<Bytes, Seconds>);
  static_assert(!Addable<Bytes, double>);
  static_assert(!Comparable<Flops, Bytes>);
  static_assert(!std::is_convertible_v<double, Seconds>);
}

TEST(QuantityTest, AddsScalesAndCompares) {
  Bytes bytes(10);
  bytes += Bytes(5);
  bytes -= Bytes(3);
  bytes *= 2;
  EXPECT_EQ(bytes, Bytes(24));  // (10 + 5 - 3) * 2
  EXPECT_EQ(-bytes, Bytes(-24));
  EXPECT_EQ(0.5 * bytes / 3, Bytes(4));
  EXPECT_LT(Bytes(1), Bytes(2));
  EXPECT_EQ(Bytes().value(), 0.0);
}

}  // namespace quantity_test
}  // namespace rehearse
