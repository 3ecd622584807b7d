// Every kernel (those of images in image_kernels_test.cc): forward against the formula written out
// naively, backward against central differences.
#include "real/kernels/kernels.h"

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "tests/real/kernel_harness.h"

namespace rehearse {
namespace kernels_test {

// ---- products -----------------------------------------------------------------------------------

TEST(GemmKernelTest, AllModesAreTheTripleLoop) {
  constexpr uint64_t kM = 3;
  constexpr uint64_t kN = 5;
  constexpr uint64_t kK = 4;
  for (const GemmMode mode : {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN}) {
    const bool a_transposed = mode == GemmMode::kTN;
    const bool b_transposed = mode == GemmMode::kNT;
    Array a = a_transposed ? Random(kK, kM, 1) : Random(kM, kK, 1);
    Array b = b_transposed ? Random(kN, kK, 2) : Random(kK, kN, 2);
    Array c = Random(kM, kN, 3);
    Array expected = Zeros(kM, kN);
    for (uint64_t i = 0; i < kM; ++i) {
      for (uint64_t j = 0; j < kN; ++j) {
        for (uint64_t k = 0; k < kK; ++k) {
          expected.At(i, j) +=
              (a_transposed ? a.At(k, i) : a.At(i, k)) * (b_transposed ? b.At(j, k) : b.At(k, j));
        }
      }
    }
    const KernelSetting setting{.gemm = {.m = kM, .n = kN, .k = kK, .mode = mode}};
    Array sum = c;
    Call(Kernel::kGemm, setting, {&a, &b}, {&c});
    ExpectNear(c, expected, kExact);
    for (size_t i = 0; i < sum.values.size(); ++i) expected.values[i] += sum.values[i];
    Call(Kernel::kGemm, setting, {&a, &b, &sum}, {&sum});
    ExpectNear(sum, expected, kExact);
  }
}

TEST(GemmKernelTest, ABatchIsStackedMatrices) {
  Array a = Random(4, 3, 1);
  Array b = Random(6, 2, 2);
  Array c = Zeros(4, 2);
  Call(Kernel::kGemm, {.gemm = {.m = 2, .n = 2, .k = 3, .mode = GemmMode::kNN, .batch = 2}},
       {&a, &b}, {&c});
  for (uint64_t batch = 0; batch < 2; ++batch) {
    for (uint64_t i = 0; i < 2; ++i) {
      for (uint64_t j = 0; j < 2; ++j) {
        double expected = 0;
        for (uint64_t k = 0; k < 3; ++k) {
          expected += a.At(2 * batch + i, k) * b.At(3 * batch + k, j);
        }
        EXPECT_NEAR(c.At(2 * batch + i, j), expected, kExact);
      }
    }
  }
}

TEST(GemmKernelTest, OperandsThatDoNotFitAreRefused) {
  Array a = Random(2, 3, 1);
  Array b = Random(4, 2, 2);
  Array c = Zeros(2, 2);
  EXPECT_THROW(Call(Kernel::kGemm, {.gemm = {.m = 2, .n = 2, .k = 3}}, {&a, &b}, {&c}),
               InternalError);
}

// ---- movement -----------------------------------------------------------------------------------

TEST(MoveKernelTest, StackAndUnstackAreInverse) {
  // Two blocks of 2 × 3: rows 0-1 of x are columns 0-2 of y, rows 2-3 columns 3-5.
  Array x = Random(4, 3, 1);
  Array y = Zeros(2, 6);
  Call(Kernel::kUnstack, {}, {&x}, {&y});
  EXPECT_EQ(y.At(1, 2), x.At(1, 2));
  EXPECT_EQ(y.At(0, 3), x.At(2, 0));
  EXPECT_EQ(y.At(1, 5), x.At(3, 2));
  Array back = Zeros(4, 3);
  Call(Kernel::kStack, {}, {&y}, {&back});
  ExpectNear(back, x, 0);
}

TEST(MoveKernelTest, CopyAndAccumulate) {
  Array x = Random(2, 3, 1);
  Array y = Random(2, 3, 2);
  const Array before = y;
  Call(Kernel::kAccumulate, {}, {&x, &y}, {&y});
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(y.values[i], before.values[i] + x.values[i]);
  Array flat = Zeros(1, 6);  // the same elements in one row
  Call(Kernel::kCopy, {}, {&x}, {&flat});
  EXPECT_EQ(flat.values, x.values);
}

TEST(MoveKernelTest, EmbeddingLooksUpTheRowsThatARankHas) {
  // A vocabulary of 8 over two ranks: a token's row is on exactly one, so the two outputs add up to
  // that row.
  Array table = Random(8, 3, 1);
  Array y = Zeros(5, 3);
  Call(Kernel::kEmbedding, {}, {&table}, {&y});
  for (uint64_t i = 0; i < 5; ++i) {
    for (uint64_t j = 0; j < 3; ++j) EXPECT_EQ(y.At(i, j), table.At(TokenAt(0, i, 8), j));
  }
  Array sum = Zeros(5, 3);
  for (uint64_t rank = 0; rank < 2; ++rank) {
    Array half = Zeros(4, 3);
    std::copy_n(table.values.begin() + static_cast<int64_t>(12 * rank), 12, half.values.begin());
    half.place = ArrayPiece{8, 3, 4 * rank, 0, 4, 3, false, 0, 12};
    Array part = Zeros(5, 3);
    Call(Kernel::kEmbedding, {}, {&half}, {&part});
    for (size_t i = 0; i < 15; ++i) sum.values[i] += part.values[i];
  }
  ExpectNear(sum, y, 0);
}

TEST(MoveKernelTest, EmbeddingBackwardIsTheTransposedMap) {
  Array table = Random(4, 3, 1);
  const Array weights = Random(6, 3, 2);
  const auto f = [&] {
    Array y = Zeros(6, 3);
    Call(Kernel::kEmbedding, {}, {&table}, {&y});
    return Dot(y, weights);
  };
  Array dy = weights;
  Array d_table = Zeros(4, 3);
  Call(Kernel::kEmbeddingBackward, {}, {&dy, &d_table}, {&d_table});
  ExpectNear(d_table, NumericalGradient(table, f), kNumerical);
  Array anew = Random(4, 3, 9);  // not read: begins at zero
  Call(Kernel::kEmbeddingBackward, {}, {&dy}, {&anew});
  ExpectNear(anew, d_table, kExact);
}

// ---- activations --------------------------------------------------------------------------------

TEST(ActivationKernelTest, BiasIsAddedToEveryRow) {
  Array x = Random(3, 4, 1);
  const Array before = x;
  Array bias = Random(1, 4, 2);
  Call(Kernel::kBias, {}, {&x, &bias}, {&x});
  for (uint64_t i = 0; i < 3; ++i) {
    for (uint64_t j = 0; j < 4; ++j) EXPECT_EQ(x.At(i, j), before.At(i, j) + bias.At(0, j));
  }
  Array d_bias = Zeros(1, 4);
  Call(Kernel::kBiasBackward, {}, {&x, &d_bias}, {&d_bias});
  EXPECT_NEAR(d_bias.At(0, 2), x.At(0, 2) + x.At(1, 2) + x.At(2, 2), kExact);
}

TEST(ActivationKernelTest, GeluIsTheTanhForm) {
  Array x = {1, 3, {-1.0, 0.0, 2.0}};
  Array bias = Zeros(1, 3);
  Array y = Zeros(1, 3);
  Call(Kernel::kBiasGelu, {}, {&x, &bias}, {&y});
  // 0.5·x·(1 + tanh(0.79788456·(x + 0.044715·x³))): x = 2 gives 0.5·2·(1 + tanh(1.88119))
  EXPECT_NEAR(y.At(0, 0), -0.158808, 1e-6);
  EXPECT_EQ(y.At(0, 1), 0);
  EXPECT_NEAR(y.At(0, 2), 1.954598, 1e-6);
}

TEST(ActivationKernelTest, GeluBackward) {
  Array x = Random(3, 4, 1);
  Array bias = Random(1, 4, 2);
  Array dy = Random(3, 4, 3);
  const auto f = [&] {
    Array y = Zeros(3, 4);
    Call(Kernel::kBiasGelu, {}, {&x, &bias}, {&y});
    return Dot(y, dy);
  };
  Array dx = Zeros(3, 4);
  Array d_bias = Zeros(1, 4);
  Call(Kernel::kBiasGeluBackward, {}, {&dy, &x, &bias, &d_bias}, {&dx, &d_bias});
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
  ExpectNear(d_bias, NumericalGradient(bias, f), kNumerical);
}

TEST(ActivationKernelTest, SwiGluForwardAndBackward) {
  Array x = Random(3, 4, 1);
  Array dy = Random(3, 2, 2);
  const auto f = [&] {
    Array y = Zeros(3, 2);
    Call(Kernel::kSwiGlu, {}, {&x}, {&y});
    EXPECT_NEAR(y.At(1, 1), x.At(1, 2) / (1 + std::exp(-x.At(1, 2))) * x.At(1, 3), kExact);
    return Dot(y, dy);
  };
  Array dx = Zeros(3, 4);
  Call(Kernel::kSwiGluBackward, {}, {&dy, &x}, {&dx});
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
}

TEST(ActivationKernelTest, ReluBackward) {
  Array x = Random(3, 4, 1);
  Array dy = Random(3, 4, 2);
  Array y = Zeros(3, 4);
  const auto f = [&] {
    Call(Kernel::kRelu, {}, {&x}, {&y});
    return Dot(y, dy);
  };
  Array dx = Zeros(3, 4);
  const Array expected = NumericalGradient(x, f);
  f();
  Call(Kernel::kReluBackward, {}, {&dy, &y}, {&dx});
  ExpectNear(dx, expected, kNumerical);
}

TEST(DropoutKernelTest, AMaskIsTheSameForEveryPieceOfTheGlobalArray) {
  const KernelSetting setting{.attributes = {0.3, 7}, .tag = {.layer = 2}};
  Array x = Random(4, 6, 1);
  Array y = Zeros(4, 6);
  Array mask = Zeros(4, 6);
  Call(Kernel::kDropout, setting, {&x}, {&y, &mask});
  Array part = Zeros(2, 3);  // rows 2-3, columns 3-5
  Array part_mask = Zeros(2, 3);
  part.place = ArrayPiece{4, 6, 2, 3, 2, 3, false, 0, 6};
  Array some = Random(2, 3, 2);
  Call(Kernel::kDropout, setting, {&some}, {&part, &part_mask});
  for (uint64_t i = 0; i < 2; ++i) {
    for (uint64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(part_mask.At(i, j), mask.At(2 + i, 3 + j));
      EXPECT_EQ(part.At(i, j), some.At(i, j) * part_mask.At(i, j));
    }
  }
  // Recomputation makes the same mask; another layer or salt another one.
  KernelSetting again = setting;
  again.tag.phase = Phase::kRecompute;
  Array other = Zeros(4, 6);
  Call(Kernel::kDropout, again, {&x}, {&y, &other});
  EXPECT_EQ(other.values, mask.values);
  again.tag.layer = 3;
  Call(Kernel::kDropout, again, {&x}, {&y, &other});
  EXPECT_NE(other.values, mask.values);
}

TEST(DropoutKernelTest, KeepsTheMean) {
  Array x = Zeros(100, 100);
  std::fill(x.values.begin(), x.values.end(), 1.0);
  Array y = Zeros(100, 100);
  Array mask = Zeros(100, 100);
  Call(Kernel::kDropout, {.attributes = {0.25, 0}}, {&x}, {&y, &mask});
  double sum = 0;
  for (const double value : y.values) {
    EXPECT_TRUE(value == 0 || std::abs(value - 4.0 / 3) < kExact);
    sum += value;
  }
  // Mean 1 with deviation sqrt(0.25·0.75)/0.75/100 = 0.0058: four of them.
  EXPECT_NEAR(sum / 1e4, 1, 0.023);
}

TEST(DropoutKernelTest, ResidualBackward) {
  const KernelSetting setting{.attributes = {0.4, 1}};
  Array x = Random(3, 4, 1);
  Array z = Random(3, 4, 2);
  Array bias = Random(1, 4, 3);
  Array dy = Random(3, 4, 4);
  Array mask = Zeros(3, 4);
  const auto f = [&] {
    Array y = Zeros(3, 4);
    Call(Kernel::kResidual, setting, {&x, &z, &bias}, {&y, &mask});
    return Dot(y, dy);
  };
  ExpectNear(NumericalGradient(z, f), dy, kNumerical);
  Array dx = Zeros(3, 4);
  Array d_bias = Zeros(1, 4);
  Call(Kernel::kDropoutBackward, {}, {&dy, &mask, &d_bias}, {&dx, &d_bias});
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
  ExpectNear(d_bias, NumericalGradient(bias, f), kNumerical);
}

// ---- norms --------------------------------------------------------------------------------------

// Half of the columns of an array, with its place.
Array Half(const Array& whole, uint64_t half) {
  const uint64_t columns = whole.columns / 2;
  Array part = Zeros(whole.rows, columns);
  for (uint64_t i = 0; i < whole.rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) part.At(i, j) = whole.At(i, half * columns + j);
  }
  part.place = ArrayPiece{whole.rows, whole.columns, 0, half * columns,      whole.rows,
                          columns,    false,         0, whole.rows * columns};
  return part;
}

Array Sum(const Array& a, const Array& b) {
  Array sum = a;
  for (size_t i = 0; i < a.values.size(); ++i) sum.values[i] += b.values[i];
  return sum;
}

TEST(NormKernelTest, LayerNormHasMeanZeroAndDeviationOne) {
  Array x = Random(2, 8, 1);
  Array gain = Zeros(1, 8);
  std::fill(gain.values.begin(), gain.values.end(), 1.0);
  Array bias = Zeros(1, 8);
  Array y = Zeros(2, 8);
  Array moments = Zeros(2, 2);
  Call(Kernel::kNorm, {}, {&x, &gain, &bias}, {&y, &moments});
  for (uint64_t i = 0; i < 2; ++i) {
    double mean = 0;
    double square = 0;
    for (uint64_t j = 0; j < 8; ++j) {
      mean += y.At(i, j) / 8;
      square += y.At(i, j) * y.At(i, j) / 8;
    }
    EXPECT_NEAR(mean, 0, kExact);
    // variance/(variance + 1e-5), the variance of x being about 1/3
    EXPECT_NEAR(square, 1, 1e-4);
  }
}

TEST(NormKernelTest, LayerNormBackward) {
  Array x = Random(3, 4, 1);
  Array gain = Random(1, 4, 2);
  Array bias = Random(1, 4, 3);
  Array dy = Random(3, 4, 4);
  Array moments = Zeros(3, 2);
  const auto f = [&] {
    Array y = Zeros(3, 4);
    Call(Kernel::kNorm, {}, {&x, &gain, &bias}, {&y, &moments});
    return Dot(y, dy);
  };
  const Array d_gain_expected = NumericalGradient(gain, f);
  const Array d_bias_expected = NumericalGradient(bias, f);
  const Array dx_expected = NumericalGradient(x, f);
  f();
  Array dx = Zeros(3, 4);
  Array d_gain = Zeros(1, 4);
  Array d_bias = Zeros(1, 4);
  Call(Kernel::kNormBackward, {}, {&x, &dy, &gain, &moments, &d_gain, &d_bias},
       {&dx, &d_gain, &d_bias});
  ExpectNear(dx, dx_expected, kNumerical);
  ExpectNear(d_gain, d_gain_expected, kNumerical);
  ExpectNear(d_bias, d_bias_expected, kNumerical);

  Array around = Random(3, 4, 5);
  Array sum = Zeros(3, 4);
  Call(Kernel::kNormBackwardAdd, {}, {&x, &dy, &gain, &moments, &d_gain, &d_bias, &around},
       {&sum, &d_gain, &d_bias});
  ExpectNear(sum, Sum(dx, around), kExact);
}

TEST(NormKernelTest, LayerNormOfSplitRowsIsThatOfWholeOnes) {
  Array x = Random(3, 8, 1);
  Array gain = Random(1, 8, 2);
  Array bias = Random(1, 8, 3);
  Array dy = Random(3, 8, 4);
  Array y = Zeros(3, 8);
  Array moments = Zeros(3, 2);
  Array dx = Zeros(3, 8);
  Array d_gain = Zeros(1, 8);
  Array d_bias = Zeros(1, 8);
  Call(Kernel::kNorm, {}, {&x, &gain, &bias}, {&y, &moments});
  Call(Kernel::kNormBackward, {}, {&x, &dy, &gain, &moments, &d_gain, &d_bias},
       {&dx, &d_gain, &d_bias});

  Array sums = Zeros(3, 2);
  Array backward_sums = Zeros(3, 2);
  for (uint64_t half = 0; half < 2; ++half) {
    Array part = Half(x, half);
    Array own = Zeros(3, 2);
    Call(Kernel::kNormStatistics, {}, {&part}, {&own});
    sums = Sum(sums, own);
  }
  for (uint64_t half = 0; half < 2; ++half) {
    Array part = Half(x, half);
    Array part_dy = Half(dy, half);
    Array part_gain = Half(gain, half);
    Array own = Zeros(3, 2);
    Call(Kernel::kNormBackwardStatistics, {}, {&part, &part_dy, &part_gain, &moments}, {&own});
    backward_sums = Sum(backward_sums, own);
  }
  for (uint64_t half = 0; half < 2; ++half) {
    Array part = Half(x, half);
    Array part_dy = Half(dy, half);
    Array part_gain = Half(gain, half);
    Array part_bias = Half(bias, half);
    Array part_y = Zeros(3, 4);
    Array part_moments = Zeros(3, 2);
    Call(Kernel::kNorm, {}, {&part, &part_gain, &part_bias, &sums}, {&part_y, &part_moments});
    ExpectNear(part_y, Half(y, half), kExact);
    ExpectNear(part_moments, moments, kExact);
    Array part_dx = Zeros(3, 4);
    Array part_d_gain = Zeros(1, 4);
    Array part_d_bias = Zeros(1, 4);
    Call(Kernel::kNormBackward, {},
         {&part, &part_dy, &part_gain, &moments, &part_d_gain, &part_d_bias, &backward_sums},
         {&part_dx, &part_d_gain, &part_d_bias});
    ExpectNear(part_dx, Half(dx, half), kExact);
    ExpectNear(part_d_gain, Half(d_gain, half), kExact);
  }
}

TEST(NormKernelTest, RmsNormForwardAndBackward) {
  Array x = Random(3, 4, 1);
  Array gain = Random(1, 4, 2);
  Array dy = Random(3, 4, 4);
  Array moments = Zeros(3, 1);
  const auto f = [&] {
    Array y = Zeros(3, 4);
    Call(Kernel::kRmsNorm, {}, {&x, &gain}, {&y, &moments});
    double square = 0;
    for (uint64_t j = 0; j < 4; ++j) square += x.At(1, j) * x.At(1, j) / 4;
    EXPECT_NEAR(y.At(1, 2), x.At(1, 2) / std::sqrt(square + 1e-5) * gain.At(0, 2), kExact);
    return Dot(y, dy);
  };
  const Array d_gain_expected = NumericalGradient(gain, f);
  const Array dx_expected = NumericalGradient(x, f);
  f();
  Array dx = Zeros(3, 4);
  Array d_gain = Zeros(1, 4);
  Call(Kernel::kRmsNormBackward, {}, {&x, &dy, &gain, &moments, &d_gain}, {&dx, &d_gain});
  ExpectNear(dx, dx_expected, kNumerical);
  ExpectNear(d_gain, d_gain_expected, kNumerical);

  // Split rows: sums of the halves, then the halves.
  Array sums = Zeros(3, 1);
  for (uint64_t half = 0; half < 2; ++half) {
    Array part = Half(x, half);
    Array part_dy = Half(dy, half);
    Array part_gain = Half(gain, half);
    Array own = Zeros(3, 1);
    Call(Kernel::kRmsNormBackwardStatistics, {}, {&part, &part_dy, &part_gain, &moments}, {&own});
    sums = Sum(sums, own);
  }
  Array part = Half(x, 1);
  Array part_dy = Half(dy, 1);
  Array part_gain = Half(gain, 1);
  Array around = Zeros(3, 2);
  Array part_dx = Zeros(3, 2);
  Array part_d_gain = Zeros(1, 2);
  Call(Kernel::kRmsNormBackwardAdd, {},
       {&part, &part_dy, &part_gain, &moments, &part_d_gain, &around, &sums},
       {&part_dx, &part_d_gain});
  ExpectNear(part_dx, Half(dx, 1), kExact);
}

// ---- attention ----------------------------------------------------------------------------------

struct AttentionCase {
  uint64_t sequences, sequence, groups, heads, size;
  bool causal;

