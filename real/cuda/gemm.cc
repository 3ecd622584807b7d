#include "real/cuda/gemm.h"

#include <limits>

#include <fmt/format.h>

namespace rehearse {
namespace {

// NVIDIA's recommendation for Hopper; enough for every older device.
constexpr uint64_t kWorkspaceBytes = 32u << 20;

CudaDataType TypeOf(Storage storage) {
  switch (storage) {
    case Storage::kFp32:
      return CudaDataType::kFp32;
    case Storage::kBf16:
      return CudaDataType::kBf16;
    case Storage::kFp16:
      return CudaDataType::kFp16;
  }
  return CudaDataType::kFp32;
}

int Narrow(uint64_t size) {
  if (size > static_cast<uint64_t>(std::numeric_limits<int>::max())) {
    throw Error(
        fmt::format("a matrix product with a side of {}: cuBLAS goes up to 2^31 - 1", size));
  }
  return static_cast<int>(size);
}

}  // namespace

GpuBlas::GpuBlas(const GpuLibraries& gpu, CudaStream stream)
    : gpu_(gpu), workspace_(AllocateGpuMemory(gpu.cuda, kWorkspaceBytes)) {
  BlasHandle handle = nullptr;
  gpu_.blas.Create(&handle);
  handle_ = {handle, [&gpu](BlasHandle created) { gpu.blas.Destroy.Status(created); }};
  gpu_.blas.SetStream(handle, stream);
  gpu_.blas.SetWorkspace(handle, workspace_.get(), kWorkspaceBytes);
}

void GpuBlas::Multiply(const Gemm& gemm, DType dtype, const GpuOperand& a, const GpuOperand& b,
                       const GpuOperand& c, bool accumulates) const {
  if (a.storage != b.storage) {
    throw Error("a matrix product of operands of different types; cuBLAS takes only one type");
  }
  const bool a_transposed = gemm.mode == GemmMode::kTN;
  const bool b_transposed = gemm.mode == GemmMode::kNT;
  const uint64_t a_rows = a_transposed ? gemm.k : gemm.m;
  const uint64_t b_rows = b_transposed ? gemm.n : gemm.k;
  CHECK_EQ(a.rows, a_rows * gemm.batch);
  CHECK_EQ(a.columns, a_transposed ? gemm.m : gemm.k);
  CHECK_EQ(b.rows, b_rows * gemm.batch);
  CHECK_EQ(b.columns, b_transposed ? gemm.k : gemm.n);
  CHECK_EQ(c.rows, gemm.m * gemm.batch);
  CHECK_EQ(c.columns, gemm.n);
  const auto operation = [](bool transposed) {
    return transposed ? BlasOperation::kTranspose : BlasOperation::kNone;
  };
  const auto distance = [](const GpuOperand& operand, uint64_t rows) {
    return static_cast<long long>(rows) * static_cast<long long>(operand.stride);
  };
  const float one = 1;
  const float beta = accumulates ? 1 : 0;
  const bool fast = dtype == DType::kTf32 && a.storage == Storage::kFp32;
  gpu_.blas.GemmStridedBatched(
      handle_.get(), operation(b_transposed), operation(a_transposed), Narrow(gemm.n),
      Narrow(gemm.m), Narrow(gemm.k), &one, b.data, TypeOf(b.storage), Narrow(b.stride),
      distance(b, b_rows), a.data, TypeOf(a.storage), Narrow(a.stride), distance(a, a_rows), &beta,
      c.data, TypeOf(c.storage), Narrow(c.stride), distance(c, gemm.m),
      static_cast<int>(gemm.batch), fast ? BlasCompute::kFastTf32 : BlasCompute::kFp32,
      kBlasDefaultAlgorithm);
}

}  // namespace rehearse
