// Products by plain loops agree with the sum that defines them.
#include "real/kernels/plain_product.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "real/kernels/numbers.h"

namespace rehearse {
namespace plain_product_test {

std::vector<double> Numbers(size_t count, uint64_t seed) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 2 * UnitAt(seed, i) - 1;
  return values;
}

TEST(PlainProductTest, AgreesWithTheSumByDefinitionInEveryMode) {
  constexpr uint64_t kM = 3;
  constexpr uint64_t kN = 5;
  constexpr uint64_t kK = 4;
  std::vector<double> a = Numbers(kM * kK, 1);
  std::vector<double> b = Numbers(kK * kN, 2);
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      std::vector<double> c(kM * kN, 7);
      const auto mode = [](bool is) { return is ? Transposed::kYes : Transposed::kNo; };
      const Matrix<double> left{a.data(), a_transposed ? kK : kM, a_transposed ? kM : kK,
                                a_transposed ? kM : kK};
      const Matrix<double> right{b.data(), b_transposed ? kN : kK, b_transposed ? kK : kN,
                                 b_transposed ? kK : kN};
      MultiplyPlainly<double>(mode(a_transposed), mode(b_transposed), 0.5, left, right, 2.0,
                              {c.data(), kM, kN, kN});
      for (uint64_t i = 0; i < kM; ++i) {
        for (uint64_t j = 0; j < kN; ++j) {
          double sum = 2.0 * 7;
          for (uint64_t k = 0; k < kK; ++k) {
            sum += 0.5 * (a_transposed ? left.At(k, i) : left.At(i, k)) *
                   (b_transposed ? right.At(j, k) : right.At(k, j));
          }
          EXPECT_NEAR(c[i * kN + j], sum, 1e-14);
        }
      }
    }
  }
}

TEST(PlainProductTest, WhatWasThereDoesNotCountWhereBetaIsZero) {
  std::vector<float> one{2};
  std::vector<float> c{std::numeric_limits<float>::quiet_NaN()};
  const Matrix<float> scalar{one.data(), 1, 1, 1};
  MultiplyPlainly<float>(Transposed::kNo, Transposed::kNo, 1, scalar, scalar, 0,
                         {c.data(), 1, 1, 1});
  EXPECT_EQ(c[0], 4);
}

}  // namespace plain_product_test
}  // namespace rehearse
