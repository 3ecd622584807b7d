// Group norm: a block owns a group of channels of an image.
#pragma once

#include "real/cuda/kernels/norm.cuh"

namespace rehearse {

// Groups of a rank's images: rows are pixels, columns channels.
struct Groups {
  uint64_t pixels, groups, channels;

  __device__ Groups(const KernelArguments& a, const GpuOperand& x) {
    pixels = static_cast<uint64_t>(a.attributes[0]);
    groups = static_cast<uint64_t>(a.attributes[1]);
    channels = x.columns / groups;
  }
  __device__ float Elements() const { return static_cast<float>(pixels * channels); }

  // Runs body(image, group) for every group, one block each.
  template <typename Body>
  __device__ void ForEach(const GpuOperand& x, Body body) const {
    ForEachRow(x.rows / pixels * groups, [&](uint64_t i) { body(i / groups, i % groups); });
  }
  // Runs body(row, column) for this thread's elements of a group.
  template <typename Body>
  __device__ void ForEachElementOf(uint64_t image, uint64_t group, Body body) const {
    for (uint64_t i = threadIdx.x; i < pixels * channels; i += blockDim.x) {
      body(image * pixels + i / channels, group * channels + i % channels);
    }
  }
};

extern "C" __global__ void GroupNorm(KernelArguments a) {
  const GpuOperand x = Read(a, 0), gain = Read(a, 1), bias = Read(a, 2);
  const GpuOperand y = Write(a, 0), m = Write(a, 1);
  const Groups groups(a, x);
  groups.ForEach(x, [&](uint64_t image, uint64_t group) {
    float sum = 0;
    groups.ForEachElementOf(image, group, [&](uint64_t i, uint64_t j) { sum += Load(x, i, j); });
    const float mean = OverBlock<Sum>(sum) / groups.Elements();
    float squares = 0;
    groups.ForEachElementOf(image, group, [&](uint64_t i, uint64_t j) {
      squares += (Load(x, i, j) - mean) * (Load(x, i, j) - mean);
    });
    const float rdev = rsqrtf(OverBlock<Sum>(squares) / groups.Elements() + kNormEpsilon);
    if (threadIdx.x == 0) {
      Store(m, image, 2 * group, mean);
      Store(m, image, 2 * group + 1, rdev);
    }
    groups.ForEachElementOf(image, group, [&](uint64_t i, uint64_t j) {
      Store(y, i, j, (Load(x, i, j) - mean) * rdev * LoadAt(gain, j) + LoadAt(bias, j));
    });
  });
}

// First two stages: d gain and d bias, while X and dY are as they were.
extern "C" __global__ void GroupNormBackwardColumns(KernelArguments a) {
  const GpuOperand x = Read(a, 0), dy = Read(a, 1), m = Read(a, 3);
  const Groups groups(a, x);
  SumChunksOfColumns<2>(a, x.rows, x.columns, [&](uint64_t i, uint64_t j, float* values) {
    const uint64_t image = i / groups.pixels, group = j / groups.channels;
    const float normal =
        (Load(x, i, j) - Load(m, image, 2 * group)) * Load(m, image, 2 * group + 1);
    values[0] = Load(dy, i, j) * normal;
    values[1] = Load(dy, i, j);
  });
}

extern "C" __global__ void GroupNormBackward(KernelArguments a) {
  const GpuOperand x = Read(a, 0), dy = Read(a, 1), gain = Read(a, 2), m = Read(a, 3);
  const GpuOperand dx = Write(a, 0);
  const Groups groups(a, x);
  groups.ForEach(x, [&](uint64_t image, uint64_t group) {
    const float mean = Load(m, image, 2 * group);
    const float rdev = Load(m, image, 2 * group + 1);
    float first = 0, second = 0;
    groups.ForEachElementOf(image, group, [&](uint64_t i, uint64_t j) {
      const float g = Load(dy, i, j) * LoadAt(gain, j);
      first += g;
      second += g * (Load(x, i, j) - mean) * rdev;
    });
    first = OverBlock<Sum>(first) / groups.Elements();
    second = OverBlock<Sum>(second) / groups.Elements();
    groups.ForEachElementOf(image, group, [&](uint64_t i, uint64_t j) {
      const float normal = (Load(x, i, j) - mean) * rdev;
      Store(dx, i, j, rdev * (Load(dy, i, j) * LoadAt(gain, j) - first - normal * second));
    });
  });
}

}  // namespace rehearse
