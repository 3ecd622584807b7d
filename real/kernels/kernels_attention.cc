// The attention core, forward and backward, head by head: products by OpenBLAS over one sequence of
// one head, softmax between them.
//
//   P = exp(Q·Kᵀ/√size + mask - L),  O = P·V
//   dV = Pᵀ·dO,  dS = P∘(dO·Vᵀ - D)/√size with D = row sums of dO∘O,  dQ = dS·K,  dK = dSᵀ·Q
// Backward recomputes P from L, the logarithm of the sum of exponentials (Dao et al. 2022).
#include <algorithm>
#include <cmath>
#include <vector>

#include "real/kernels/blas.h"
#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"
#include "sim/schedule/attention_part.h"

namespace rehearse::kernels {
namespace {

struct Heads {
  uint64_t sequence;
  uint64_t groups;  // on this rank
  uint64_t heads;   // queries a group; they share one key and one value
  uint64_t size;
  bool causal;
  uint64_t window;  // tokens that a causal query sees; 0: all before it
  uint64_t value_size;

  uint64_t GroupColumns() const { return (heads + 1) * size + value_size; }
  // The first columns of each part, in a row of X and then in one of O.
  uint64_t QueryAt(uint64_t group, uint64_t head) const {
    return group * GroupColumns() + head * size;
  }
  uint64_t KeyAt(uint64_t group) const { return QueryAt(group, heads); }
  uint64_t ValueAt(uint64_t group) const { return QueryAt(group, heads + 1); }
  uint64_t OutputAt(uint64_t group, uint64_t head) const {
    return (group * heads + head) * value_size;
  }
};

template <typename T>
Heads HeadsOf(const KernelCall<T>& call, const Operand<T>& x, const Operand<T>& o,
              const Operand<T>& l) {
  const bool has_window = call.compute.attributes.size() > kAttentionWindow;
  const bool has_value_size = call.compute.attributes.size() > kAttentionValueSize;
  const Heads heads{call.Count(0),
                    call.Count(1),
                    call.Count(2),
                    call.Count(3),
                    call.Count(4) != 0,
                    has_window ? call.Count(kAttentionWindow) : 0,
                    call.Count(has_value_size ? kAttentionValueSize : kAttentionHeadSize)};
  CHECK_EQ(x.columns, heads.groups * heads.GroupColumns());
  CHECK_EQ(o.columns, heads.groups * heads.heads * heads.value_size);
  CHECK_EQ(l.columns, heads.groups * heads.heads);
  CHECK_EQ(o.rows, x.rows);
  CHECK_EQ(l.rows, x.rows);
  CHECK_EQ(x.rows % heads.sequence, 0u);
  return heads;
}

// The columns of one head in the rows of one sequence: a q's or k's, or a v's.
template <typename T>
Matrix<T> Cut(const Matrix<T>& matrix, uint64_t row, uint64_t column, const Heads& heads) {
  return {matrix.Row(row) + column, heads.sequence, heads.size, matrix.stride};
}
template <typename T>
Matrix<T> CutValue(const Matrix<T>& matrix, uint64_t row, uint64_t column, const Heads& heads) {
  return {matrix.Row(row) + column, heads.sequence, heads.value_size, matrix.stride};
}

// The end of the keys that query i attends to, and their beginning.
uint64_t KeysOf(const Heads& heads, uint64_t i) { return heads.causal ? i + 1 : heads.sequence; }
uint64_t FirstKeyOf(const Heads& heads, uint64_t i) {
  const bool is_cut = heads.causal && heads.window > 0 && i >= heads.window;
  return is_cut ? i + 1 - heads.window : 0;
}

}  // namespace

template <typename T>
void Attention(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& o = call.writes[0];
  const Operand<T>& l = call.writes[1];
  const Heads heads = HeadsOf(call, x, o, l);
  const T scale = 1 / std::sqrt(static_cast<T>(heads.size));
  std::vector<T> memory(heads.sequence * heads.sequence);
  const Matrix<T> p{memory.data(), heads.sequence, heads.sequence, heads.sequence};
  for (uint64_t row = 0; row < x.rows; row += heads.sequence) {
    for (uint64_t group = 0; group < heads.groups; ++group) {
      const Matrix<T> k = Cut<T>(x, row, heads.KeyAt(group), heads);
      const Matrix<T> v = CutValue<T>(x, row, heads.ValueAt(group), heads);
      for (uint64_t head = 0; head < heads.heads; ++head) {
        const Matrix<T> q = Cut<T>(x, row, heads.QueryAt(group, head), heads);
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kYes, scale, q, k, T(0), p);
        for (uint64_t i = 0; i < heads.sequence; ++i) {
          T* scores = p.Row(i);
          const uint64_t keys = KeysOf(heads, i);
          const uint64_t first = FirstKeyOf(heads, i);
          const T largest = *std::max_element(scores + first, scores + keys);
          T sum = 0;
          for (uint64_t j = first; j < keys; ++j) {
            scores[j] = std::exp(scores[j] - largest);
            sum += scores[j];
          }
          for (uint64_t j = first; j < keys; ++j) scores[j] /= sum;
          std::fill(scores, scores + first, T(0));
          std::fill(scores + keys, scores + heads.sequence, T(0));
          l.At(row + i, group * heads.heads + head) = largest + std::log(sum);
        }
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kNo, T(1), p, v, T(0),
                            CutValue<T>(o, row, heads.OutputAt(group, head), heads));
      }
    }
  }
}

