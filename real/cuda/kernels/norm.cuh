// Layer norm and RMS norm, whole rows or rows split over ranks: a block owns a row.
#pragma once

#include "real/cuda/kernels/operand.cuh"

namespace rehearse {

constexpr float kNormEpsilon = 1e-5f;

// (Σx, Σx²), or in the backward (Σg, Σg·x̂).
struct RowSums {
  float first;
  float second;
};
// M of sim/schedule/kernel.h for one row; RMS has no mean.
struct Moments {
  float mean;
  float rdev;
};

template <bool kRms>
__device__ RowSums LoadSums(const GpuOperand& s, uint64_t row) {
  if (kRms) return {0, Load(s, row, 0)};
  return {Load(s, row, 0), Load(s, row, 1)};
}

template <bool kRms>
__device__ void StoreSums(const GpuOperand& s, uint64_t row, RowSums sums) {
  if (threadIdx.x != 0) return;
  if (kRms) {
    Store(s, row, 0, sums.second);
  } else {
    Store(s, row, 0, sums.first);
    Store(s, row, 1, sums.second);
  }
}

template <bool kRms>
__device__ Moments LoadMoments(const GpuOperand& m, uint64_t row) {
  if (kRms) return {0, Load(m, row, 0)};
  return {Load(m, row, 0), Load(m, row, 1)};
}

template <bool kRms>
__device__ void NormStatisticsOf(const KernelArguments& a) {
  const GpuOperand x = Read(a, 0), s = Write(a, 0);
  ForEachRow(x.rows, [&](uint64_t i) {
    RowSums sums = {0, 0};
    for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) {
      const float value = Load(x, i, j);
      sums.first += value;
      sums.second += value * value;
    }
    StoreSums<kRms>(s, i, {OverBlock<Sum>(sums.first), OverBlock<Sum>(sums.second)});
  });
}

// The mean and variance of a row. If the row is whole, the variance is the mean of (x - mean)²,
// which keeps its digits when the mean is large; with sums from other ranks it is Σx² - n·mean².
template <bool kRms>
__device__ Moments MomentsOf(const GpuOperand& x, uint64_t i, const GpuOperand* given) {
  if (given != nullptr) {
    const float n = static_cast<float>(x.global_columns);
    const RowSums sums = LoadSums<kRms>(*given, i);
    const float mean = sums.first / n;
    return {mean, rsqrtf(fmaxf(sums.second / n - mean * mean, 0) + kNormEpsilon)};
  }
  const float n = static_cast<float>(x.columns);
  float mean = 0;
  if (!kRms) {
    for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) mean += Load(x, i, j);
    mean = OverBlock<Sum>(mean) / n;
  }
  float squares = 0;
  for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) {
    const float value = Load(x, i, j) - mean;
    squares += value * value;
  }
  return {mean, rsqrtf(OverBlock<Sum>(squares) / n + kNormEpsilon)};
}

template <bool kRms>
__device__ void NormOf(const KernelArguments& a) {
  constexpr uint32_t kVectors = kRms ? 1 : 2;  // gain [, bias]
  const GpuOperand x = Read(a, 0), gain = Read(a, 1), y = Write(a, 0), m = Write(a, 1);
  const GpuOperand* given = a.reads > 1 + kVectors ? &Read(a, 1 + kVectors) : nullptr;
  ForEachRow(x.rows, [&](uint64_t i) {
    const Moments moments = MomentsOf<kRms>(x, i, given);
    if (threadIdx.x == 0) {
      if (!kRms) Store(m, i, 0, moments.mean);
      Store(m, i, kRms ? 0 : 1, moments.rdev);
    }
    for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) {
      const float value = (Load(x, i, j) - moments.mean) * moments.rdev * LoadAt(gain, j);
      Store(y, i, j, kRms ? value : value + LoadAt(Read(a, 2), j));
    }
  });
}

template <bool kRms>
__device__ RowSums BackwardSumsOf(const GpuOperand& x, const GpuOperand& dy, const GpuOperand& gain,
                                  uint64_t i, Moments moments) {
  RowSums sums = {0, 0};
  for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) {
    const float g = Load(dy, i, j) * LoadAt(gain, j);
    sums.first += g;
    sums.second += g * (Load(x, i, j) - moments.mean) * moments.rdev;
  }
  return {kRms ? 0 : OverBlock<Sum>(sums.first), OverBlock<Sum>(sums.second)};
}

