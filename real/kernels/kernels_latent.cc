// Latent attention: moves queries, keys, values and the key's shared columns between their own
// arrays and the groups of an attention core.
#include <algorithm>

#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

// A head's columns: in Q its q, in KV the k's own part and the v, in R what all keys end with.
template <typename T>
struct JoinedHeads {
  JoinedHeads(const KernelCall<T>& call, const Operand<T>& query, const Operand<T>& keys,
              const Operand<T>& shared, const Operand<T>& joined)
      : q{query},
        kv{keys},
        r{shared},
        x{joined},
        heads{call.Count(0)},
        query_size{call.Count(1)},
        shared_size{call.Count(2)},
        value_size{call.Count(3)},
        own_size{query_size - shared_size} {
    CHECK_EQ(q.columns, heads * query_size);
    CHECK_EQ(kv.columns, heads * (own_size + value_size));
    CHECK_EQ(r.columns, shared_size);
    CHECK_EQ(x.columns, heads * (2 * query_size + value_size));
    CHECK_EQ(q.rows, x.rows);
    CHECK_EQ(kv.rows, x.rows);
    CHECK_EQ(r.rows, x.rows);
  }

  const Operand<T>&q, &kv, &r, &x;
  uint64_t heads, query_size, shared_size, value_size, own_size;
};

}  // namespace

template <typename T>
void JoinHeads(const KernelCall<T>& call) {
  const JoinedHeads<T> of(call, call.reads[0], call.reads[1], call.reads[2], call.writes[0]);
  for (uint64_t row = 0; row < of.x.rows; ++row) {
    T* x = &of.x.At(row, 0);
    const T* q = &of.q.At(row, 0);
    const T* kv = &of.kv.At(row, 0);
    for (uint64_t head = 0; head < of.heads; ++head) {
      x = std::copy_n(q, of.query_size, x);
      x = std::copy_n(kv, of.own_size, x);
      x = std::copy_n(&of.r.At(row, 0), of.shared_size, x);
      x = std::copy_n(kv + of.own_size, of.value_size, x);
      q += of.query_size;
      kv += of.own_size + of.value_size;
    }
  }
}

template <typename T>
void SplitHeads(const KernelCall<T>& call) {
  const JoinedHeads<T> of(call, call.writes[0], call.writes[1], call.writes[2], call.reads[0]);
  for (uint64_t row = 0; row < of.x.rows; ++row) {
    const T* x = &of.x.At(row, 0);
    T* q = &of.q.At(row, 0);
    T* kv = &of.kv.At(row, 0);
    T* const r = &of.r.At(row, 0);
    std::fill_n(r, of.shared_size, T(0));
    for (uint64_t head = 0; head < of.heads; ++head) {
      q = std::copy_n(x, of.query_size, q);
      kv = std::copy_n(x + of.query_size, of.own_size, kv);
      const T* const shared = x + of.query_size + of.own_size;
      for (uint64_t i = 0; i < of.shared_size; ++i) r[i] += shared[i];
      kv = std::copy_n(shared + of.shared_size, of.value_size, kv);
      x += 2 * of.query_size + of.value_size;
    }
  }
}

REHEARSE_INSTANTIATE(JoinHeads);
REHEARSE_INSTANTIATE(SplitHeads);

}  // namespace rehearse::kernels
