// The gradient norm, and Adam (Kingma, Ba 2015, with their constants) in fp32.
#pragma once

#include "real/cuda/kernels/elementwise.cuh"

namespace rehearse {

// First stage: blocks (chunk, gradient) leave their weighted sums in scratch.
extern "C" __global__ void SquaredNorm(KernelArguments a) {
  const GpuOperand gradient = Read(a, blockIdx.y);
  float sum = 0;
  ForEachElement(gradient.rows, gradient.columns, [&](uint64_t i, uint64_t j) {
    const float value = Load(gradient, i, j);
    sum += value * value;
  });
  sum = OverBlock<Sum>(sum);
  if (threadIdx.x != 0) return;
  a.scratch[blockIdx.y * gridDim.x + blockIdx.x] =
      sum * static_cast<float>(a.attributes[blockIdx.y]);
}

// In the second stage one block adds them.
extern "C" __global__ void SquaredNormFinish(KernelArguments a) {
  float sum = 0;
  for (uint32_t i = threadIdx.x; i < a.chunks * a.reads; i += blockDim.x) sum += a.scratch[i];
  sum = OverBlock<Sum>(sum);
  if (threadIdx.x == 0) Store(Write(a, 0), 0, 0, sum);
}

// What gradients are multiplied by so that their norm is at most 1.
__device__ inline float ClipOf(const GpuOperand& squared_norm) {
  const float norm = sqrtf(Load(squared_norm, 0, 0));
  return norm > 1 ? 1 / norm : 1;
}

// Blocks are (…, array). The state's rows are master weights (unless parameters are fp32
// themselves; they may be an array of their own before it), first and second moments, each with the
// arrays' elements one after the other. An update that is done again is undone first, unless both
// clip alike.
extern "C" __global__ void Adam(KernelArguments a) {
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f;
  const bool again = a.attribute_count > 1;
  const uint32_t arrays = a.reads - (again ? 2 : 1);
  const GpuOperand gradient = Read(a, blockIdx.y), parameter = Write(a, blockIdx.y);
  const GpuOperand masters = Write(a, arrays), state = Write(a, a.writes - 1);
  const bool has_master = a.writes == arrays + 2 || state.rows == 3;
  const uint64_t second_row = state.rows - 1, first_row = second_row - 1;
  uint64_t begin = 0;  // of this array's elements in a row of the state
  for (uint32_t i = 0; i < blockIdx.y; ++i) begin += Write(a, i).rows * Write(a, i).columns;
  const float clip = ClipOf(Read(a, a.reads - 1)), old_clip = ClipOf(Read(a, arrays));
  if (again && clip == old_clip) return;
  const double t = a.step;
  const float rate = static_cast<float>(a.attributes[0] / (1 - pow(0.9, t)));
  const float correction = static_cast<float>(1 / (1 - pow(0.999, t)));
  ForEachElement(parameter.rows, parameter.columns, [&](uint64_t i, uint64_t j) {
    const uint64_t at = begin + i * parameter.columns + j;
    const float whole = LoadAt(gradient, IndexIn(gradient, parameter, i, j));
    float first = Load(state, first_row, at), second = Load(state, second_row, at);
    float weight = has_master ? Load(masters, 0, at) : Load(parameter, i, j);
    if (again) {
      const float old = whole * old_clip;
      weight += rate * first / (sqrtf(second * correction) + kEpsilon);
      first = (first - (1 - kBeta1) * old) / kBeta1;
      second = fmaxf(0, (second - (1 - kBeta2) * old * old) / kBeta2);
    }
    const float value = whole * clip;
    first = kBeta1 * first + (1 - kBeta1) * value;
    second = kBeta2 * second + (1 - kBeta2) * value * value;
    weight -= rate * first / (sqrtf(second * correction) + kEpsilon);
    if (has_master) Store(masters, 0, at, weight);
    Store(state, first_row, at, first);
    Store(state, second_row, at, second);
    Store(parameter, i, j, weight);
  });
}

}  // namespace rehearse