  uint64_t Rows() const { return sequences * sequence; }
  uint64_t Columns() const { return groups * (heads + 2) * size; }
  uint64_t OutColumns() const { return groups * heads * size; }
  KernelSetting Setting() const {
    return {.attributes = {double(sequence), double(groups), double(heads), double(size),
                           causal ? 1.0 : 0.0}};
  }
};

// softmax(q·k/√size)·v, one output element after the other.
Array NaiveAttention(const AttentionCase& c, const Array& x) {
  Array out = Zeros(c.Rows(), c.OutColumns());
  for (uint64_t row = 0; row < c.Rows(); ++row) {
    const uint64_t first = row / c.sequence * c.sequence;
    const uint64_t last = c.causal ? row + 1 : first + c.sequence;
    for (uint64_t group = 0; group < c.groups; ++group) {
      const uint64_t base = group * (c.heads + 2) * c.size;
      for (uint64_t head = 0; head < c.heads; ++head) {
        double sum = 0;
        std::vector<double> weights;
        for (uint64_t key = first; key < last; ++key) {
          double score = 0;
          for (uint64_t d = 0; d < c.size; ++d) {
            score += x.At(row, base + head * c.size + d) * x.At(key, base + c.heads * c.size + d);
          }
          weights.push_back(std::exp(score / std::sqrt(double(c.size))));
          sum += weights.back();
        }
        for (uint64_t d = 0; d < c.size; ++d) {
          double& value = out.At(row, (group * c.heads + head) * c.size + d);
          for (uint64_t key = first; key < last; ++key) {
            value += weights[key - first] / sum * x.At(key, base + (c.heads + 1) * c.size + d);
          }
        }
      }
    }
  }
  return out;
}

TEST(AttentionKernelTest, ForwardAndBackward) {
  for (const AttentionCase& c :
       {AttentionCase{2, 4, 2, 1, 3, true}, {1, 5, 1, 3, 2, true}, {2, 3, 2, 2, 2, false}}) {
    Array x = Random(c.Rows(), c.Columns(), 1);
    Array d_out = Random(c.Rows(), c.OutColumns(), 2);
    Array out = Zeros(c.Rows(), c.OutColumns());
    Array log_sums = Zeros(c.Rows(), c.groups * c.heads);
    Call(Kernel::kAttention, c.Setting(), {&x}, {&out, &log_sums});
    ExpectNear(out, NaiveAttention(c, x), kExact);
    Array dx = Random(c.Rows(), c.Columns(), 3);
    Call(Kernel::kAttentionBackward, c.Setting(), {&d_out, &x, &out, &log_sums}, {&dx});
    ExpectNear(dx, NumericalGradient(x, [&] { return Dot(NaiveAttention(c, x), d_out); }),
               kNumerical);
  }
}

TEST(AttentionKernelTest, AWindowHidesWhatIsOlder) {
  // Each of 7 tokens sees itself and 2 before it, as if the others were not there.
  AttentionCase c{1, 7, 2, 2, 3, true};
  Array x = Random(c.Rows(), c.Columns(), 1);
  Array out = Zeros(c.Rows(), c.OutColumns());
  Array sums = Zeros(c.Rows(), c.groups * c.heads);
  KernelSetting windowed = c.Setting();
  windowed.attributes.push_back(3);
  Call(Kernel::kAttention, windowed, {&x}, {&out, &sums});
  for (uint64_t token = 2; token < 7; ++token) {
    AttentionCase of_three{1, 3, 2, 2, 3, true};
    Array seen = Zeros(3, c.Columns());
    for (uint64_t i = 0; i < 3; ++i) {
      for (uint64_t j = 0; j < c.Columns(); ++j) seen.At(i, j) = x.At(token - 2 + i, j);
    }
    const Array expected = NaiveAttention(of_three, seen);
    for (uint64_t j = 0; j < c.OutColumns(); ++j)
      EXPECT_NEAR(out.At(token, j), expected.At(2, j), kExact);
  }
  Array d_out = Random(c.Rows(), c.OutColumns(), 2);
  Array dx = Random(c.Rows(), c.Columns(), 3);
  Call(Kernel::kAttentionBackward, windowed, {&d_out, &x, &out, &sums}, {&dx});
  const auto f = [&] {
    Array y = Zeros(c.Rows(), c.OutColumns());
    Call(Kernel::kAttention, windowed, {&x}, {&y, &sums});
    return Dot(y, d_out);
  };
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
}

// A case whose sequences several ranks share, played rank by rank.
struct SharedCase {
  AttentionCase whole;
  uint64_t parts;
  bool balanced;
  double window;

