// Physical quantities whose dimension the compiler checks.
//
// A Quantity holds one double in SI base units (seconds, bytes, flops) and knows its dimension as
// the exponents of second, byte and flop, so that Bytes / BytesPerSecond is Seconds and adding
// Bytes to Seconds does not compile. Units such as "GB/s" exist only at the boundary: see
// sim/base/units.h. Plain values, no invariant, as thread-safe as a double.
#pragma once

#include <compare>

namespace rehearse {

template <int kSecond, int kByte, int kFlop>
struct Dimension {};

template <typename Dim>
class Quantity;

template <int kSecond, int kByte, int kFlop>
class Quantity<Dimension<kSecond, kByte, kFlop>> {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  // The number in SI base units.
  constexpr double value() const { return value_; }

  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, double factor) { return a *= factor; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a *= factor; }
  friend constexpr Quantity operator/(Quantity a, double divisor) {
    return Quantity(a.value_ / divisor);
  }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  double value_ = 0;
};

namespace internal {

// A product without dimension is a plain number.
template <int kSecond, int kByte, int kFlop>
struct Reduced {
  static constexpr auto Make(double value) {
    return Quantity<Dimension<kSecond, kByte, kFlop>>(value);
  }
};
template <>
struct Reduced<0, 0, 0> {
  static constexpr double Make(double value) { return value; }
};

}  // namespace internal

template <int kS1, int kB1, int kF1, int kS2, int kB2, int kF2>
constexpr auto operator*(Quantity<Dimension<kS1, kB1, kF1>> a,
                         Quantity<Dimension<kS2, kB2, kF2>> b) {
  return internal::Reduced<kS1 + kS2, kB1 + kB2, kF1 + kF2>::Make(a.value() * b.value());
}

template <int kS1, int kB1, int kF1, int kS2, int kB2, int kF2>
constexpr auto operator/(Quantity<Dimension<kS1, kB1, kF1>> a,
                         Quantity<Dimension<kS2, kB2, kF2>> b) {
  return internal::Reduced<kS1 - kS2, kB1 - kB2, kF1 - kF2>::Make(a.value() / b.value());
}

using Seconds = Quantity<Dimension<1, 0, 0>>;
using Bytes = Quantity<Dimension<0, 1, 0>>;
using Flops = Quantity<Dimension<0, 0, 1>>;  // floating-point operations, not a rate
using BytesPerSecond = Quantity<Dimension<-1, 1, 0>>;
using FlopsPerSecond = Quantity<Dimension<-1, 0, 1>>;

}  // namespace rehearse
