// The attention core of sequences that several ranks share: this rank's queries over the keys that
// it has been given, and the merging of such parts (Liu et al., Ring Attention, 2023).
//
//   P = exp(Q·Kᵀ/√size + mask - L),  O = P·V over the given keys; L counts these alone
//   two parts:  L = log(exp L₁ + exp L₂),  O = exp(L₁-L)·O₁ + exp(L₂-L)·O₂
// Backward takes the L and O of all keys, so that each part gives its share of dQ, dK and dV.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "real/kernels/blas.h"
#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"
#include "sim/schedule/attention_part.h"

namespace rehearse::kernels {
namespace {

// Columns of X are groups of q…, k, v; those of KV groups of k, v.
struct PartHeads {
  uint64_t groups;  // on this rank
  uint64_t heads;   // of a group
  uint64_t size;

  uint64_t QueryAt(uint64_t group, uint64_t head) const {
    return (group * (heads + 2) + head) * size;
  }
  uint64_t OutputAt(uint64_t group, uint64_t head) const { return (group * heads + head) * size; }
  uint64_t KeyAt(uint64_t group) const { return group * 2 * size; }
  uint64_t ValueAt(uint64_t group) const { return KeyAt(group) + size; }
};

// A part's queries and the runs of keys that it has of each sequence.
template <typename T>
class SequencePart {
 public:
  SequencePart(const KernelCall<T>& call, const Operand<T>& x, const Operand<T>& kv)
      : heads{call.Count(kAttentionGroups), call.Count(kAttentionHeadsOfGroup),
              call.Count(kAttentionHeadSize)},
        causal_(call.Count(kAttentionCausal) != 0),
        window_(call.Count(kAttentionWindow)),
        step_(static_cast<int64_t>(call.Attribute(kAttentionStep))) {
    order_.sequence = call.Count(kAttentionSequence);
    order_.parts = call.Count(kAttentionParts);
    order_.balanced = call.Count(kAttentionBalanced) != 0;
    CHECK_EQ(order_.sequence % order_.parts, 0u);
    CHECK_EQ(x.rows % length(), 0u);
    CHECK_EQ(x.columns, heads.groups * (heads.heads + 2) * heads.size);
    CHECK_EQ(kv.columns, heads.groups * 2 * heads.size);
    CHECK_EQ(kv.rows, step_ < 0 ? x.rows * order_.parts : x.rows);
    own_ = x.GlobalRow() / x.rows % order_.parts;
  }

  uint64_t length() const { return order_.Length(); }
  // How many runs of each sequence KV has.
  uint64_t runs() const { return step_ < 0 ? order_.parts : 1; }
  // The first row of KV of a run of the sequence whose queries begin at `row`.
  uint64_t KeyRow(uint64_t run, uint64_t row, uint64_t rows) const { return run * rows + row; }
  bool Sees(uint64_t query, uint64_t run, uint64_t key) const {
    if (!causal_) return true;
    const uint64_t q = order_.TokenOf(own_, query);
    const uint64_t k = order_.TokenOf(PartOfRun(run), key);
    return k <= q && (window_ == 0 || q - k < window_);
  }

  const PartHeads heads;

 private:
  uint64_t PartOfRun(uint64_t run) const {
    if (step_ < 0) return run;
    return (own_ + order_.parts - static_cast<uint64_t>(step_) % order_.parts) % order_.parts;
  }