  uint64_t Rows() const { return whole.Rows() / parts; }
  SequenceOrder Order() const { return {whole.sequence, parts, whole.Rows(), balanced}; }
  KernelSetting Whole() const {
    KernelSetting setting = whole.Setting();
    setting.attributes.push_back(window);
    return setting;
  }
  KernelSetting At(int64_t step) const {
    KernelSetting setting = Whole();
    for (const double more : {double(parts), balanced ? 1.0 : 0.0, double(step)})
      setting.attributes.push_back(more);
    return setting;
  }
  KernelSetting Keys() const {
    return {.attributes = {double(whole.groups), double(whole.heads), double(whole.size)}};
  }
  Array PartOf(const Array& all, uint64_t rank) const {
    Array part = Zeros(Rows(), all.columns);
    part.place = ArrayPiece{.global_rows = whole.Rows(), .row = rank * Rows(), .order = Order()};
    for (uint64_t i = 0; i < Rows(); ++i) {
      for (uint64_t j = 0; j < all.columns; ++j) part.At(i, j) = all.At(part.place->RowOf(i), j);
    }
    return part;
  }
  Array Zero(uint64_t columns) const { return Zeros(Rows(), columns); }
};

TEST(AttentionKernelTest, PartsOfSharedSequencesAreTheWhole) {
  for (const SharedCase& c : {SharedCase{{2, 12, 2, 2, 3, true}, 3, true, 0},
                              {{1, 8, 1, 1, 2, true}, 4, false, 0},
                              {{2, 12, 1, 3, 2, true}, 2, true, 5},
                              {{1, 6, 2, 1, 2, false}, 3, false, 0}}) {
    Array x = Random(c.whole.Rows(), c.whole.Columns(), 1);
    Array out = Zeros(c.whole.Rows(), c.whole.OutColumns());
    Array sums = Zeros(c.whole.Rows(), c.whole.groups * c.whole.heads);
    Call(Kernel::kAttention, c.Whole(), {&x}, {&out, &sums});
    Array d_out = Random(c.whole.Rows(), c.whole.OutColumns(), 2);
    Array dx = Zeros(c.whole.Rows(), c.whole.Columns());
    Call(Kernel::kAttentionBackward, c.Whole(), {&d_out, &x, &out, &sums}, {&dx});

    std::vector<Array> keys;
    std::vector<Array> d_keys;
    for (uint64_t rank = 0; rank < c.parts; ++rank) {
      Array own = c.PartOf(x, rank);
      keys.push_back(c.Zero(c.whole.groups * 2 * c.whole.size));
      d_keys.push_back(keys.back());
      Call(Kernel::kTakeKeys, c.Keys(), {&own}, {&keys.back()});
    }
    std::vector<Array> d_own;
    for (uint64_t rank = 0; rank < c.parts; ++rank) {
      Array own = c.PartOf(x, rank);
      Array o = c.Zero(out.columns);
      Array l = c.Zero(sums.columns);
      for (uint64_t step = 0; step < c.parts; ++step) {
        Array of_part = c.Zero(out.columns);
        Array l_part = c.Zero(sums.columns);
        Array& from = keys[(rank + c.parts - step) % c.parts];
        Call(Kernel::kAttentionPart, c.At(int64_t(step)), {&own, &from},
             {step == 0 ? &o : &of_part, step == 0 ? &l : &l_part});
        if (step > 0) Call(Kernel::kAttentionMerge, {}, {&of_part, &l_part, &o, &l}, {&o, &l});
      }
      ExpectNear(o, c.PartOf(out, rank), kExact);
      ExpectNear(l, c.PartOf(sums, rank), kExact);
      Array d_o = c.PartOf(d_out, rank);
      Array d_x = c.Zero(x.columns);
      for (uint64_t step = 0; step < c.parts; ++step) {
        const uint64_t of = (rank + c.parts - step) % c.parts;
        Array share = c.Zero(keys[of].columns);
        if (step == 0) {
          Call(Kernel::kAttentionPartBackward, c.At(0), {&d_o, &own, &keys[of], &o, &l},
               {&d_x, &share});
        } else {
          Call(Kernel::kAttentionPartBackward, c.At(int64_t(step)),
               {&d_o, &own, &keys[of], &o, &l, &d_x}, {&d_x, &share});
        }
        Call(Kernel::kAccumulate, {}, {&share, &d_keys[of]}, {&d_keys[of]});
      }
      d_own.push_back(d_x);
    }
    for (uint64_t rank = 0; rank < c.parts; ++rank) {
      Call(Kernel::kPutKeys, c.Keys(), {&d_keys[rank], &d_own[rank]}, {&d_own[rank]});
      ExpectNear(d_own[rank], c.PartOf(dx, rank), kExact);
    }
  }
}

TEST(AttentionKernelTest, HeadsAreJoinedAndTheirGradientsSplit) {
  // 2 heads: q of 3 columns, k of 2 own and 1 shared, v of 4.
  constexpr uint64_t kRows = 3;
  const KernelSetting setting{.attributes = {2, 3, 1, 4}};
  Array q = Random(kRows, 6, 1);
  Array kv = Random(kRows, 12, 2);
  Array r = Random(kRows, 1, 3);
  Array x = Zeros(kRows, 20);
  Call(Kernel::kJoinHeads, setting, {&q, &kv, &r}, {&x});
  for (uint64_t row = 0; row < kRows; ++row) {
    for (uint64_t head = 0; head < 2; ++head) {
      for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(x.At(row, head * 10 + i), q.At(row, head * 3 + i));
      for (uint64_t i = 0; i < 2; ++i)
        EXPECT_EQ(x.At(row, head * 10 + 3 + i), kv.At(row, head * 6 + i));
      EXPECT_EQ(x.At(row, head * 10 + 5), r.At(row, 0));
      for (uint64_t i = 0; i < 4; ++i)
        EXPECT_EQ(x.At(row, head * 10 + 6 + i), kv.At(row, head * 6 + 2 + i));
    }
  }
  Array dq = Zeros(kRows, 6);
  Array dkv = Zeros(kRows, 12);
  Array dr = Zeros(kRows, 1);
  Call(Kernel::kSplitHeads, setting, {&x}, {&dq, &dkv, &dr});
  EXPECT_EQ(dq.values, q.values);
  EXPECT_EQ(dkv.values, kv.values);
  for (uint64_t row = 0; row < kRows; ++row) EXPECT_EQ(dr.At(row, 0), 2 * r.At(row, 0));
}

TEST(AttentionKernelTest, ValuesMayBeNarrowerThanQueries) {
  // Padding the values with zeros to the heads' size pads the results with zeros.
  constexpr uint64_t kSequence = 5;
  const KernelSetting narrow{.attributes = {kSequence, 2, 1, 4, 1, 0, 1, 0, -1, 3}};
  const KernelSetting wide{.attributes = {kSequence, 2, 1, 4, 1}};
  Array x = Random(kSequence, 2 * 11, 1);
  Array padded = Zeros(kSequence, 2 * 12);
  const auto for_each = [](Array* from, Array* to, uint64_t size, uint64_t padded_size) {
    for (uint64_t row = 0; row < kSequence; ++row)
      for (uint64_t head = 0; head < 2; ++head)
        for (uint64_t i = 0; i < size; ++i)
          to->At(row, head * padded_size + i) = from->At(row, head * size + i);
  };
  for_each(&x, &padded, 11, 12);
  Array out = Zeros(kSequence, 2 * 3);
  Array padded_out = Zeros(kSequence, 2 * 4);
  Array sums = Zeros(kSequence, 2);
  Array padded_sums = Zeros(kSequence, 2);
  Call(Kernel::kAttention, narrow, {&x}, {&out, &sums});
  Call(Kernel::kAttention, wide, {&padded}, {&padded_out, &padded_sums});
  Array expected_out = Zeros(kSequence, 2 * 4);
  for_each(&out, &expected_out, 3, 4);
  ExpectNear(padded_out, expected_out, kExact);
  ExpectNear(padded_sums, sums, kExact);

  Array d_out = Random(kSequence, 2 * 3, 2);
  Array padded_d_out = Zeros(kSequence, 2 * 4);
  for_each(&d_out, &padded_d_out, 3, 4);
  Array dx = Zeros(kSequence, 2 * 11);
  Array padded_dx = Zeros(kSequence, 2 * 12);
  Call(Kernel::kAttentionBackward, narrow, {&d_out, &x, &out, &sums}, {&dx});
  Call(Kernel::kAttentionBackward, wide, {&padded_d_out, &padded, &padded_out, &padded_sums},
       {&padded_dx});
  Array expected_dx = Zeros(kSequence, 2 * 12);
  for_each(&dx, &expected_dx, 11, 12);
  for (uint64_t row = 0; row < kSequence; ++row)
    for (const uint64_t padding : {11, 23})
      expected_dx.At(row, padding) = padded_dx.At(row, padding);
  ExpectNear(padded_dx, expected_dx, kExact);
}

TEST(AttentionKernelTest, SequencesAreOrderedAndBack) {
  const SequenceOrder order{6, 3, 12, false};
  Array x = Random(12, 2, 1);
  Array y = Zeros(12, 2);
  Array back = Zeros(12, 2);
  Call(Kernel::kOrderSequences, {.attributes = {6, 3, 0, 0}}, {&x}, {&y});
  for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(y.At(order.InSequences(i), 1), x.At(i, 1));
  Call(Kernel::kOrderSequences, {.attributes = {6, 3, 0, 1}}, {&y}, {&back});
  EXPECT_EQ(back.values, x.values);
}

// ---- losses -------------------------------------------------------------------------------------

TEST(LossKernelTest, CrossEntropyForwardAndBackward) {
  constexpr uint64_t kRows = 3;
  constexpr uint64_t kClasses = 5;
  const KernelSetting setting{.facts = {.tokens = 6, .keep_loss = true}, .tag = {.micro_batch = 1}};
  Array x = Random(kRows, kClasses, 1);
  // The mean over 6 tokens of log Σ exp x - x[label]; these three rows are the second micro-batch.
  const auto f = [&] {
    double loss = 0;
    for (uint64_t i = 0; i < kRows; ++i) {
      double sum = 0;
      for (uint64_t j = 0; j < kClasses; ++j) sum += std::exp(x.At(i, j));
      loss += (std::log(sum) - x.At(i, LabelAt(0, kRows + i, kClasses))) / 6;
    }
    return loss;
  };
  Array maximum = Zeros(kRows, 1);
  Array e = Zeros(kRows, kClasses);
  Array s = Zeros(kRows, 2);
  Array loss = Zeros(kRows, 1);
  Array dx = Zeros(kRows, kClasses);
  Call(Kernel::kMaximum, setting, {&x}, {&maximum});
  Call(Kernel::kExponentials, setting, {&x, &maximum}, {&e, &s});
  const std::vector<RowLoss> losses = Call(Kernel::kCrossEntropy, setting, {&s}, {&loss});
  Call(Kernel::kCrossEntropyBackward, setting, {&e, &s}, {&dx});
  EXPECT_NEAR((loss.At(0, 0) + loss.At(1, 0) + loss.At(2, 0)) / 6, f(), kExact);
  ASSERT_EQ(losses.size(), kRows);
  EXPECT_EQ(losses[2].row, 5u);
  EXPECT_EQ(losses[2].loss, loss.At(2, 0));
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
}

TEST(LossKernelTest, CrossEntropyOfSplitClassesIsThatOfAll) {
  constexpr uint64_t kRows = 8;
  Array x = Random(kRows, 6, 1);
  const KernelSetting setting{.facts = {.tokens = kRows}};
  Array maximum = Zeros(kRows, 1);
  Array e = Zeros(kRows, 6);
  Array s = Zeros(kRows, 2);
  Array dx = Zeros(kRows, 6);
  Call(Kernel::kMaximum, setting, {&x}, {&maximum});
  Call(Kernel::kExponentials, setting, {&x, &maximum}, {&e, &s});
  Call(Kernel::kCrossEntropyBackward, setting, {&e, &s}, {&dx});
  Array sums = Zeros(kRows, 2);
  std::vector<Array> parts;
  for (uint64_t half = 0; half < 2; ++half) {
    Array part = Half(x, half);
    Array own_e = Zeros(kRows, 3);
    own_e.place = part.place;
    Array own_s = Zeros(kRows, 2);
    Call(Kernel::kExponentials, setting, {&part, &maximum}, {&own_e, &own_s});
    sums = Sum(sums, own_s);
    parts.push_back(own_e);
  }
  ExpectNear(sums, s, kExact);
  for (uint64_t half = 0; half < 2; ++half) {
    Array own_dx = Zeros(kRows, 3);
    Call(Kernel::kCrossEntropyBackward, setting, {&parts[half], &sums}, {&own_dx});
    ExpectNear(own_dx, Half(dx, half), kExact);
  }
}

TEST(LossKernelTest, SquaredError) {
  const KernelSetting setting{.facts = {.tokens = 4}};
  Array x = Random(2, 3, 1);
  Array loss = Zeros(2, 1);
  Array dx = Zeros(2, 3);
  const auto f = [&] {
    Array unused = Zeros(2, 3);
    Call(Kernel::kSquaredError, setting, {&x}, {&loss, &unused});
    return (loss.At(0, 0) + loss.At(1, 0)) / 4;
  };
  Call(Kernel::kSquaredError, setting, {&x}, {&loss, &dx});
  double expected = 0;
  for (uint64_t j = 0; j < 3; ++j) expected += std::pow(x.At(1, j) - TargetAt(0, 1, j), 2) / 2;
  EXPECT_NEAR(loss.At(1, 0), expected, kExact);
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
}

// ---- optimizer ----------------------------------------------------------------------------------

TEST(AdamKernelTest, TwoStepsByHand) {
  // g = 0.5 twice, rate 0.1. Step 1: m = 0.05, v = 0.00025, corrected 0.5 and 0.25: p -=
  // 0.1·0.5/0.5. Step 2: m = 0.095, v = 0.00049975, corrected by 1-0.81 and 1-0.998001: the
  // same 0.5 and 0.25.
  Array g = {1, 1, {0.5}};
  Array norm = {1, 1, {0.25}};  // a norm of 0.5: nothing is clipped
  Array p = {1, 1, {3.0}};
  Array state = {3, 1, {3.0, 0, 0}};
  for (uint32_t step = 1; step <= 2; ++step) {
    Call(Kernel::kAdam, {.attributes = {0.1}, .facts = {.number = step}}, {&g, &norm},
         {&p, &state});
    EXPECT_NEAR(p.At(0, 0), 3.0 - 0.1 * step, 1e-8);
    EXPECT_EQ(state.At(0, 0), p.At(0, 0));
  }
}

TEST(AdamKernelTest, MasterWeightsMayBeAnArrayOfTheirOwn) {
  Array g = {1, 3, {0.3, -0.5, 0.01}};
  Array norm = {1, 1, {0.25}};
  Array p = {1, 3, {1, 2, 3}};
  Array state = {3, 3, {1, 2, 3, 0, 0, 0, 0, 0, 0}};
  Array other = p;
  Array masters = p;
  Array moments = Zeros(2, 3);
  for (uint32_t step = 1; step <= 2; ++step) {
    const StepFacts facts = {.number = step};
    Call(Kernel::kAdam, {.attributes = {0.1}, .facts = facts}, {&g, &norm}, {&p, &state});
    Call(Kernel::kAdam, {.attributes = {0.1}, .facts = facts}, {&g, &norm},
         {&other, &masters, &moments});
  }
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(other.At(0, i), p.At(0, i));
    EXPECT_EQ(masters.At(0, i), state.At(0, i));
    EXPECT_EQ(moments.At(0, i), state.At(1, i));
    EXPECT_EQ(moments.At(1, i), state.At(2, i));
  }
}

