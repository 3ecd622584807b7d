// Products by loops, for machines without OpenBLAS and for tests.
#pragma once

#include "real/kernels/matrix.h"

namespace rehearse {

enum class Transposed : uint8_t { kNo, kYes };

// C = alpha·op(A)·op(B) + beta·C by loops along rows, in the order of k.
template <typename T>
void MultiplyPlainly(Transposed a_transposed, Transposed b_transposed, T alpha, const Matrix<T>& a,
                     const Matrix<T>& b, T beta, const Matrix<T>& c) {
  const uint64_t inner = a_transposed == Transposed::kYes ? a.rows : a.columns;
  for (uint64_t i = 0; i < c.rows; ++i) {
    T* row = c.Row(i);
    // If beta is 0, what was there does not matter, not even NaN.
    for (uint64_t j = 0; j < c.columns; ++j) row[j] = beta == T(0) ? T(0) : beta * row[j];
    for (uint64_t k = 0; k < inner; ++k) {
      const T factor = alpha * (a_transposed == Transposed::kYes ? a.At(k, i) : a.At(i, k));
      for (uint64_t j = 0; j < c.columns; ++j) {
        row[j] += factor * (b_transposed == Transposed::kYes ? b.At(j, k) : b.At(k, j));
      }
    }
  }
}

}  // namespace rehearse
