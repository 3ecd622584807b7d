// Kernels of convolutional networks: forward against the formula written out naively, backward
// against central differences.
#include <array>

#include "tests/real/kernel_harness.h"

namespace rehearse {
namespace image_kernels_test {

// Element (image, channel, y, x) of images of height × width.
double Pixel(const Array& images, int height, int width, const std::array<int, 4>& at) {
  const auto [image, channel, y, x] = at;
  return images.At(static_cast<uint64_t>((image * height + y) * width + x),
                   static_cast<uint64_t>(channel));
}

TEST(ImageKernelTest, Im2ColAndAProductAreAConvolution) {
  // 2 images of 2 channels 4 × 5, window 3, stride 1, padding 1: an output of 4 × 5.
  const KernelSetting setting{.attributes = {4, 5, 3, 1, 1}};
  Array x = Random(40, 2, 1);
  Array columns = Zeros(40, 18);
  Call(Kernel::kIm2Col, setting, {&x}, {&columns});
  const Array weights = Random(1, 18, 2);  // (channel, y, x)
  for (const auto& [image, y, x0] : {std::array<int, 3>{0, 0, 0}, {1, 2, 3}, {1, 3, 4}}) {
    double expected = 0;
    for (int c = 0; c < 2; ++c) {
      for (int ky = 0; ky < 3; ++ky) {
        for (int kx = 0; kx < 3; ++kx) {
          const int from_y = y + ky - 1;
          const int from_x = x0 + kx - 1;
          if (from_y < 0 || from_y >= 4 || from_x < 0 || from_x >= 5) continue;
          expected += weights.At(0, static_cast<uint64_t>(c * 9 + ky * 3 + kx)) *
                      Pixel(x, 4, 5, {image, c, from_y, from_x});
        }
      }
    }
    double actual = 0;
    const auto row = static_cast<uint64_t>(image * 20 + y * 5 + x0);
    for (uint64_t j = 0; j < 18; ++j) actual += columns.At(row, j) * weights.At(0, j);
    EXPECT_NEAR(actual, expected, kExact);
  }
}

TEST(ImageKernelTest, Col2ImIsTheTransposedMap) {
  // <im2col(x), c> = <x, col2im(c)> for any x and c; here with a stride.
  const KernelSetting setting{.attributes = {5, 5, 3, 2, 1}};
  Array x = Random(50, 2, 1);
  Array columns = Zeros(18, 18);
  Call(Kernel::kIm2Col, setting, {&x}, {&columns});
  Array c = Random(18, 18, 2);
  Array back = Random(50, 2, 3);
  Call(Kernel::kCol2Im, setting, {&c}, {&back});
  EXPECT_NEAR(Dot(columns, c), Dot(x, back), 1e-11);
}

TEST(ImageKernelTest, MaxPoolForwardAndBackward) {
  const KernelSetting setting{.attributes = {4, 6, 2}};
  Array x = Random(48, 2, 1);  // 2 images of 2 channels 4 × 6
  Array dy = Random(12, 2, 2);
  const auto f = [&] {
    Array y = Zeros(12, 2);
    Call(Kernel::kMaxPool, setting, {&x}, {&y});
    const auto at = [&](int line, int column) { return Pixel(x, 4, 6, {1, 1, line, column}); };
    EXPECT_EQ(Pixel(y, 2, 3, {1, 1, 1, 2}), std::max({at(2, 4), at(2, 5), at(3, 4), at(3, 5)}));
    return Dot(y, dy);
  };
  Array y = Zeros(12, 2);
  Call(Kernel::kMaxPool, setting, {&x}, {&y});
  Array dx = Zeros(48, 2);
  Call(Kernel::kMaxPoolBackward, setting, {&dy, &x, &y}, {&dx});
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
}

TEST(ImageKernelTest, UpsampleForwardAndBackward) {
  const KernelSetting setting{.attributes = {2, 3}};
  Array x = Random(12, 2, 1);
  Array dy = Random(48, 2, 2);
  const auto f = [&] {
    Array y = Zeros(48, 2);
    Call(Kernel::kUpsample, setting, {&x}, {&y});
    EXPECT_EQ(Pixel(y, 4, 6, {1, 1, 3, 5}), Pixel(x, 2, 3, {1, 1, 1, 2}));
    return Dot(y, dy);
  };
  Array dx = Zeros(12, 2);
  Call(Kernel::kUpsampleBackward, setting, {&dy}, {&dx});
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
}

TEST(ImageKernelTest, FlattenPutsChannelsOneAfterTheOther) {
  const KernelSetting setting{.attributes = {3}};
  Array x = Random(6, 2, 1);  // 2 images of 3 pixels
  Array y = Zeros(2, 6);
  Call(Kernel::kFlatten, setting, {&x}, {&y});
  EXPECT_EQ(y.At(1, 3 + 2), x.At(3 + 2, 1));  // image 1, channel 1, pixel 2
  Array back = Zeros(6, 2);
  Call(Kernel::kFlattenBackward, setting, {&y}, {&back});
  EXPECT_EQ(back.values, x.values);
}

TEST(ImageKernelTest, PiecesOfJoinedColumnsAreJoinedPieces) {
  Array x = Random(3, 4, 1);
  Array z = Random(3, 8, 2);
  Array y = Zeros(3, 12);
  Call(Kernel::kConcatenate, {.attributes = {4}}, {&x, &z}, {&y});
  const auto columns = [](const Array& from, uint64_t begin, uint64_t end) {
    Array piece = Zeros(from.rows, end - begin);
    for (uint64_t i = 0; i < from.rows; ++i) {
      for (uint64_t j = begin; j < end; ++j) piece.At(i, j - begin) = from.At(i, j);
    }
    return piece;
  };
  // Of two ranks the second has two of the four blocks.
  Array own_x = columns(x, 2, 4);
  Array own_z = columns(z, 4, 8);
  Array own_y = Zeros(3, 6);
  Call(Kernel::kConcatenate, {.attributes = {2}}, {&own_x, &own_z}, {&own_y});
  EXPECT_EQ(own_y.values, columns(y, 6, 12).values);
  Array back_x = Zeros(3, 4);
  Array back_z = Zeros(3, 8);
  Call(Kernel::kSeparate, {.attributes = {4}}, {&y}, {&back_x, &back_z});
  EXPECT_EQ(back_x.values, x.values);
  EXPECT_EQ(back_z.values, z.values);
}

TEST(ImageKernelTest, GroupNormForwardAndBackward) {
  const KernelSetting setting{.attributes = {6, 2}};  // images of 6 pixels, 2 groups of 2 channels
  Array x = Random(12, 4, 1);
  Array gain = Random(1, 4, 2);
  Array bias = Random(1, 4, 3);
  Array dy = Random(12, 4, 4);
  Array m = Zeros(2, 4);
  const auto f = [&] {
    Array y = Zeros(12, 4);
    Call(Kernel::kGroupNorm, setting, {&x, &gain, &bias}, {&y, &m});
    return Dot(y, dy);
  };
  f();
  double sum = 0;
  for (uint64_t i = 6; i < 12; ++i) sum += x.At(i, 2) + x.At(i, 3);
  EXPECT_NEAR(m.At(1, 2), sum / 12, kExact);  // image 1, group 1
  Array dx = Zeros(12, 4);
  Array dgain = Zeros(1, 4);
  Array dbias = Zeros(1, 4);
  Call(Kernel::kGroupNormBackward, setting, {&x, &dy, &gain, &m, &dgain, &dbias},
       {&dx, &dgain, &dbias});
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
  ExpectNear(dgain, NumericalGradient(gain, f), kNumerical);
  ExpectNear(dbias, NumericalGradient(bias, f), kNumerical);
}

TEST(ImageKernelTest, ModulateForwardAndBackward) {
  const KernelSetting setting{.attributes = {3}};
  Array x = Random(6, 2, 1);
  Array e = Random(2, 4, 2);
  Array dy = Random(6, 2, 3);
  const auto f = [&] {
    Array y = Zeros(6, 2);
    Call(Kernel::kModulate, setting, {&x, &e}, {&y});
    EXPECT_EQ(y.At(4, 1), x.At(4, 1) * (1 + e.At(1, 2)) + e.At(1, 3));
    return Dot(y, dy);
  };
  Array dx = Zeros(6, 2);
  Array de = Zeros(2, 4);
  Call(Kernel::kModulateBackward, setting, {&dy, &x, &e}, {&dx, &de});
  ExpectNear(dx, NumericalGradient(x, f), kNumerical);
  ExpectNear(de, NumericalGradient(e, f), kNumerical);
}

}  // namespace image_kernels_test
}  // namespace rehearse