TEST(AdamKernelTest, GradientsAreClippedToNormOne) {
  // |(30, 40)| = 50: clipped to (0.6, 0.8); the first moment of the first is 0.1·0.6.
  Array g = {1, 2, {30, 40}};
  Array norm = Zeros(1, 1);
  Call(Kernel::kSquaredNorm, {.attributes = {1}}, {&g}, {&norm});
  EXPECT_NEAR(norm.At(0, 0), 2500, kExact);
  Array p = Zeros(1, 2);
  Array state = Zeros(2, 2);  // fp32 parameters are their own masters
  Call(Kernel::kAdam, {.attributes = {0.1}}, {&g, &norm}, {&p, &state});
  EXPECT_NEAR(state.At(0, 0), 0.06, kExact);
  EXPECT_NEAR(p.At(0, 1), -0.1, 1e-8);
}

TEST(AdamKernelTest, AnUpdateDoneAgainIsAsIfItHadBeenRightAtOnce) {
  // Three steps. In the second a rank knows only a part of the norm, 2 of 10, and clips to a half
  // where a tenth would have been right; in the first both clip to a half, in the third neither
  // clips.
  Array g = {1, 3, {0.3, -1.5, 0.01}};
  const Array part = {1, 1, {4}};
  const Array whole = {1, 1, {100}};
  const Array small = {1, 1, {0.25}};
  for (const uint64_t rows : {2u, 3u}) {
    Array right = {1, 3, {1, 2, 3}};
    Array right_state = Zeros(rows, 3);
    Array other = right;
    Array other_state = right_state;
    const auto update = [&](uint32_t step, Array norm, Array* p, Array* state) {
      Call(Kernel::kAdam, {.attributes = {0.1}, .facts = {.number = step}}, {&g, &norm},
           {p, state});
    };
    const auto validate = [&](uint32_t step, Array norm, Array all, Array* p, Array* state) {
      Call(Kernel::kAdam, {.attributes = {0.1, kAdamIfClipped}, .facts = {.number = step}},
           {&g, &norm, &all}, {p, state});
    };
    for (uint32_t step = 1; step <= 3; ++step) {
      const Array& first = step == 3 ? small : part;
      const Array& second = step == 3 ? small : step == 2 ? whole : part;
      update(step, second, &right, &right_state);
      update(step, first, &other, &other_state);
      validate(step, first, second, &other, &other_state);
      for (uint64_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(other.At(0, i), right.At(0, i), 1e-11) << step;
        for (uint64_t row = 0; row < rows; ++row)
          EXPECT_NEAR(other_state.At(row, i), right_state.At(row, i), 1e-11) << step;
      }
    }
  }
}

