// A row-major matrix somewhere in memory: what kernels read and write. It owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse {

template <typename T>
struct Matrix {
  T* data = nullptr;
  uint64_t rows = 0;
  uint64_t columns = 0;
  uint64_t stride = 0;  // elements from one row to the next; at least `columns`

  T* Row(uint64_t row) const { return data + row * stride; }
  T& At(uint64_t row, uint64_t column) const { return data[row * stride + column]; }
  uint64_t elements() const { return rows * columns; }
  // Whether the elements are contiguous.
  bool IsDense() const { return stride == columns || rows <= 1; }
};

}  // namespace rehearse
