// cuBLAS's entry points: products by OpenBLAS in fp32.
#include "real/kernels/blas.h"

#include <vector>

#include "real/cuda/libraries.h"
#include "real/kernels/storage.h"
#include "tests/doubles/world.h"

namespace rehearse::gpu_double {
namespace {

World& world() { return World::Get(); }

struct Handle {
  Stream* stream = nullptr;
};

// A column-major matrix of a batch.
struct Matrix {
  void* data;
  CudaDataType type;
  uint64_t rows;
  uint64_t columns;
  uint64_t leading;
  uint64_t distance;  // elements from one of the batch to the next

  Storage storage() const {
    if (type == CudaDataType::kBf16) return Storage::kBf16;
    return type == CudaDataType::kFp16 ? Storage::kFp16 : Storage::kFp32;
  }
  uint64_t At(uint64_t batch, uint64_t row, uint64_t column) const {
    return batch * distance + column * leading + row;
  }
  std::vector<float> Load(uint64_t batch) const {
    std::vector<float> values;
    for (uint64_t j = 0; j < columns; ++j) {
      for (uint64_t i = 0; i < rows; ++i) {
        values.push_back(LoadStored(storage(), data, At(batch, i, j)));
      }
    }
    return values;
  }
  void StoreAll(uint64_t batch, const std::vector<float>& values) const {
    for (uint64_t j = 0; j < columns; ++j) {
      for (uint64_t i = 0; i < rows; ++i) {
        Store(storage(), data, At(batch, i, j), values[j * rows + i]);
      }
    }
  }
  void Add(uint64_t batches, bool writes, std::vector<Touch>* touches) const {
    const uint64_t size = SizeOf(storage());
    for (uint64_t batch = 0; batch < batches; ++batch) {
      touches->push_back({static_cast<char*>(data) + batch * distance * size, columns, rows * size,
                          leading * size, writes});
    }
  }
};

}  // namespace

#define FAIL_IF_TOLD(name) \
  if (world().ShouldFail(#name)) return kPretendedFailure

GPU_DOUBLE_ENTRY cublasCreate_v2(Handle** handle) {
  FAIL_IF_TOLD(cublasCreate_v2);
  *handle = new Handle;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cublasDestroy_v2(Handle* handle) {
  delete handle;
  FAIL_IF_TOLD(cublasDestroy_v2);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cublasGetProperty(BlasProperty property, int* value) {
  FAIL_IF_TOLD(cublasGetProperty);
  *value = property == BlasProperty::kMajor ? 13 : 0;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cublasSetStream_v2(Handle* handle, Stream* stream) {
  FAIL_IF_TOLD(cublasSetStream_v2);
  handle->stream = stream;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cublasSetWorkspace_v2(Handle*, void*, size_t) {
  FAIL_IF_TOLD(cublasSetWorkspace_v2);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cublasGemmStridedBatchedEx(Handle* handle, BlasOperation a_operation,
                                            BlasOperation b_operation, int m, int n, int k,
                                            const float* alpha, void* a_data, CudaDataType a_type,
                                            int lda, long long a_distance, void* b_data,
                                            CudaDataType b_type, int ldb, long long b_distance,
                                            const float* beta, void* c_data, CudaDataType c_type,
                                            int ldc, long long c_distance, int batches, BlasCompute,
                                            int) {
  FAIL_IF_TOLD(cublasGemmStridedBatchedEx);
  const bool a_transposed = a_operation == BlasOperation::kTranspose;
  const bool b_transposed = b_operation == BlasOperation::kTranspose;
  const auto size = [](auto number) { return static_cast<uint64_t>(number); };
  const Matrix a{a_data,    a_type,          size(a_transposed ? k : m), size(a_transposed ? m : k),
                 size(lda), size(a_distance)};
  const Matrix b{b_data,    b_type,          size(b_transposed ? n : k), size(b_transposed ? k : n),
                 size(ldb), size(b_distance)};
  const Matrix c{c_data, c_type, size(m), size(n), size(ldc), size(c_distance)};
  if (a_type != b_type || a.leading < a.rows || b.leading < b.rows || c.leading < c.rows) {
    return kInvalidValue;
  }
  std::vector<Touch> touches;
  a.Add(size(batches), false, &touches);
  b.Add(size(batches), false, &touches);
  c.Add(size(batches), true, &touches);
  world().Enqueue(
      handle->stream, "matrix product", touches, [=, alpha_value = *alpha, beta_value = *beta] {
        for (uint64_t batch = 0; batch < size(batches); ++batch) {
          const std::vector<float> x = a.Load(batch);
          const std::vector<float> y = b.Load(batch);
          std::vector<float> z = c.Load(batch);
          // Column-major C = A·B is row-major Cᵀ = Bᵀ·Aᵀ.
          const auto rows = [](const Matrix& matrix, const std::vector<float>& data) {
            return rehearse::Matrix<float>{const_cast<float*>(data.data()), matrix.columns,
                                           matrix.rows, matrix.rows};
          };
          const auto transposed = [](bool is) { return is ? Transposed::kYes : Transposed::kNo; };
          MultiplyMatrices<float>(transposed(b_transposed), transposed(a_transposed), alpha_value,
                                  rows(b, y), rows(a, x), beta_value, rows(c, z));
          c.StoreAll(batch, z);
        }
      });
  return kSuccess;
}

extern "C" __attribute__((visibility("default"))) const char* cublasGetStatusString(int status) {
  return status == kPretendedFailure ? "a failure was pretended" : "invalid value";
}

}  // namespace rehearse::gpu_double