TEST(MomentumKernelTest, TwoStepsByHand) {
  // M = 0.5, then 0.9·0.5 + 0.5 = 0.95: p = 3 - 0.1·0.5 - 0.1·0.95.
  Array g = {1, 1, {0.5}};
  Array norm = {1, 1, {0.25}};
  Array p = {1, 1, {3.0}};
  Array state = {2, 1, {3.0, 0}};
  for (uint32_t step = 1; step <= 2; ++step)
    Call(Kernel::kMomentum, {.attributes = {0.1, 0.9}}, {&g, &norm}, {&p, &state});
  EXPECT_NEAR(p.At(0, 0), 3 - 0.05 - 0.095, kExact);
  EXPECT_EQ(state.At(0, 0), p.At(0, 0));
  EXPECT_NEAR(state.At(1, 0), 0.95, kExact);
}

TEST(LambKernelTest, AStepByHand) {
  // Two tensors, (3, 4) and (2), with gradients (0.6, 0) and (0.8), norm 1. After the first step
  // Adam's directions are 1 where there is a gradient, less an epsilon of 1e-6: u = (1, 0) + 0.1·w
  // = (1.3, 0.4), and 1.2. |w| = 5 and 2, |u|² = 1.85 and 1.44; w -= 0.01·|w|/|u|·u. Of the second
  // tensor another rank has a copy.
  Array g = {1, 3, {0.6, 0, 0.8}};
  Array norm = {1, 1, {1}};
  Array p = {1, 3, {3, 4, 2}};
  Array state = {3, 3, {3, 4, 2, 0, 0, 0, 0, 0, 0}};
  Array norms = Zeros(2, 2);
  const std::vector<double> attributes = {0.1, 0.01, 1, 2, 1, 1, 0.5};
  Call(Kernel::kLambMoments, {.attributes = {0.01}}, {&g, &norm}, {&p, &state});
  Call(Kernel::kLambNorms, {.attributes = attributes}, {&p, &state}, {&norms});
  EXPECT_NEAR(norms.At(0, 0), 25, kExact);
  EXPECT_NEAR(norms.At(0, 1), 1.85, 1e-5);
  EXPECT_NEAR(norms.At(1, 0), 4 * 0.5, kExact);
  EXPECT_NEAR(norms.At(1, 1), 1.44 * 0.5, 1e-5);
  for (uint64_t j = 0; j < 2; ++j) norms.At(1, j) *= 2;  // what the other rank has
  Call(Kernel::kLambStep, {.attributes = attributes}, {&norms}, {&p, &state});
  EXPECT_NEAR(p.At(0, 0), 3 - 0.05 / std::sqrt(1.85) * 1.3, 1e-6);
  EXPECT_NEAR(p.At(0, 1), 4 - 0.05 / std::sqrt(1.85) * 0.4, 1e-6);
  EXPECT_NEAR(p.At(0, 2), 2 - 0.02 / 1.2 * 1.2, 1e-6);
  for (uint64_t j = 0; j < 3; ++j) EXPECT_EQ(state.At(0, j), p.At(0, j));
}