  SequenceOrder order_;
  bool causal_;
  uint64_t window_;
  int64_t step_;
  uint64_t own_ = 0;
};

// This many columns of the rows of one run.
template <typename T>
Matrix<T> CutRun(const Matrix<T>& matrix, uint64_t row, uint64_t column, uint64_t rows,
                 uint64_t size) {
  return {matrix.Row(row) + column, rows, size, matrix.stride};
}

// exp(scores - log_sum) where a query sees a key, otherwise zero.
template <typename T>
void Weigh(const SequencePart<T>& part, uint64_t run, uint64_t query, T log_sum, T* scores) {
  for (uint64_t key = 0; key < part.length(); ++key) {
    scores[key] = part.Sees(query, run, key) ? std::exp(scores[key] - log_sum) : T(0);
  }
}

// The keys and values of a row and group in X, and those in their own array.
template <typename T, typename Copy>
void ForEachPair(const KernelCall<T>& call, const Operand<T>& x, const Operand<T>& kv,
                 const Copy& copy) {
  const uint64_t pair = 2 * call.Count(2);
  const uint64_t of_group = (call.Count(1) + 2) * call.Count(2);
  CHECK_EQ(kv.rows, x.rows);
  CHECK_EQ(kv.columns, call.Count(0) * pair);
  for (uint64_t i = 0; i < x.rows; ++i) {
    for (uint64_t group = 0; group < call.Count(0); ++group) {
      copy(x.Row(i) + (group + 1) * of_group - pair, kv.Row(i) + group * pair, pair);
    }
  }
}

}  // namespace

template <typename T>
void TakeKeys(const KernelCall<T>& call) {
  ForEachPair(call, call.reads[0], call.writes[0],
              [](const T* in_x, T* own, uint64_t count) { std::copy(in_x, in_x + count, own); });
}

template <typename T>
void PutKeys(const KernelCall<T>& call) {
  ForEachPair(call, call.writes[0], call.reads[0],
              [](T* in_x, const T* own, uint64_t count) { std::copy(own, own + count, in_x); });
}

template <typename T>
void AttentionPart(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& kv = call.reads[1];
  const Operand<T>& o = call.writes[0];
  const Operand<T>& l = call.writes[1];
  const SequencePart<T> part(call, x, kv);
  const PartHeads& heads = part.heads;
  const uint64_t length = part.length();
  const uint64_t keys = part.runs() * length;
  const T scale = 1 / std::sqrt(static_cast<T>(heads.size));
  constexpr T kNothing = -std::numeric_limits<T>::infinity();
  std::vector<T> memory(length * keys);
  const Matrix<T> p{memory.data(), length, keys, keys};
  for (uint64_t row = 0; row < x.rows; row += length) {
    for (uint64_t of_all = 0; of_all < heads.groups * heads.heads; ++of_all) {
      const uint64_t group = of_all / heads.heads;
      const uint64_t head = of_all % heads.heads;
      const Matrix<T> q = CutRun<T>(x, row, heads.QueryAt(group, head), length, heads.size);
      for (uint64_t run = 0; run < part.runs(); ++run) {
        const uint64_t at = part.KeyRow(run, row, x.rows);
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kYes, scale, q,
                            CutRun<T>(kv, at, heads.KeyAt(group), length, heads.size), T(0),
                            CutRun<T>(p, 0, run * length, length, length));
      }
      for (uint64_t i = 0; i < length; ++i) {
        T* scores = p.Row(i);
        T largest = kNothing;
        for (uint64_t j = 0; j < keys; ++j) {
          if (part.Sees(i, j / length, j % length)) largest = std::max(largest, scores[j]);
        }
        if (largest == kNothing) {  // no key of this part
          std::fill(scores, scores + keys, T(0));
          l.At(row + i, of_all) = kNothing;
          continue;
        }
        for (uint64_t run = 0; run < part.runs(); ++run)
          Weigh(part, run, i, largest, scores + run * length);
        T sum = 0;
        for (uint64_t j = 0; j < keys; ++j) sum += scores[j];
        for (uint64_t j = 0; j < keys; ++j) scores[j] /= sum;
        l.At(row + i, of_all) = largest + std::log(sum);
      }
      for (uint64_t run = 0; run < part.runs(); ++run) {
        const uint64_t at = part.KeyRow(run, row, x.rows);
        MultiplyMatrices<T>(
            Transposed::kNo, Transposed::kNo, T(1), CutRun<T>(p, 0, run * length, length, length),
            CutRun<T>(kv, at, heads.ValueAt(group), length, heads.size), T(run == 0 ? 0 : 1),
            CutRun<T>(o, row, heads.OutputAt(group, head), length, heads.size));
      }
    }
  }
}

