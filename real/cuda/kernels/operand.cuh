// Loads, stores and sums that all kernels share.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "real/cuda/kernel_arguments.h"

namespace rehearse {

constexpr unsigned kWarp = 32;
constexpr unsigned kRowThreads = 256;  // of a block that owns one row
constexpr unsigned kColumnLanes = 8;   // rows that a block of a column sum reads at once

__device__ inline float LoadAt(const GpuOperand& operand, uint64_t index) {
  switch (operand.storage) {
    case Storage::kFp32:
      return static_cast<const float*>(operand.data)[index];
    case Storage::kBf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(operand.data)[index]);
    case Storage::kFp16:
      return __half2float(static_cast<const __half*>(operand.data)[index]);
  }
  return 0;
}

__device__ inline void StoreAt(const GpuOperand& operand, uint64_t index, float value) {
  switch (operand.storage) {
    case Storage::kFp32:
      static_cast<float*>(operand.data)[index] = value;
      break;
    case Storage::kBf16:
      static_cast<__nv_bfloat16*>(operand.data)[index] = __float2bfloat16(value);
      break;
    case Storage::kFp16:
      static_cast<__half*>(operand.data)[index] = __float2half(value);
      break;
  }
}

__device__ inline float Load(const GpuOperand& operand, uint64_t row, uint64_t column) {
  return LoadAt(operand, row * operand.stride + column);
}
__device__ inline void Store(const GpuOperand& operand, uint64_t row, uint64_t column,
                             float value) {
  StoreAt(operand, row * operand.stride + column, value);
}

__device__ inline const GpuOperand& Read(const KernelArguments& a, uint32_t i) {
  return a.operands[i];
}
__device__ inline const GpuOperand& Write(const KernelArguments& a, uint32_t i) {
  return a.operands[a.reads + i];
}

// Runs body(row, column) for every element of a rows × columns matrix, over the whole grid.
template <typename Body>
__device__ void ForEachElement(uint64_t rows, uint64_t columns, Body body) {
  const uint64_t elements = rows * columns;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements; i += step) {
    const uint64_t row = i / columns;
    body(row, i - row * columns);
  }
}

// Runs body(row) for every row, one block each.
template <typename Body>
__device__ void ForEachRow(uint64_t rows, Body body) {
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) body(row);
}

struct Sum {
  __device__ static float Join(float a, float b) { return a + b; }
};
struct Maximum {
  __device__ static float Join(float a, float b) { return fmaxf(a, b); }
};

// Joins `value` over the block's threads, in a fixed order; every thread gets the result.
template <typename Operation>
__device__ float OverBlock(float value) {
  __shared__ float of_warp[kWarp];
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    value = Operation::Join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  __syncthreads();  // of_warp may still be read by the call before
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = of_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) {
    value = Operation::Join(value, of_warp[warp]);
  }
  return value;
}

// Column sums in two stages. First: each block adds a chunk of the rows of 32 columns, for kOutputs
// values per row and column, into scratch[output][chunk][column]. visit(row, column, values) fills
// the values.
template <int kOutputs, typename Visit>
__device__ void SumChunksOfColumns(const KernelArguments& a, uint64_t rows, uint64_t columns,
                                   Visit visit) {
  __shared__ float partial[kOutputs][kColumnLanes][kWarp];
  const unsigned lane = threadIdx.x / kWarp;
  const uint64_t column = uint64_t{blockIdx.x} * kWarp + threadIdx.x % kWarp;
  const uint64_t rows_of_chunk = (rows + a.chunks - 1) / a.chunks;
  const uint64_t begin = blockIdx.y * rows_of_chunk;
  const uint64_t end = begin + rows_of_chunk < rows ? begin + rows_of_chunk : rows;
  float sums[kOutputs] = {};
  if (column < columns) {
    for (uint64_t row = begin + lane; row < end; row += kColumnLanes) {
      float values[kOutputs];
      visit(row, column, values);
      for (int i = 0; i < kOutputs; ++i) sums[i] += values[i];
    }
  }
  for (int i = 0; i < kOutputs; ++i) partial[i][lane][threadIdx.x % kWarp] = sums[i];
  __syncthreads();
  if (lane != 0 || column >= columns) return;
  for (int i = 0; i < kOutputs; ++i) {
    float sum = 0;
    for (unsigned from = 0; from < kColumnLanes; ++from) sum += partial[i][from][threadIdx.x];
    a.scratch[(static_cast<unsigned>(i) * a.chunks + blockIdx.y) * columns + column] = sum;
  }
}

// Second: adds the chunks of one output to a vector of `columns` elements.
__device__ inline void AddChunksOfColumns(const KernelArguments& a, int output,
                                          const GpuOperand& into) {
  const uint64_t columns = into.rows * into.columns;
  ForEachElement(1, columns, [&](uint64_t, uint64_t column) {
    const float* chunks = a.scratch + static_cast<unsigned>(output) * a.chunks * columns + column;
    float sum = 0;
    for (uint32_t chunk = 0; chunk < a.chunks; ++chunk) sum += chunks[chunk * columns];
    StoreAt(into, column, LoadAt(into, column) + sum);
  });
}

}  // namespace rehearse
