// Matrix products, by OpenBLAS if there is one.
#include <fmt/format.h>

#include "real/kernels/blas.h"
#include "real/kernels/kernel_rows.h"
#include "real/kernels/kernels.h"
#include "sim/base/error.h"

namespace rehearse {

#ifdef REHEARSE_NO_OPENBLAS
void SetBlasThreads(int /*threads*/) {}

std::string BlasDescription() { return "plain loops (built without OpenBLAS)"; }
#else
void SetBlasThreads(int threads) { openblas_set_num_threads(threads); }

std::string BlasDescription() {
  return fmt::format("{} core {}", openblas_get_config(), openblas_get_corename());
}
#endif

namespace kernels {
namespace {

// The i-th of `batch` matrices of this shape, stacked on top of each other.
template <typename T>
Matrix<T> InBatch(const Matrix<T>& stacked, uint32_t i, uint64_t rows) {
  return {stacked.Row(i * rows), rows, stacked.columns, stacked.stride};
}

}  // namespace

template <typename T>
void Product(const KernelCall<T>& call) {
  const Gemm& gemm = call.compute.gemm;
  const Operand<T>& a = call.reads[0];
  const Operand<T>& b = call.reads[1];
  const Operand<T>& c = call.writes[0];
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
  const bool accumulates = call.reads.size() > 2;
  for (uint32_t i = 0; i < gemm.batch; ++i) {
    MultiplyMatrices<T>(a_transposed ? Transposed::kYes : Transposed::kNo,
                        b_transposed ? Transposed::kYes : Transposed::kNo, T(1),
                        InBatch<T>(a, i, a_rows), InBatch<T>(b, i, b_rows), T(accumulates ? 1 : 0),
                        InBatch<T>(c, i, gemm.m));
  }
}

REHEARSE_INSTANTIATE(Product);

}  // namespace kernels
}  // namespace rehearse
