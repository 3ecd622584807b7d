// Embeddings and the loss: kernels that know the step's tokens and labels (real/kernels/numbers.h).
#pragma once

#include "real/cuda/kernels/operand.cuh"
#include "real/kernels/numbers.h"

namespace rehearse {

// How many tokens further ahead than its own, or than the next one, a row looks; and what its loss
// counts.
__device__ inline uint64_t Ahead(const KernelArguments& a) {
  return a.attribute_count > 0 ? static_cast<uint64_t>(a.attributes[0]) : 0;
}
__device__ inline float Weight(const KernelArguments& a) {
  return a.attribute_count > 1 ? static_cast<float>(a.attributes[1]) : 1;
}

extern "C" __global__ void Embedding(KernelArguments a) {
  const GpuOperand table = Read(a, 0), y = Write(a, 0);
  ForEachRow(y.rows, [&](uint64_t i) {
    const uint64_t token = HashAt(a.random, y.BatchRow(i) + Ahead(a)) % table.global_rows;
    const uint64_t local = token - table.global_row;  // wraps around below ours, so is not ours
    for (uint64_t j = threadIdx.x; j < y.columns; j += blockDim.x) {
      Store(y, i, j, local < table.rows ? Load(table, local, j) : 0);
    }
  });
}

// A thread owns a column in every gridDim.y-th row of the table, so that sums have a fixed order.
extern "C" __global__ void EmbeddingBackward(KernelArguments a) {
  const GpuOperand dy = Read(a, 0), table = Write(a, 0);
  const uint64_t j = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= dy.columns) return;
  if (a.reads == 1) {  // onto zeros
    for (uint64_t row = blockIdx.y; row < table.rows; row += gridDim.y) Store(table, row, j, 0);
  }
  for (uint64_t i = 0; i < dy.rows; ++i) {
    const uint64_t token = HashAt(a.random, dy.BatchRow(i) + Ahead(a)) % table.global_rows;
    const uint64_t local = token - table.global_row;
    if (local >= table.rows || local % gridDim.y != blockIdx.y) continue;
    Store(table, local, j, Load(table, local, j) + Load(dy, i, j));
  }
}

extern "C" __global__ void RowMaximum(KernelArguments a) {
  const GpuOperand x = Read(a, 0), m = Write(a, 0);
  ForEachRow(x.rows, [&](uint64_t i) {
    float largest = -INFINITY;
    for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) {
      largest = fmaxf(largest, Load(x, i, j));
    }
    largest = OverBlock<Maximum>(largest);
    if (threadIdx.x == 0) Store(m, i, 0, largest);
  });
}

// The label's column of row i, counted from this rank's first; large if another rank has it.
__device__ inline uint64_t LabelColumn(const KernelArguments& a, const GpuOperand& x, uint64_t i) {
  return HashAt(a.random, x.BatchRow(i) + Ahead(a)) % x.global_columns - x.global_column;
}

extern "C" __global__ void Exponentials(KernelArguments a) {
  const GpuOperand x = Read(a, 0), m = Read(a, 1), e = Write(a, 0), s = Write(a, 1);
  ForEachRow(x.rows, [&](uint64_t i) {
    const float largest = Load(m, i, 0);
    const uint64_t label = LabelColumn(a, x, i);
    const float at_label = label < x.columns ? Load(x, i, label) - largest : 0;
    __syncthreads();  // e may cover x
    float sum = 0;
    for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) {
      const float value = expf(Load(x, i, j) - largest);
      sum += value;
      Store(e, i, j, value);
    }
    sum = OverBlock<Sum>(sum);
    if (threadIdx.x == 0) {
      Store(s, i, 0, sum);
      Store(s, i, 1, at_label);
    }
  });
}

extern "C" __global__ void CrossEntropy(KernelArguments a) {
  const GpuOperand s = Read(a, 0), loss = Write(a, 0);
  ForEachElement(s.rows, 1, [&](uint64_t i, uint64_t) {
    const float value = Weight(a) * (logf(Load(s, i, 0)) - Load(s, i, 1));
    Store(loss, i, 0, value);
    if (a.losses != nullptr) a.losses[i] = value;
  });
}

extern "C" __global__ void CrossEntropyBackward(KernelArguments a) {
  const GpuOperand e = Read(a, 0), s = Read(a, 1), dx = Write(a, 0);
  const GpuOperand placed = e.placed != 0 ? e : dx;
  const float share = Weight(a) * static_cast<float>(1 / a.tokens);
  ForEachRow(e.rows, [&](uint64_t i) {
    const float factor = share / Load(s, i, 0);
    const uint64_t label = LabelColumn(a, placed, i);
    for (uint64_t j = threadIdx.x; j < e.columns; j += blockDim.x) {
      Store(dx, i, j, Load(e, i, j) * factor - (j == label ? share : 0));
    }
  });
}

extern "C" __global__ void SquaredError(KernelArguments a) {
  const GpuOperand x = Read(a, 0), loss = Write(a, 0), dx = Write(a, 1);
  const float share = static_cast<float>(1 / a.tokens);
  ForEachRow(x.rows, [&](uint64_t i) {
    const uint64_t stream = HashAt(a.random, x.BatchRow(i));
    float sum = 0;
    for (uint64_t j = threadIdx.x; j < x.columns; j += blockDim.x) {
      const double target = 2 * UnitAt(stream, x.global_column + j) - 1;
      const float error = Load(x, i, j) - static_cast<float>(target);
      sum += error * error / 2;
      Store(dx, i, j, error * share);
    }
    sum = OverBlock<Sum>(sum);
    if (threadIdx.x != 0) return;
    Store(loss, i, 0, sum);
    if (a.losses != nullptr) a.losses[i] = sum;
  });
}

}  // namespace rehearse