TEST(MuonKernelTest, PartsOfAStepByHand) {
  // D = g + 0.5·M = (1, 2) + (2, 1); X = D/|D| with |D|² = 18; 2·X - 3·D; w = 0.99·w - 0.1·2·O.
  Array g = {1, 2, {1, 2}};
  Array norm = {1, 1, {1}};
  Array state = {1, 3, {7, 4, 2}};  // its part begins behind one number
  Array d = Zeros(1, 2);
  Call(Kernel::kMuonDirections, {.attributes = {0.5, 1}}, {&g, &norm, &state}, {&d});
  EXPECT_NEAR(d.At(0, 0), 3, kExact);
  EXPECT_NEAR(d.At(0, 1), 3, kExact);
  Array square = {1, 1, {18}};
  Array x = Zeros(1, 2);
  Call(Kernel::kNormalize, {}, {&d, &square}, {&x});
  EXPECT_NEAR(x.At(0, 0), std::sqrt(0.5), 1e-6);
  Call(Kernel::kLinear, {.attributes = {2, -3}}, {&d, &g}, {&x});
  EXPECT_NEAR(x.At(0, 0), 3, kExact);
  EXPECT_NEAR(x.At(0, 1), 0, kExact);
  Array p = {1, 2, {10, 20}};
  Call(Kernel::kMuonStep, {.attributes = {0.1, 0.1, 2, 1}}, {&g}, {&p, &state});
  EXPECT_NEAR(p.At(0, 0), 9.9 - 0.2, kExact);
  EXPECT_NEAR(p.At(0, 1), 19.8 - 0.4, kExact);
}

