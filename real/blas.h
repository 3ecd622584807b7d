// The one routine of OpenBLAS that kernels use, for float and double alike; plain loops where there is no OpenBLAS.
#pragma once

#ifndef REHEARSE_NO_OPENBLAS
#include <cblas.h>
#endif

#include "real/matrix.h"

namespace rehearse {

enum class Transposed : uint8_t { kNo, kYes };

// C = alpha·op(A)·op(B) + beta·C by loops along rows, in the order of k.
template <typename T>
void MultiplyPlainly(Transposed a_transposed, Transposed b_transposed, T alpha, const Matrix<T>& a,
                     const Matrix<T>& b, T beta, const Matrix<T>& c) {
  const uint64_t inner = a_transposed == Transposed::kYes ? a.rows : a.columns;
  for (uint64_t i = 0; i < c.rows; ++i) {
    T* row = c.Row(i);
    // What was there does not count where beta is 0, not even NaN.
    for (uint64_t j = 0; j < c.columns; ++j) row[j] = beta == T(0) ? T(0) : beta * row[j];
    for (uint64_t k = 0; k < inner; ++k) {
      const T factor = alpha * (a_transposed == Transposed::kYes ? a.At(k, i) : a.At(i, k));
      for (uint64_t j = 0; j < c.columns; ++j) {
        row[j] += factor * (b_transposed == Transposed::kYes ? b.At(j, k) : b.At(k, j));
      }
    }
  }
}

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