template <typename T>
void AttentionPartBackward(const KernelCall<T>& call) {
  const Operand<T>& d_output = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& kv = call.reads[2];
  const Operand<T>& o = call.reads[3];
  const Operand<T>& l = call.reads[4];
  const bool adds = call.reads.size() > 5;  // to dQ of other keys
  const Operand<T>& dx = call.writes[0];
  const Operand<T>& dkv = call.writes[1];
  const SequencePart<T> part(call, x, kv);
  const PartHeads& heads = part.heads;
  const uint64_t length = part.length();
  const T scale = 1 / std::sqrt(static_cast<T>(heads.size));
  std::vector<T> memory(2 * length * length);
  const Matrix<T> p{memory.data(), length, length, length};
  const Matrix<T> ds{memory.data() + length * length, length, length, length};
  for (uint64_t row = 0; row < x.rows; row += length) {
    for (uint64_t of_all = 0; of_all < heads.groups * heads.heads; ++of_all) {
      const uint64_t group = of_all / heads.heads;
      const uint64_t head = of_all % heads.heads;
      const Matrix<T> q = CutRun<T>(x, row, heads.QueryAt(group, head), length, heads.size);
      const Matrix<T> dq = CutRun<T>(dx, row, heads.QueryAt(group, head), length, heads.size);
      const uint64_t output = heads.OutputAt(group, head);
      const Matrix<T> out = CutRun<T>(o, row, output, length, heads.size);
      const Matrix<T> dout = CutRun<T>(d_output, row, output, length, heads.size);
      for (uint64_t run = 0; run < part.runs(); ++run) {
        const uint64_t at = part.KeyRow(run, row, x.rows);
        const auto cut = [&](const Matrix<T>& of, uint64_t column) {
          return CutRun<T>(of, at, column, length, heads.size);
        };
        const Matrix<T> k = cut(kv, heads.KeyAt(group));
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kYes, scale, q, k, T(0), p);
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kYes, T(1), dout,
                            cut(kv, heads.ValueAt(group)), T(0), ds);
        for (uint64_t i = 0; i < length; ++i) {
          T d = 0;
          for (uint64_t j = 0; j < heads.size; ++j) d += dout.At(i, j) * out.At(i, j);
          Weigh(part, run, i, l.At(row + i, of_all), p.Row(i));
          for (uint64_t j = 0; j < length; ++j)
            ds.At(i, j) = p.At(i, j) * (ds.At(i, j) - d) * scale;
        }
        const T add = head == 0 ? T(0) : T(1);  // the group's heads share keys and values
        MultiplyMatrices<T>(Transposed::kNo, Transposed::kNo, T(1), ds, k,
                            T(adds || run > 0 ? 1 : 0), dq);
        MultiplyMatrices<T>(Transposed::kYes, Transposed::kNo, T(1), ds, q, add,
                            cut(dkv, heads.KeyAt(group)));
        MultiplyMatrices<T>(Transposed::kYes, Transposed::kNo, T(1), p, dout, add,
                            cut(dkv, heads.ValueAt(group)));
      }
    }
  }
}

template <typename T>
void AttentionMerge(const KernelCall<T>& call) {
  const Operand<T>& part = call.reads[0];
  const Operand<T>& l_part = call.reads[1];
  const Operand<T>& o = call.writes[0];
  const Operand<T>& l = call.writes[1];
  CHECK_EQ(part.columns, o.columns);
  CHECK_EQ(part.rows, o.rows);
  CHECK_EQ(l_part.columns, l.columns);
  const uint64_t size = o.columns / l.columns;
  for (uint64_t i = 0; i < o.rows; ++i) {
    for (uint64_t head = 0; head < l.columns; ++head) {
      const T first = l.At(i, head);
      const T second = l_part.At(i, head);
      const T largest = std::max(first, second);
      if (std::isinf(largest)) continue;  // neither has seen a key
      const T sum = std::exp(first - largest) + std::exp(second - largest);
      const T of_first = std::exp(first - largest) / sum;
      const T of_second = std::exp(second - largest) / sum;
      for (uint64_t j = head * size; j < (head + 1) * size; ++j)
        o.At(i, j) = of_first * o.At(i, j) + of_second * part.At(i, j);
      l.At(i, head) = largest + std::log(sum);
    }
  }
}

template <typename T>
void OrderSequences(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  CHECK_EQ(x.rows, y.rows);
  CHECK_EQ(x.columns, y.columns);
  SequenceOrder order;
  order.sequence = call.Count(0);
  order.parts = call.Count(1);
  order.block = x.rows;
  order.balanced = call.Count(2) != 0;
  const bool back = call.Count(3) != 0;
  for (uint64_t i = 0; i < x.rows; ++i) {
    const uint64_t in_sequences = order.InSequences(i);
    const T* from = x.Row(back ? in_sequences : i);
    std::copy(from, from + x.columns, y.Row(back ? i : in_sequences));
  }
}

REHEARSE_INSTANTIATE(TakeKeys);
REHEARSE_INSTANTIATE(PutKeys);
REHEARSE_INSTANTIATE(AttentionPart);
REHEARSE_INSTANTIATE(AttentionPartBackward);
REHEARSE_INSTANTIATE(AttentionMerge);
REHEARSE_INSTANTIATE(OrderSequences);

}  // namespace rehearse::kernels
