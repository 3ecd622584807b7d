// Kernels that move data, and those of biases, activations and dropout.
#pragma once

#include "real/cuda/kernels/operand.cuh"
#include "real/kernels/numbers.h"

namespace rehearse {

// Where element (i, j) of y is in x, which has as many elements but perhaps another shape: a flat
// piece and its matrix, counted row by row.
__device__ inline uint64_t IndexIn(const GpuOperand& x, const GpuOperand& y, uint64_t i,
                                   uint64_t j) {
  if (x.columns == y.columns) return i * x.stride + j;
  const uint64_t index = i * y.columns + j;
  return index / x.columns * x.stride + index % x.columns;
}

extern "C" __global__ void Copy(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  ForEachElement(y.rows, y.columns,
                 [&](uint64_t i, uint64_t j) { Store(y, i, j, LoadAt(x, IndexIn(x, y, i, j))); });
}

extern "C" __global__ void Accumulate(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    Store(y, i, j, Load(y, i, j) + LoadAt(x, IndexIn(x, y, i, j)));
  });
}

extern "C" __global__ void Add(KernelArguments a) {
  const GpuOperand x = Read(a, 0), z = Read(a, 1), y = Write(a, 0);
  ForEachElement(y.rows, y.columns,
                 [&](uint64_t i, uint64_t j) { Store(y, i, j, Load(x, i, j) + Load(z, i, j)); });
}

extern "C" __global__ void Unstack(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  ForEachElement(x.rows, x.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t block = i / y.rows;
    Store(y, i - block * y.rows, block * x.columns + j, Load(x, i, j));
  });
}

extern "C" __global__ void Stack(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t block = i / x.rows;
    Store(y, i, j, Load(x, i - block * x.rows, block * y.columns + j));
  });
}

// Transposes the first operand into the second, 32 × 32 elements per block, for GEMMs in another
// mode.
extern "C" __global__ void Transpose(KernelArguments a) {
  __shared__ float tile[kWarp][kWarp + 1];
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  const uint64_t row = uint64_t{blockIdx.y} * kWarp, column = uint64_t{blockIdx.x} * kWarp;
  const unsigned across = threadIdx.x % kWarp, first = threadIdx.x / kWarp;
  for (unsigned down = first; down < kWarp; down += kColumnLanes) {
    if (row + down < x.rows && column + across < x.columns) {
      tile[down][across] = Load(x, row + down, column + across);
    }
  }
  __syncthreads();
  for (unsigned down = first; down < kWarp; down += kColumnLanes) {
    if (column + down < y.rows && row + across < y.columns) {
      Store(y, column + down, row + across, tile[across][down]);
    }
  }
}

extern "C" __global__ void Bias(KernelArguments a) {
  const GpuOperand x = Write(a, 0), bias = Read(a, 1);
  ForEachElement(x.rows, x.columns,
                 [&](uint64_t i, uint64_t j) { Store(x, i, j, Load(x, i, j) + LoadAt(bias, j)); });
}

extern "C" __global__ void BiasBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0);
  SumChunksOfColumns<1>(a, dy.rows, dy.columns,
                        [&](uint64_t i, uint64_t j, float* value) { value[0] = Load(dy, i, j); });
}

extern "C" __global__ void BiasBackwardFinish(KernelArguments a) {
  AddChunksOfColumns(a, 0, Write(a, 0));
}

// gelu(x) = x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), Hendrycks and Gimpel 2016.
constexpr float kGeluScale = 0.7978845608028654f;
constexpr float kGeluCubic = 0.044715f;

__device__ inline float Gelu(float x) {
  return 0.5f * x * (1 + tanhf(kGeluScale * (x + kGeluCubic * x * x * x)));
}
__device__ inline float GeluSlope(float x) {
  const float t = tanhf(kGeluScale * (x + kGeluCubic * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * kGeluScale * (1 + 3 * kGeluCubic * x * x);
}

extern "C" __global__ void BiasGelu(KernelArguments a) {
  const GpuOperand x = Read(a, 0), bias = Read(a, 1), y = Write(a, 0);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    Store(y, i, j, Gelu(Load(x, i, j) + LoadAt(bias, j)));
  });
}

extern "C" __global__ void BiasGeluBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), x = Read(a, 1), bias = Read(a, 2), dx = Write(a, 0);
  SumChunksOfColumns<1>(a, dx.rows, dx.columns, [&](uint64_t i, uint64_t j, float* value) {
    value[0] = Load(dy, i, j) * GeluSlope(Load(x, i, j) + LoadAt(bias, j));
    Store(dx, i, j, value[0]);
  });
}

extern "C" __global__ void BiasGeluBackwardFinish(KernelArguments a) {
  AddChunksOfColumns(a, 0, Write(a, 1));
}

__device__ inline float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

extern "C" __global__ void SwiGlu(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const float gate = Load(x, i, 2 * j), up = Load(x, i, 2 * j + 1);
    Store(y, i, j, gate * Sigmoid(gate) * up);
  });
}

extern "C" __global__ void SwiGluBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), x = Read(a, 1), dx = Write(a, 0);
  ForEachElement(dy.rows, dy.columns, [&](uint64_t i, uint64_t j) {
    const float gate = Load(x, i, 2 * j), up = Load(x, i, 2 * j + 1), d = Load(dy, i, j);
    const float s = Sigmoid(gate);
    Store(dx, i, 2 * j, d * up * s * (1 + gate * (1 - s)));
    Store(dx, i, 2 * j + 1, d * gate * s);
  });
}

// It is 0, or 1/(1-probability) if the element of the global array is kept: DropoutMask of
// real/kernels/numbers.h.
__device__ inline float MaskAt(const KernelArguments& a, const GpuOperand& y, uint64_t i,
                               uint64_t j) {
  const uint64_t index = y.RowOf(i) * y.global_columns + y.global_column + j;
  const double probability = a.attributes[0];
  return UnitAt(a.random, index) < probability ? 0.0f : static_cast<float>(1 / (1 - probability));
}

extern "C" __global__ void Residual(KernelArguments a) {
  const GpuOperand x = Read(a, 0), z = Read(a, 1), bias = Read(a, 2);
  const GpuOperand y = Write(a, 0), mask = Write(a, 1);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const float kept = MaskAt(a, y, i, j);
    Store(mask, i, j, kept);
    Store(y, i, j, Load(z, i, j) + kept * (Load(x, i, j) + LoadAt(bias, j)));
  });
}

extern "C" __global__ void Dropout(KernelArguments a) {
  const GpuOperand x = Read(a, 0), y = Write(a, 0), mask = Write(a, 1);
  ForEachElement(y.rows, y.columns, [&](uint64_t i, uint64_t j) {
    const float kept = MaskAt(a, y, i, j);
    Store(mask, i, j, kept);
    Store(y, i, j, kept * Load(x, i, j));
  });
}

extern "C" __global__ void DropoutBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), mask = Read(a, 1), dx = Write(a, 0);
  SumChunksOfColumns<1>(a, dx.rows, dx.columns, [&](uint64_t i, uint64_t j, float* value) {
    value[0] = Load(dy, i, j) * Load(mask, i, j);
    Store(dx, i, j, value[0]);
  });
}

extern "C" __global__ void DropoutBackwardFinish(KernelArguments a) {
  if (a.writes > 1) AddChunksOfColumns(a, 0, Write(a, 1));
}

}  // namespace rehearse
