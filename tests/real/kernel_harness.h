// Calls single kernels on small arrays, and differentiates them numerically.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <list>
#include <vector>

#include <gtest/gtest.h>

#include "real/kernels/kernels.h"
#include "real/kernels/numbers.h"
#include "sim/base/error.h"

namespace rehearse {

inline constexpr double kExact = 1e-12;
// Central differences with h = 1e-5: h² and 1e-16/h.
inline constexpr double kNumerical = 1e-7;

// An array with its memory; copies are deep.
struct Array {
  uint64_t rows = 0;
  uint64_t columns = 0;
  std::vector<double> values;
  std::optional<ArrayPiece> place = std::nullopt;

  double& At(uint64_t i, uint64_t j) { return values[i * columns + j]; }
  double At(uint64_t i, uint64_t j) const { return values[i * columns + j]; }

  Operand<double> AsOperand() {
    Operand<double> operand;
    operand.data = values.data();
    operand.rows = rows;
    operand.columns = columns;
    operand.stride = columns;
    operand.place = place ? &*place : nullptr;
    return operand;
  }
};

inline Array Zeros(uint64_t rows, uint64_t columns) {
  return {rows, columns, std::vector<double>(rows * columns)};
}

// Uniform in [-1, 1), different for every seed.
inline Array Random(uint64_t rows, uint64_t columns, uint64_t seed) {
  Array array = Zeros(rows, columns);
  for (uint64_t i = 0; i < array.values.size(); ++i) array.values[i] = 2 * UnitAt(seed, i) - 1;
  return array;
}

struct KernelSetting {
  std::vector<double> attributes = {};
  Gemm gemm = {};
  StepFacts facts = {};
  Tag tag = {};
};

inline std::vector<RowLoss> Call(Kernel kernel, const KernelSetting& setting,
                                 std::initializer_list<Array*> reads,
                                 std::initializer_list<Array*> writes) {
  Compute compute;
  compute.kernel = kernel;
  compute.attributes = setting.attributes;
  compute.gemm = setting.gemm;
  std::vector<Operand<double>> read_operands;
  std::vector<Operand<double>> write_operands;
  for (Array* array : reads) read_operands.push_back(array->AsOperand());
  for (Array* array : writes) write_operands.push_back(array->AsOperand());
  std::vector<RowLoss> losses;
  FindKernel<double>(kernel)(
      {compute, setting.tag, setting.facts, read_operands, write_operands, &losses});
  return losses;
}

// d f / d array by central differences. f must look at `array` anew on every call.
inline Array NumericalGradient(Array& array, const std::function<double()>& f) {
  constexpr double kStep = 1e-5;
  Array gradient = Zeros(array.rows, array.columns);
  for (size_t i = 0; i < array.values.size(); ++i) {
    const double value = array.values[i];
    array.values[i] = value + kStep;
    const double above = f();
    array.values[i] = value - kStep;
    const double below = f();
    array.values[i] = value;
    gradient.values[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

inline double Dot(const Array& a, const Array& b) {
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

inline void ExpectNear(const Array& actual, const Array& expected, double tolerance) {
  ASSERT_EQ(actual.values.size(), expected.values.size());
  for (size_t i = 0; i < actual.values.size(); ++i) {
    EXPECT_NEAR(actual.values[i], expected.values[i], tolerance) << "element " << i;
  }
}

}  // namespace rehearse
