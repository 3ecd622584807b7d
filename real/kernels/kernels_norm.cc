// Layer norm (Ba, Kiros, Hinton 2016) and RMS norm (Zhang, Sennrich 2019), with rows that may be
// split over ranks, in which case sums over the row come from outside.
#include <cmath>
#include <vector>

#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

constexpr double kNormEpsilon = 1e-5;

enum class Kind : uint8_t { kLayer, kRms };

template <typename T>
struct Sums {
  T first = 0;
  T second = 0;
};

// (Σx, Σx²) of the columns at hand; in double, so that x² - mean² keeps its digits in float.
template <typename T>
Sums<double> SumsOf(const T* x, uint64_t n) {
  Sums<double> sums;
  for (uint64_t j = 0; j < n; ++j) {
    sums.first += x[j];
    sums.second += static_cast<double>(x[j]) * x[j];
  }
  return sums;
}

// Row i of statistics, as the kernels keep them: (first, second), or only the second for RMS.
template <Kind kKind, typename T>
Sums<double> ReadSums(const Operand<T>& s, uint64_t i) {
  if constexpr (kKind == Kind::kRms) return {0, s.At(i, 0)};
  return {s.At(i, 0), s.At(i, 1)};
}

template <Kind kKind, typename T>
void WriteSums(const Operand<T>& s, uint64_t i, const Sums<double>& sums) {
  if constexpr (kKind == Kind::kRms) {
    s.At(i, 0) = static_cast<T>(sums.second);
  } else {
    s.At(i, 0) = static_cast<T>(sums.first);
    s.At(i, 1) = static_cast<T>(sums.second);
  }
}

template <Kind kKind, typename T>
void CheckRowValues(const Operand<T>& s, uint64_t rows) {
  CHECK_EQ(s.rows, rows);
  CHECK_EQ(s.columns, kKind == Kind::kRms ? 1u : 2u);
}

// M of sim/schedule/kernel.h for one row.
template <typename T>
struct Moments {
  T mean = 0;
  T rdev = 0;  // 1/deviation, or 1/rms
};

template <Kind kKind, typename T>
Moments<T> ReadMoments(const Operand<T>& m, uint64_t i) {
  if constexpr (kKind == Kind::kRms) return {T(0), m.At(i, 0)};
  return {m.At(i, 0), m.At(i, 1)};
}

template <Kind kKind, typename T>
void Statistics(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  CheckRowValues<kKind>(call.writes[0], x.rows);
  for (uint64_t i = 0; i < x.rows; ++i) {
    WriteSums<kKind>(call.writes[0], i, SumsOf(x.Row(i), x.columns));
  }
}

template <Kind kKind, typename T>
void Forward(const KernelCall<T>& call) {
  constexpr size_t kVectors = kKind == Kind::kRms ? 1 : 2;  // gain [, bias]
  const Operand<T>& x = call.reads[0];
  const T* gain = call.reads[1].data;
  const Operand<T>* given = call.reads.size() > 1 + kVectors ? &call.reads[1 + kVectors] : nullptr;
  const Operand<T>& y = call.writes[0];
  const Operand<T>& moments = call.writes[1];
  CHECK_EQ(call.reads[1].elements(), x.columns);
  CHECK_EQ(y.elements(), x.elements());
  CheckRowValues<kKind>(moments, x.rows);
  const auto n = static_cast<double>(given == nullptr ? x.columns : x.GlobalColumns());
  for (uint64_t i = 0; i < x.rows; ++i) {
    const T* from = x.Row(i);
    T* to = y.Row(i);
    const Sums<double> sums =
        given == nullptr ? SumsOf(from, x.columns) : ReadSums<kKind>(*given, i);
    const double mean = sums.first / n;
    if constexpr (kKind == Kind::kRms) {
      const T rdev = static_cast<T>(1 / std::sqrt(sums.second / n + kNormEpsilon));
      moments.At(i, 0) = rdev;
      for (uint64_t j = 0; j < x.columns; ++j) to[j] = from[j] * rdev * gain[j];
    } else {
      const T* bias = call.reads[2].data;
      const T middle = static_cast<T>(mean);
      const T rdev = static_cast<T>(1 / std::sqrt(sums.second / n - mean * mean + kNormEpsilon));
      moments.At(i, 0) = middle;
      moments.At(i, 1) = rdev;
      for (uint64_t j = 0; j < x.columns; ++j)
        to[j] = (from[j] - middle) * rdev * gain[j] + bias[j];
    }
  }
}

// (Σg, Σg·x̂) of the columns at hand.
template <typename T>
Sums<double> BackwardSumsOf(const T* x, const T* dy, const T* gain, uint64_t n,
                            const Moments<T>& moments) {
  Sums<double> sums;
  for (uint64_t j = 0; j < n; ++j) {
    const T g = dy[j] * gain[j];
    sums.first += g;
    sums.second += static_cast<double>(g) * ((x[j] - moments.mean) * moments.rdev);
  }
  return sums;
}