template <bool kRms>
__device__ void NormBackwardStatisticsOf(const KernelArguments& a) {
  const GpuOperand x = Read(a, 0), dy = Read(a, 1), gain = Read(a, 2), m = Read(a, 3);
  const GpuOperand s = Write(a, 0);
  ForEachRow(x.rows, [&](uint64_t i) {
    StoreSums<kRms>(s, i, BackwardSumsOf<kRms>(x, dy, gain, i, LoadMoments<kRms>(m, i)));
  });
}

// First two stages: d gain (and d bias), while X and dY are as they were.
template <bool kRms>
__device__ void NormBackwardVectors(const KernelArguments& a) {
  const GpuOperand x = Read(a, 0), dy = Read(a, 1), m = Read(a, 3);
  SumChunksOfColumns<2>(a, x.rows, x.columns, [&](uint64_t i, uint64_t j, float* values) {
    const Moments moments = LoadMoments<kRms>(m, i);
    const float gradient = Load(dy, i, j);
    values[0] = gradient * (Load(x, i, j) - moments.mean) * moments.rdev;
    values[1] = gradient;
  });
}

template <bool kRms>
__device__ void NormBackwardOf(const KernelArguments& a, bool adds) {
  const GpuOperand x = Read(a, 0), dy = Read(a, 1), gain = Read(a, 2), m = Read(a, 3);
  const GpuOperand dx = Write(a, 0);
  uint32_t next = kRms ? 5 : 6;  // after X, dY, gain, M, d gain [, d bias]
  const GpuOperand* around = adds ? &Read(a, next++) : nullptr;
  const GpuOperand* given = a.reads > next ? &Read(a, next) : nullptr;
  ForEachRow(x.rows, [&](uint64_t i) {
    const Moments moments = LoadMoments<kRms>(m, i);
    const RowSums sums = given == nullptr ? BackwardSumsOf<kRms>(x, dy, gain, i, moments)
                                          : LoadSums<kRms>(*given, i);
    const float n = static_cast<float>(given == nullptr ? x.columns : x.global_columns);
    for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) {
      const float normal = (Load(x, i, j) - moments.mean) * moments.rdev;
      const float g = Load(dy, i, j) * LoadAt(gain, j);
      const float value = moments.rdev * (g - sums.first / n - normal * sums.second / n);
      Store(dx, i, j, around == nullptr ? value : value + Load(*around, i, j));
    }
  });
}

extern "C" __global__ void NormStatistics(KernelArguments a) { NormStatisticsOf<false>(a); }
extern "C" __global__ void RmsNormStatistics(KernelArguments a) { NormStatisticsOf<true>(a); }
extern "C" __global__ void Norm(KernelArguments a) { NormOf<false>(a); }
extern "C" __global__ void RmsNorm(KernelArguments a) { NormOf<true>(a); }
extern "C" __global__ void NormBackwardStatistics(KernelArguments a) {
  NormBackwardStatisticsOf<false>(a);
}
extern "C" __global__ void RmsNormBackwardStatistics(KernelArguments a) {
  NormBackwardStatisticsOf<true>(a);
}
extern "C" __global__ void NormBackwardColumns(KernelArguments a) { NormBackwardVectors<false>(a); }
extern "C" __global__ void RmsNormBackwardColumns(KernelArguments a) {
  NormBackwardVectors<true>(a);
}
extern "C" __global__ void NormBackwardFinish(KernelArguments a) {
  AddChunksOfColumns(a, 0, Write(a, 1));
  AddChunksOfColumns(a, 1, Write(a, 2));
}
extern "C" __global__ void RmsNormBackwardFinish(KernelArguments a) {
  AddChunksOfColumns(a, 0, Write(a, 1));
}
extern "C" __global__ void NormBackward(KernelArguments a) { NormBackwardOf<false>(a, false); }
extern "C" __global__ void NormBackwardAdd(KernelArguments a) { NormBackwardOf<false>(a, true); }
extern "C" __global__ void RmsNormBackward(KernelArguments a) { NormBackwardOf<true>(a, false); }
extern "C" __global__ void RmsNormBackwardAdd(KernelArguments a) { NormBackwardOf<true>(a, true); }

}  // namespace rehearse
