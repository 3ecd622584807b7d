// Kernels that move data: copies, (un)stacking, table look-ups.
#include <algorithm>

#include "real/kernels/kernel_rows.h"
#include "real/kernels/numbers.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

// Calls `visit(row of x, row of y)` for all rows of two operands with equally many elements. If
// their shapes differ (a flat piece and its matrix), both must be dense and count as one long row.
template <typename T, typename Visit>
void ForEachRowPair(const Operand<T>& x, const Operand<T>& y, Visit visit) {
  CHECK_EQ(x.elements(), y.elements());
  if (x.columns == y.columns) {
    for (uint64_t i = 0; i < x.rows; ++i) visit(x.Row(i), y.Row(i), x.columns);
    return;
  }
  CHECK(x.IsDense() && y.IsDense());
  visit(x.data, y.data, x.elements());
}

// The rows of the table that tokens of [begin, begin + rows) have, and where they are used.
template <typename T, typename Visit>
void ForEachToken(const KernelCall<T>& call, const Operand<T>& tokens, const Operand<T>& table,
                  Visit visit) {
  CHECK_EQ(tokens.columns, table.columns);
  const uint64_t vocabulary = table.GlobalRows();
  const uint64_t ahead = call.compute.attributes.empty() ? 0 : call.Count(0);
  for (uint64_t i = 0; i < tokens.rows; ++i) {
    const uint64_t token = TokenAt(call.facts.seed, call.BatchRow(tokens, i) + ahead, vocabulary);
    // Smaller tokens wrap around, so that they are not ours either.
    const uint64_t local = token - table.GlobalRow();
    visit(i, local < table.rows ? table.Row(local) : nullptr);
  }
}

}  // namespace

template <typename T>
void Copy(const KernelCall<T>& call) {
  ForEachRowPair(call.reads[0], call.writes[0],
                 [](const T* x, T* y, uint64_t n) { std::copy(x, x + n, y); });
}

template <typename T>
void Accumulate(const KernelCall<T>& call) {
  ForEachRowPair(call.reads[0], call.writes[0], [](const T* x, T* y, uint64_t n) {
    for (uint64_t j = 0; j < n; ++j) y[j] += x[j];
  });
}

template <typename T>
void Add(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& z = call.reads[1];
  const Operand<T>& y = call.writes[0];
  CHECK_EQ(x.elements(), y.elements());
  CHECK_EQ(z.elements(), y.elements());
  for (uint64_t i = 0; i < y.rows; ++i) {
    const T* a = x.Row(i);
    const T* b = z.Row(i);
    T* to = y.Row(i);
    for (uint64_t j = 0; j < y.columns; ++j) to[j] = a[j] + b[j];
  }
}

template <typename T>
void Unstack(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  CHECK_EQ(x.elements(), y.elements());
  CHECK_EQ(y.columns % x.columns, 0u);
  for (uint64_t block = 0; block < y.columns / x.columns; ++block) {
    for (uint64_t i = 0; i < y.rows; ++i) {
      const T* from = x.Row(block * y.rows + i);
      std::copy(from, from + x.columns, y.Row(i) + block * x.columns);
    }
  }
}

template <typename T>
void Stack(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  CHECK_EQ(x.elements(), y.elements());
  CHECK_EQ(x.columns % y.columns, 0u);
  for (uint64_t block = 0; block < x.columns / y.columns; ++block) {
    for (uint64_t i = 0; i < x.rows; ++i) {
      const T* from = x.Row(i) + block * y.columns;
      std::copy(from, from + y.columns, y.Row(block * x.rows + i));
    }
  }
}

template <typename T>
void Embedding(const KernelCall<T>& call) {
  const Operand<T>& table = call.reads[0];
  const Operand<T>& y = call.writes[0];
  ForEachToken(call, y, table, [&](uint64_t i, const T* row) {
    if (row == nullptr) {
      std::fill(y.Row(i), y.Row(i) + y.columns, T(0));
    } else {
      std::copy(row, row + y.columns, y.Row(i));
    }
  });
}

template <typename T>
void EmbeddingBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& d_table = call.writes[0];
  if (call.reads.size() == 1) {
    for (uint64_t i = 0; i < d_table.rows; ++i) {
      std::fill(d_table.Row(i), d_table.Row(i) + d_table.columns, T(0));
    }
  }
  ForEachToken(call, dy, d_table, [&](uint64_t i, T* row) {
    if (row == nullptr) return;
    const T* gradient = dy.Row(i);
    for (uint64_t j = 0; j < dy.columns; ++j) row[j] += gradient[j];
  });
}

REHEARSE_INSTANTIATE(Copy);
REHEARSE_INSTANTIATE(Accumulate);
REHEARSE_INSTANTIATE(Add);
REHEARSE_INSTANTIATE(Unstack);
REHEARSE_INSTANTIATE(Stack);
REHEARSE_INSTANTIATE(Embedding);
REHEARSE_INSTANTIATE(EmbeddingBackward);

}  // namespace rehearse::kernels
