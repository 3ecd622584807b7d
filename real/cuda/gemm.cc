#include "real/cuda/gemm.h"

#include <limits>

#include <fmt/format.h>

namespace rehearse {
namespace {

// NVIDIA recommends so much for Hopper, and it is enough for every older device.
constexpr uint64_t kWorkspaceBytes = 32u << 20;

CudaDataType CudaTypeOf(Storage storage) {
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

void* ElementAt(const GpuOperand& matrix, uint64_t row, uint64_t column) {
  return static_cast<char*>(matrix.data) + (row * matrix.stride + column) * SizeOf(matrix.storage);
}

GpuOperand RowsOf(const GpuOperand& matrix, uint64_t row, uint64_t rows) {
  GpuOperand piece = matrix;
  piece.data = ElementAt(matrix, row, 0);
  piece.rows = rows;
  return piece;
}

}  // namespace

GpuBlas::GpuBlas(const GpuLibraries& gpu, CudaStream stream)
    : gpu_(gpu), stream_(stream), workspace_(AllocateGpuMemory(gpu.cuda, kWorkspaceBytes)) {
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
      Narrow(gemm.m), Narrow(gemm.k), &one, b.data, CudaTypeOf(b.storage), Narrow(b.stride),
      distance(b, b_rows), a.data, CudaTypeOf(a.storage), Narrow(a.stride), distance(a, a_rows),
      &beta, c.data, CudaTypeOf(c.storage), Narrow(c.stride), distance(c, gemm.m),
      static_cast<int>(gemm.batch), fast ? BlasCompute::kFastTf32 : BlasCompute::kFp32,
      kBlasDefaultAlgorithm);
}

void GpuBlas::MultiplyGroups(const Compute& compute, const GpuOperand& a, const GpuOperand& b,
                             const GpuOperand& c, bool accumulates) const {
  const bool makes_weights = compute.gemm.mode == GemmMode::kTN;
  const bool are_side_by_side = compute.attributes.at(0) != 0;
  const uint64_t experts = compute.attributes.size() - 1;
  const GpuOperand& weights = makes_weights ? c : b;
  uint64_t row = 0;
  for (uint64_t e = 0; e < experts; ++e) {
    const auto rows = static_cast<uint64_t>(compute.attributes[1 + e]);
    GpuOperand w = weights;
    (are_side_by_side ? w.columns : w.rows) /= experts;
    w.data =
        ElementAt(weights, are_side_by_side ? 0 : e * w.rows, are_side_by_side ? e * w.columns : 0);
    const GpuOperand left = RowsOf(a, row, rows);
    Gemm gemm;
    gemm.mode = compute.gemm.mode;
    if (makes_weights) {
      gemm.m = w.rows;
      gemm.n = w.columns;
      gemm.k = rows;
      // A product of nothing is zero, but not all versions of cuBLAS take a k of 0.
      if (rows == 0 && !accumulates) Clear(w);
      if (rows > 0) Multiply(gemm, compute.dtype, left, RowsOf(b, row, rows), w, accumulates);
    } else if (rows > 0) {
      gemm.m = rows;
      gemm.n = c.columns;
      gemm.k = a.columns;
      Multiply(gemm, compute.dtype, left, w, RowsOf(c, row, rows), accumulates);
    }
    row += rows;
  }
  CHECK_EQ(row, a.rows);
}

void GpuBlas::Clear(const GpuOperand& matrix) const {
  const uint64_t bytes = matrix.columns * SizeOf(matrix.storage);
  if (matrix.stride == matrix.columns) {
    gpu_.cuda.MemsetAsync(matrix.data, 0, matrix.rows * bytes, stream_);
    return;
  }
  for (uint64_t i = 0; i < matrix.rows; ++i)
    gpu_.cuda.MemsetAsync(ElementAt(matrix, i, 0), 0, bytes, stream_);
}

}  // namespace rehearse
