// The loss and its gradient, with columns (classes) that may be split over ranks.
#include <algorithm>
#include <cmath>

#include "real/kernels/kernel_rows.h"
#include "real/kernels/numbers.h"
#include "sim/base/error.h"

namespace rehearse::kernels {
namespace {

// How many tokens further ahead than the next one a row's label is, and the weight of its loss.
template <typename T>
uint64_t AheadOf(const KernelCall<T>& call) {
  return call.compute.attributes.empty() ? 0 : call.Count(0);
}
template <typename T>
T WeightOf(const KernelCall<T>& call) {
  return call.compute.attributes.size() < 2 ? T(1) : static_cast<T>(call.Attribute(1));
}

// Which of x's columns is the label of row i; it is x.columns or more if another rank has it.
template <typename T>
uint64_t LabelColumn(const KernelCall<T>& call, const Operand<T>& x, uint64_t i) {
  const uint64_t label =
      LabelAt(call.facts.seed, call.BatchRow(x, i) + AheadOf(call), x.GlobalColumns());
  return label - x.GlobalColumn();  // labels left of ours wrap around and are too large
}

template <typename T>
void RecordLoss(const KernelCall<T>& call, uint64_t row, uint64_t column, T loss) {
  if (call.facts.keep_loss) call.losses->push_back({row, column, static_cast<double>(loss)});
}

}  // namespace

template <typename T>
void Maximum(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& maximum = call.writes[0];
  CHECK_EQ(maximum.rows, x.rows);
  for (uint64_t i = 0; i < x.rows; ++i) {
    maximum.At(i, 0) = *std::max_element(x.Row(i), x.Row(i) + x.columns);
  }
}

template <typename T>
void Exponentials(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& maximum = call.reads[1];
  const Operand<T>& e = call.writes[0];
  const Operand<T>& s = call.writes[1];
  CHECK_EQ(e.elements(), x.elements());
  CHECK_EQ(maximum.rows, x.rows);
  CHECK_EQ(s.rows, x.rows);
  CHECK_EQ(s.columns, 2u);
  for (uint64_t i = 0; i < x.rows; ++i) {
    const T* from = x.Row(i);
    T* to = e.Row(i);
    const T largest = maximum.At(i, 0);
    const uint64_t label = LabelColumn(call, x, i);
    s.At(i, 1) = label < x.columns ? from[label] - largest : T(0);  // before `to` covers it
    T sum = 0;
    for (uint64_t j = 0; j < x.columns; ++j) {
      to[j] = std::exp(from[j] - largest);
      sum += to[j];
    }
    s.At(i, 0) = sum;
  }
}

template <typename T>
void CrossEntropy(const KernelCall<T>& call) {
  const Operand<T>& s = call.reads[0];
  const Operand<T>& loss = call.writes[0];
  CHECK_EQ(loss.rows, s.rows);
  // Either of the two may say which rows these are.
  const Operand<T>& placed = s.place != nullptr ? s : loss;
  for (uint64_t i = 0; i < s.rows; ++i) {
    loss.At(i, 0) = WeightOf(call) * (std::log(s.At(i, 0)) - s.At(i, 1));
    RecordLoss(call, call.BatchRow(placed, i), AheadOf(call), loss.At(i, 0));
  }
}

template <typename T>
void CrossEntropyBackward(const KernelCall<T>& call) {
  const Operand<T>& e = call.reads[0];
  const Operand<T>& s = call.reads[1];
  const Operand<T>& dx = call.writes[0];
  CHECK_EQ(dx.elements(), e.elements());
  CHECK_EQ(s.rows, e.rows);
  const Operand<T>& placed = e.place != nullptr ? e : dx;
  const T share = WeightOf(call) * static_cast<T>(1 / call.facts.tokens);
  for (uint64_t i = 0; i < e.rows; ++i) {
    const T* from = e.Row(i);
    T* to = dx.Row(i);
    const T factor = share / s.At(i, 0);
    for (uint64_t j = 0; j < e.columns; ++j) to[j] = from[j] * factor;
    const uint64_t label = LabelColumn(call, placed, i);
    if (label < e.columns) to[label] -= share;
  }
}

template <typename T>
void SquaredError(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& loss = call.writes[0];
  const Operand<T>& dx = call.writes[1];
  CHECK_EQ(loss.rows, x.rows);
  CHECK_EQ(dx.elements(), x.elements());
  const T share = static_cast<T>(1 / call.facts.tokens);
  for (uint64_t i = 0; i < x.rows; ++i) {
    T sum = 0;
    const uint64_t row = call.BatchRow(x, i);
    for (uint64_t j = 0; j < x.columns; ++j) {
      const T error =
          x.At(i, j) - static_cast<T>(TargetAt(call.facts.seed, row, x.GlobalColumn() + j));
      sum += error * error / 2;
      dx.At(i, j) = error * share;
    }
    loss.At(i, 0) = sum;
    RecordLoss(call, row, x.GlobalColumn(), sum);
  }
}

REHEARSE_INSTANTIATE(Maximum);
REHEARSE_INSTANTIATE(Exponentials);
REHEARSE_INSTANTIATE(CrossEntropy);
REHEARSE_INSTANTIATE(CrossEntropyBackward);
REHEARSE_INSTANTIATE(SquaredError);

}  // namespace rehearse::kernels
