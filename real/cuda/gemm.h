// Matrix products by cuBLAS, on row-major operands.
//
// cuBLAS is column-major: a row-major C = A·B is its Cᵀ = Bᵀ·Aᵀ, so operands swap places and what
// sim/schedule/schedule.h calls transposed stays transposed. fp32 accumulation for every type; tf32
// only if the op says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "real/cuda/gpu.h"
#include "real/cuda/kernel_arguments.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Whether cuBLAS computes it.
inline bool IsProduct(Kernel kernel) {
  return kernel == Kernel::kGemm || kernel == Kernel::kGroupedGemm;
}

// A cuBLAS handle bound to one stream, with its own workspace so that equal calls run in the same
// way.
class GpuBlas {
 public:
  GpuBlas(const GpuLibraries& gpu, CudaStream stream);
  GpuBlas(const GpuBlas&) = delete;
  GpuBlas& operator=(const GpuBlas&) = delete;

  // C = A·B (+ C if `accumulates`). `dtype` says whether fp32 operands may be multiplied as tf32.
  // Operands are as sim/schedule/kernel.h says; throws Error if A and B have different types.
  void Multiply(const Gemm& gemm, DType dtype, const GpuOperand& a, const GpuOperand& b,
                const GpuOperand& c, bool accumulates) const;
  // The products of a Kernel::kGroupedGemm, one expert's after the other's.
  void MultiplyGroups(const Compute& compute, const GpuOperand& a, const GpuOperand& b,
                      const GpuOperand& c, bool accumulates) const;

 private:
  void Clear(const GpuOperand& matrix) const;

  const GpuLibraries& gpu_;
  CudaStream stream_;
  GpuMemory workspace_;
  std::unique_ptr<BlasHandleData, std::function<void(BlasHandle)>> handle_;
};

}  // namespace rehearse