template <Kind kKind, typename T>
void BackwardStatistics(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& dy = call.reads[1];
  const Operand<T>& moments = call.reads[3];
  CHECK_EQ(dy.elements(), x.elements());
  CheckRowValues<kKind>(call.writes[0], x.rows);
  for (uint64_t i = 0; i < x.rows; ++i) {
    WriteSums<kKind>(call.writes[0], i,
                     BackwardSumsOf(x.Row(i), dy.Row(i), call.reads[2].data, x.columns,
                                    ReadMoments<kKind>(moments, i)));
  }
}

template <Kind kKind, typename T>
void Backward(const KernelCall<T>& call, bool adds) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& dy = call.reads[1];
  const T* gain = call.reads[2].data;
  const Operand<T>& moments = call.reads[3];
  // X, dY, gain, M, d gain [, d bias] [, Z] [, S]
  size_t next = kKind == Kind::kRms ? 5 : 6;
  const Operand<T>* around = adds ? &call.reads[next++] : nullptr;
  const Operand<T>* given = call.reads.size() > next ? &call.reads[next] : nullptr;
  const Operand<T>& dx = call.writes[0];
  T* dgain = call.writes[1].data;
  T* dbias = kKind == Kind::kRms ? nullptr : call.writes[2].data;
  CHECK_EQ(dy.elements(), x.elements());
  CHECK_EQ(dx.elements(), x.elements());
  CHECK_EQ(call.reads[2].elements(), x.columns);
  CHECK_EQ(call.writes[1].elements(), x.columns);
  CheckRowValues<kKind>(moments, x.rows);
  const auto n = static_cast<double>(given == nullptr ? x.columns : x.GlobalColumns());
  for (uint64_t i = 0; i < x.rows; ++i) {
    const T* from = x.Row(i);
    const T* gradient = dy.Row(i);
    T* to = dx.Row(i);
    const Moments<T> own = ReadMoments<kKind>(moments, i);
    const Sums<double> sums = given == nullptr
                                  ? BackwardSumsOf(from, gradient, gain, x.columns, own)
                                  : ReadSums<kKind>(*given, i);
    const T mean_g = kKind == Kind::kRms ? T(0) : static_cast<T>(sums.first / n);
    const T mean_gx = static_cast<T>(sums.second / n);
    const T* z = around == nullptr ? nullptr : around->Row(i);
    for (uint64_t j = 0; j < x.columns; ++j) {
      const T normal = (from[j] - own.mean) * own.rdev;
      dgain[j] += gradient[j] * normal;
      if (dbias != nullptr) dbias[j] += gradient[j];
      const T value = own.rdev * (gradient[j] * gain[j] - mean_g - normal * mean_gx);
      to[j] = z == nullptr ? value : value + z[j];
    }
  }
}

}  // namespace

template <typename T>
void NormStatistics(const KernelCall<T>& call) {
  Statistics<Kind::kLayer>(call);
}
template <typename T>
void Norm(const KernelCall<T>& call) {
  Forward<Kind::kLayer>(call);
}
template <typename T>
void NormBackwardStatistics(const KernelCall<T>& call) {
  BackwardStatistics<Kind::kLayer>(call);
}
template <typename T>
void NormBackward(const KernelCall<T>& call) {
  Backward<Kind::kLayer>(call, /*adds=*/false);
}
template <typename T>
void NormBackwardAdd(const KernelCall<T>& call) {
  Backward<Kind::kLayer>(call, /*adds=*/true);
}
template <typename T>
void RmsNormStatistics(const KernelCall<T>& call) {
  Statistics<Kind::kRms>(call);
}
template <typename T>
void RmsNorm(const KernelCall<T>& call) {
  Forward<Kind::kRms>(call);
}
template <typename T>
void RmsNormBackwardStatistics(const KernelCall<T>& call) {
  BackwardStatistics<Kind::kRms>(call);
}
template <typename T>
void RmsNormBackward(const KernelCall<T>& call) {
  Backward<Kind::kRms>(call, /*adds=*/false);
}
template <typename T>
void RmsNormBackwardAdd(const KernelCall<T>& call) {
  Backward<Kind::kRms>(call, /*adds=*/true);
}

REHEARSE_INSTANTIATE(NormStatistics);
REHEARSE_INSTANTIATE(Norm);
REHEARSE_INSTANTIATE(NormBackwardStatistics);
REHEARSE_INSTANTIATE(NormBackward);
REHEARSE_INSTANTIATE(NormBackwardAdd);
REHEARSE_INSTANTIATE(RmsNormStatistics);
REHEARSE_INSTANTIATE(RmsNorm);
REHEARSE_INSTANTIATE(RmsNormBackwardStatistics);
REHEARSE_INSTANTIATE(RmsNormBackward);
REHEARSE_INSTANTIATE(RmsNormBackwardAdd);

}  // namespace rehearse::kernels
