// Group norm (Wu and He 2018): each image is normalised over the pixels of groups of neighbouring
// channels. A rank has whole images and whole groups, so no sums come from outside.
#include <cmath>

#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

constexpr double kGroupNormEpsilon = 1e-5;

// One group of one image: rows [row, row + pixels) and columns [column, column + channels).
struct Group {
  uint64_t image, index, row, column, pixels, channels;

  double elements() const { return static_cast<double>(pixels * channels); }

  template <typename Visit>
  void ForEachElement(Visit visit) const {
    for (uint64_t i = row; i < row + pixels; ++i) {
      for (uint64_t j = column; j < column + channels; ++j) visit(i, j);
    }
  }
};

template <typename T, typename Visit>
void ForEachGroup(const KernelCall<T>& call, const Operand<T>& x, const Operand<T>& moments,
                  Visit visit) {
  const uint64_t pixels = call.Count(0);
  const uint64_t groups = call.Count(1);
  CHECK_EQ(x.rows % pixels, 0u);
  CHECK_EQ(x.columns % groups, 0u);
  CHECK_EQ(moments.rows, x.rows / pixels);
  CHECK_EQ(moments.columns, 2 * groups);
  const uint64_t channels = x.columns / groups;
  for (uint64_t image = 0; image < moments.rows; ++image) {
    for (uint64_t group = 0; group < groups; ++group) {
      visit(Group{image, group, image * pixels, group * channels, pixels, channels});
    }
  }
}

}  // namespace

template <typename T>
void GroupNorm(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const T* gain = call.reads[1].data;
  const T* bias = call.reads[2].data;
  const Operand<T>& y = call.writes[0];
  const Operand<T>& moments = call.writes[1];
  ForEachGroup(call, x, moments, [&](const Group& group) {
    double sum = 0;
    group.ForEachElement([&](uint64_t i, uint64_t j) { sum += x.At(i, j); });
    const double mean = sum / group.elements();
    double squares = 0;
    group.ForEachElement(
        [&](uint64_t i, uint64_t j) { squares += (x.At(i, j) - mean) * (x.At(i, j) - mean); });
    const T middle = static_cast<T>(mean);
    const T rdev = static_cast<T>(1 / std::sqrt(squares / group.elements() + kGroupNormEpsilon));
    moments.At(group.image, 2 * group.index) = middle;
    moments.At(group.image, 2 * group.index + 1) = rdev;
    group.ForEachElement([&](uint64_t i, uint64_t j) {
      y.At(i, j) = (x.At(i, j) - middle) * rdev * gain[j] + bias[j];
    });
  });
}

// dX = rdev·(g - mean(g) - x̂·mean(g·x̂)), g = dY·gain, means over the group.
template <typename T>
void GroupNormBackward(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& dy = call.reads[1];
  const T* gain = call.reads[2].data;
  const Operand<T>& moments = call.reads[3];
  const Operand<T>& dx = call.writes[0];
  T* dgain = call.writes[1].data;
  T* dbias = call.writes[2].data;
  ForEachGroup(call, x, moments, [&](const Group& group) {
    const T mean = moments.At(group.image, 2 * group.index);
    const T rdev = moments.At(group.image, 2 * group.index + 1);
    double first = 0;
    double second = 0;
    group.ForEachElement([&](uint64_t i, uint64_t j) {
      const T normal = (x.At(i, j) - mean) * rdev;
      dgain[j] += dy.At(i, j) * normal;
      dbias[j] += dy.At(i, j);
      first += dy.At(i, j) * gain[j];
      second += static_cast<double>(dy.At(i, j) * gain[j]) * normal;
    });
    const T mean_g = static_cast<T>(first / group.elements());
    const T mean_gx = static_cast<T>(second / group.elements());
    group.ForEachElement([&](uint64_t i, uint64_t j) {
      const T normal = (x.At(i, j) - mean) * rdev;
      dx.At(i, j) = rdev * (dy.At(i, j) * gain[j] - mean_g - normal * mean_gx);
    });
  });
}

REHEARSE_INSTANTIATE(GroupNorm);
REHEARSE_INSTANTIATE(GroupNormBackward);

}  // namespace rehearse::kernels