TEST(SquaredNormKernelTest, AReplicaCountsItsShare) {
  Array a = {1, 2, {3, 4}};
  Array b = {1, 1, {2}};
  Array norm = Zeros(1, 1);
  Call(Kernel::kSquaredNorm, {.attributes = {1, 0.25}}, {&a, &b}, {&norm});
  EXPECT_NEAR(norm.At(0, 0), 25 + 1, kExact);
}

TEST(KernelTableTest, EveryKernelHasAFunction) {
  EXPECT_EQ(FindKernel<float>(Kernel::kNone), nullptr);
  for (auto i = static_cast<uint8_t>(Kernel::kGemm); i <= static_cast<uint8_t>(Kernel::kMuonStep);
       ++i) {
    EXPECT_NE(FindKernel<float>(static_cast<Kernel>(i)), nullptr) << Name(static_cast<Kernel>(i));
  }
}

// Ranks that are threads describe themselves at the same time.
TEST(GemmKernelTest, TheLibraryIsDescribedTheSameToAllThreads) {
  std::vector<std::thread> threads;
  std::vector<std::string> told(4);
  for (std::string& own : told) threads.emplace_back([&own] { own = BlasDescription(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& own : told) {
    EXPECT_EQ(own, told.front());
    EXPECT_EQ(own.find('\0'), std::string::npos);
  }
}

}  // namespace kernels_test
}  // namespace rehearse
