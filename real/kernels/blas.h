// The only OpenBLAS routine that kernels use, for both float and double; plain loops without
// OpenBLAS.
#pragma once

#ifndef REHEARSE_NO_OPENBLAS
#include <cblas.h>
#endif

#include "real/kernels/plain_product.h"

namespace rehearse {

// C = alpha·op(A)·op(B) + beta·C, row-major; the sizes are C's and, for k, A's.
template <typename T>
void MultiplyMatrices(Transposed a_transposed, Transposed b_transposed, T alpha, const Matrix<T>& a,
                      const Matrix<T>& b, T beta, const Matrix<T>& c) {
#ifdef REHEARSE_NO_OPENBLAS
  MultiplyPlainly(a_transposed, b_transposed, alpha, a, b, beta, c);
#else
  const auto operation = [](Transposed t) {
    return t == Transposed::kYes ? CblasTrans : CblasNoTrans;
  };
  const auto size = [](uint64_t n) { return static_cast<blasint>(n); };
  const uint64_t k = a_transposed == Transposed::kYes ? a.rows : a.columns;
  if constexpr (sizeof(T) == sizeof(double)) {
    cblas_dgemm(CblasRowMajor, operation(a_transposed), operation(b_transposed), size(c.rows),
                size(c.columns), size(k), alpha, a.data, size(a.stride), b.data, size(b.stride),
                beta, c.data, size(c.stride));
  } else {
    cblas_sgemm(CblasRowMajor, operation(a_transposed), operation(b_transposed), size(c.rows),
                size(c.columns), size(k), alpha, a.data, size(a.stride), b.data, size(b.stride),
                beta, c.data, size(c.stride));
  }
#endif
}

}  // namespace rehearse
