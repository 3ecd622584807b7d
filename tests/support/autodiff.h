// Reverse-mode differentiation of plain arithmetic, one number at a time: slow, and independent of
// all the gradient formulas elsewhere.
//
// A Number remembers how it was computed on the Tape of its thread; Gradient(y) gives dy/dx for
// all numbers x.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace rehearse {

class Number;

class Tape {
 public:
  // The tape that Numbers of this thread are written on.
  static Tape& Current() {
    thread_local Tape tape;
    return tape;
  }
  void Clear() { entries_.clear(); }

  // A number with its derivatives with respect to at most two earlier ones.
  uint32_t Add(uint32_t a, double by_a, uint32_t b, double by_b) {
    entries_.push_back({a, b, by_a, by_b});
    return static_cast<uint32_t>(entries_.size() - 1);
  }
  uint32_t AddLeaf() { return Add(kNone, 0, kNone, 0); }

  // d(number y)/d(every number), by index.
  std::vector<double> Gradient(uint32_t y) const {
    std::vector<double> gradient(entries_.size());
    gradient[y] = 1;
    for (uint32_t i = y + 1; i-- > 0;) {
      const Entry& entry = entries_[i];
      if (entry.a != kNone) gradient[entry.a] += gradient[i] * entry.by_a;
      if (entry.b != kNone) gradient[entry.b] += gradient[i] * entry.by_b;
    }
    return gradient;
  }

  static constexpr uint32_t kNone = 0xffffffffu;

 private:
  struct Entry {
    uint32_t a, b;
    double by_a, by_b;
  };
  std::vector<Entry> entries_;
};

class Number {
 public:
  Number(double constant = 0)  // NOLINT(google-explicit-constructor): constants mix with numbers
      : value_(constant), index_(Tape::kNone) {}
  static Number Leaf(double value) { return Number(value, Tape::Current().AddLeaf()); }

  double value() const { return value_; }
  uint32_t index() const { return index_; }

  friend Number operator+(const Number& x, const Number& y) {
    return Of(x.value_ + y.value_, x, 1, y, 1);
  }
  friend Number operator-(const Number& x, const Number& y) {
    return Of(x.value_ - y.value_, x, 1, y, -1);
  }
  friend Number operator*(const Number& x, const Number& y) {
    return Of(x.value_ * y.value_, x, y.value_, y, x.value_);
  }
  friend Number operator/(const Number& x, const Number& y) {
    return Of(x.value_ / y.value_, x, 1 / y.value_, y, -x.value_ / (y.value_ * y.value_));
  }
  Number& operator+=(const Number& y) { return *this = *this + y; }

  friend Number exp(const Number& x) {
    const double e = std::exp(x.value_);
    return Of(e, x, e, Number(), 0);
  }
  friend Number log(const Number& x) {
    return Of(std::log(x.value_), x, 1 / x.value_, Number(), 0);
  }
  friend Number sqrt(const Number& x) {
    const double root = std::sqrt(x.value_);
    return Of(root, x, 0.5 / root, Number(), 0);
  }
  friend Number tanh(const Number& x) {
    const double t = std::tanh(x.value_);
    return Of(t, x, 1 - t * t, Number(), 0);
  }

 private:
  Number(double value, uint32_t index) : value_(value), index_(index) {}
  static Number Of(double value, const Number& a, double by_a, const Number& b, double by_b) {
    if (a.index_ == Tape::kNone && b.index_ == Tape::kNone) return Number(value);
    return Number(value, Tape::Current().Add(a.index_, by_a, b.index_, by_b));
  }

  double value_;
  uint32_t index_;  // kNone: a constant
};

}  // namespace rehearse