template <typename T>
void AttentionBackward(const KernelCall<T>& call) {
  const Operand<T>& d_output = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& o = call.reads[2];
  const Operand<T>& l = call.reads[3];
  const Operand<T>& dx = call.writes[0];
  const Heads heads = HeadsOf(call, x, o, l);
  CHECK_EQ(dx.columns, x.columns);
  CHECK_EQ(dx.rows, x.rows);
  CHECK_EQ(d_output.columns, o.columns);
  const T scale = 1 / std::sqrt(static_cast<T>(heads.size));
  const uint64_t s = heads.sequence;
  std::vector<T> memory(2 * s * s);
  const Matrix<T> p{memory.data(), s, s, s};
  const Matrix<T> ds{memory.data() + s * s, s, s, s};
  for (uint64_t row = 0; row < x.rows; row += s) {
    for (uint64_t group = 0; group < heads.groups; ++group) {
      const Matrix<T> k = Cut<T>(x, row, heads.KeyAt(group), heads);
      const Matrix<T> v = CutValue<T>(x, row, heads.ValueAt(group), heads);
      const Matrix<T> dk = Cut<T>(dx, row, heads.KeyAt(group), heads);
      const Matrix<T> dv = CutValue<T>(dx, row, heads.ValueAt(group), heads);
      for (uint64_t head = 0; head < heads.heads; ++head) {
        const Matrix<T> q = Cut<T>(x, row, heads.QueryAt(group, head), heads);
        const uint64_t output = heads.OutputAt(group, head);
        const Matrix<T> out = CutValue<T>(o, row, output, heads);
        const Matrix<T> dout = CutValue<T>(d_output, row, output, heads);
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kYes, scale, q, k, T(0), p);
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kYes, T(1), dout, v, T(0), ds);
        for (uint64_t i = 0; i < s; ++i) {
          T* probability = p.Row(i);
          T* gradient = ds.Row(i);
          const uint64_t keys = KeysOf(heads, i);
          const T log_sum = l.At(row + i, group * heads.heads + head);
          T d = 0;
          for (uint64_t j = 0; j < heads.value_size; ++j) d += dout.At(i, j) * out.At(i, j);
          const uint64_t first = FirstKeyOf(heads, i);
          for (uint64_t j = first; j < keys; ++j) {
            probability[j] = std::exp(probability[j] - log_sum);
            gradient[j] = probability[j] * (gradient[j] - d) * scale;
          }
          std::fill(probability, probability + first, T(0));
          std::fill(gradient, gradient + first, T(0));
          std::fill(probability + keys, probability + s, T(0));
          std::fill(gradient + keys, gradient + s, T(0));
        }
        const T add = head == 0 ? T(0) : T(1);  // the group's heads share keys and values
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kNo, T(1), ds, k, T(0),
                            Cut<T>(dx, row, heads.QueryAt(group, head), heads));
        MultiplyMatrices<T>(Transposed::kYes, Transposed::kNo, T(1), ds, q, add, dk);
        MultiplyMatrices<T>(Transposed::kYes, Transposed::kNo, T(1), p, dout, add, dv);
      }
    }
  }
}

REHEARSE_INSTANTIATE(Attention);
REHEARSE_INSTANTIATE(AttentionBackward);

}  // namespace rehearse::kernels
