// Kernels of experts: which rows they take, their products, and the weights of their results.
#include <algorithm>
#include <cmath>
#include <vector>

#include "real/kernels/blas.h"
#include "real/kernels/kernel_rows.h"
#include "sim/base/error.h"
#include "sim/schedule/expert_routing.h"

namespace rehearse::kernels {
namespace {

// The choices of the tokens that an operand has.
class TokenChoices {
 public:
  template <typename T>
  TokenChoices(const KernelCall<T>& call, const Operand<T>& tokens)
      : routing_(MakeRouting(call.compute.attributes)), rows_(tokens.rows) {
    CHECK_EQ(rows_ % routing_.period, 0u);
    first_.resize(routing_.experts + 1);
    for (uint32_t expert = 0; expert < routing_.experts; ++expert) {
      first_[expert + 1] = first_[expert] + routing_.loads[expert] * (rows_ / routing_.period);
    }
  }

  const ExpertRouting& routing() const { return routing_; }
  uint64_t kept() const { return first_.back(); }

  // Calls visit(index of the token, which of its choices, row) for each choice that is accepted.
  template <typename T, typename Visit>
  void ForEachRow(const Operand<T>& tokens, const Visit& visit) const {
    std::vector<uint64_t> next(first_.begin(), first_.end() - 1);
    for (uint64_t i = 0; i < rows_; ++i) {
      const uint64_t in_run = tokens.RowOf(i) % routing_.period;
      for (uint32_t j = 0; j < routing_.per_token; ++j) {
        const int32_t expert = routing_.choices[in_run * routing_.per_token + j];
        if (expert != ExpertRouting::kDropped) visit(i, j, next[static_cast<size_t>(expert)]++);
      }
    }
    for (uint32_t expert = 0; expert < routing_.experts; ++expert)
      CHECK_EQ(next[expert], first_[expert + 1]);
  }

  const int32_t* AskedBy(uint64_t row) const {
    return &routing_.asked[row % routing_.period * routing_.per_token];
  }

 private:
  ExpertRouting routing_;
  uint64_t rows_;
  std::vector<uint64_t> first_;  // row of each expert
};

// Scores of all experts for a token, their sum, and the sum of those that it chooses.
struct Scores {
  std::vector<double> of;
  double all = 0;
  double asked = 0;
};

template <typename T>
Scores ScoresOf(const T* logits, const ExpertRouting& routing, const int32_t* asked,
                bool is_sigmoid) {
  Scores scores;
  const uint32_t experts = routing.experts;
  const double most = static_cast<double>(*std::max_element(logits, logits + experts));
  for (uint32_t e = 0; e < experts; ++e) {
    const double x = static_cast<double>(logits[e]);
    scores.of.push_back(is_sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x - most));
    scores.all += scores.of.back();
  }
  for (uint32_t j = 0; j < routing.per_token; ++j)
    scores.asked += scores.of[static_cast<size_t>(asked[j])];
  // A single sigmoid is the weight itself.
  if (is_sigmoid && routing.per_token == 1) scores.asked = 1;
  return scores;
}

// How often each expert is chosen, as a share of all choices.
std::vector<double> SharesOf(const ExpertRouting& routing) {
  std::vector<double> shares(routing.experts);
  for (const int32_t expert : routing.asked)
    shares[static_cast<size_t>(expert)] += 1 / static_cast<double>(routing.asked.size());
  return shares;
}

template <typename T>
Matrix<T> Rows(const Matrix<T>& matrix, uint64_t row, uint64_t rows) {
  return {matrix.Row(row), rows, matrix.columns, matrix.stride};
}

}  // namespace

template <typename T>
void Route(const KernelCall<T>& call) {
  const Operand<T>& logits = call.reads[0];
  const Operand<T>& weights = call.writes[0];
  const Operand<T>& counts = call.writes[1];
  const TokenChoices choices(call, weights);
  const ExpertRouting& routing = choices.routing();
  CHECK_EQ(logits.rows, weights.rows);
  CHECK_EQ(logits.columns, routing.experts);
  CHECK_EQ(weights.columns, routing.per_token);
  CHECK_EQ(counts.elements(), routing.experts);
  const bool is_sigmoid = call.Attribute(kRoutingSigmoid) != 0;
  for (uint64_t i = 0; i < weights.rows; ++i) {
    const int32_t* const asked = choices.AskedBy(weights.RowOf(i));
    const Scores scores = ScoresOf(logits.Row(i), routing, asked, is_sigmoid);
    for (uint32_t j = 0; j < routing.per_token; ++j)
      weights.At(i, j) = static_cast<T>(scores.of[static_cast<size_t>(asked[j])] / scores.asked);
  }
  const uint64_t runs = weights.rows / routing.period;
  for (uint32_t e = 0; e < routing.experts; ++e)
    counts.data[e] = static_cast<T>(routing.loads[e] * runs);
}

template <typename T>
void RouteBackward(const KernelCall<T>& call) {
  const Operand<T>& dw = call.reads[0];
  const Operand<T>& logits = call.reads[1];
  const Operand<T>& dl = call.writes[0];
  const TokenChoices choices(call, dl);
  const ExpertRouting& routing = choices.routing();
  const bool is_sigmoid = call.Attribute(kRoutingSigmoid) != 0;
  const bool is_weight = is_sigmoid && routing.per_token == 1;
  const std::vector<double> shares = SharesOf(routing);
  const double auxiliary = call.Attribute(kRoutingAuxiliary) * routing.experts / call.facts.tokens;
  for (uint64_t i = 0; i < dl.rows; ++i) {
    const int32_t* const asked = choices.AskedBy(dl.RowOf(i));
    const Scores scores = ScoresOf(logits.Row(i), routing, asked, is_sigmoid);
    // Gradient of the scores: first from the balancing loss, then from the weights.
    std::vector<double> ds(routing.experts);
    double balance = 0;
    for (uint32_t e = 0; e < routing.experts; ++e)
      balance += auxiliary * shares[e] * scores.of[e] / scores.all;
    for (uint32_t e = 0; e < routing.experts; ++e)
      ds[e] = (auxiliary * shares[e] - balance) / scores.all;
    double mean = 0;
    for (uint32_t j = 0; j < routing.per_token && !is_weight; ++j) {
      mean += static_cast<double>(dw.At(i, j)) * scores.of[static_cast<size_t>(asked[j])] /
              scores.asked;
    }
    for (uint32_t j = 0; j < routing.per_token; ++j) {
      ds[static_cast<size_t>(asked[j])] += (static_cast<double>(dw.At(i, j)) - mean) / scores.asked;
    }
    for (uint32_t e = 0; e < routing.experts; ++e) {
      const double slope = is_sigmoid ? scores.of[e] * (1 - scores.of[e]) : scores.of[e];
      dl.At(i, e) = static_cast<T>(ds[e] * slope);
    }
  }
}

template <typename T>
void Permute(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  const TokenChoices choices(call, x);
  CHECK_EQ(y.rows, choices.kept());
  CHECK_EQ(y.columns, x.columns);
  choices.ForEachRow(x, [&](uint64_t token, uint32_t, uint64_t row) {
    std::copy(x.Row(token), x.Row(token) + x.columns, y.Row(row));
  });
}

template <typename T>
void PermuteBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& dx = call.writes[0];
  const TokenChoices choices(call, dx);
  CHECK_EQ(dy.rows, choices.kept());
  for (uint64_t i = 0; i < dx.rows; ++i) std::fill(dx.Row(i), dx.Row(i) + dx.columns, T(0));
  choices.ForEachRow(dx, [&](uint64_t token, uint32_t, uint64_t row) {
    for (uint64_t c = 0; c < dx.columns; ++c) dx.At(token, c) += dy.At(row, c);
  });
}

template <typename T>
void Combine(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& weights = call.reads[1];
  const Operand<T>& y = call.writes[0];
  const TokenChoices choices(call, y);
  CHECK_EQ(x.rows, choices.kept());
  for (uint64_t i = 0; i < y.rows; ++i) std::fill(y.Row(i), y.Row(i) + y.columns, T(0));
  choices.ForEachRow(y, [&](uint64_t token, uint32_t choice, uint64_t row) {
    const T weight = weights.At(token, choice);
    for (uint64_t c = 0; c < y.columns; ++c) y.At(token, c) += weight * x.At(row, c);
  });
}

template <typename T>
void CombineBackward(const KernelCall<T>& call) {
  const Operand<T>& dy = call.reads[0];
  const Operand<T>& x = call.reads[1];
  const Operand<T>& weights = call.reads[2];
  const Operand<T>& dx = call.writes[0];
  const Operand<T>& dw = call.writes[1];
  const TokenChoices choices(call, dy);
  CHECK_EQ(dx.rows, choices.kept());
  for (uint64_t i = 0; i < dw.rows; ++i) std::fill(dw.Row(i), dw.Row(i) + dw.columns, T(0));
  choices.ForEachRow(dy, [&](uint64_t token, uint32_t choice, uint64_t row) {
    const T weight = weights.At(token, choice);
    T sum = 0;
    for (uint64_t c = 0; c < dy.columns; ++c) {
      sum += dy.At(token, c) * x.At(row, c);
      dx.At(row, c) = weight * dy.At(token, c);
    }
    dw.At(token, choice) = sum;
  });
}

template <typename T>
void OrderChunks(const KernelCall<T>& call) {
  const Operand<T>& x = call.reads[0];
  const Operand<T>& y = call.writes[0];
  CHECK_EQ(x.elements(), y.elements());
  const uint64_t sources = call.Count(0);
  const bool back = call.Attribute(1) != 0;
  const size_t experts = call.compute.attributes.size() - 2;
  uint64_t of_source = 0;
  for (size_t e = 0; e < experts; ++e) of_source += call.Count(2 + e);
  uint64_t by_expert = 0;
  uint64_t before = 0;  // rows of a source for experts before
  for (size_t e = 0; e < experts; ++e) {
    const uint64_t rows = call.Count(2 + e);
    for (uint64_t source = 0; source < sources; ++source, by_expert += rows) {
      const uint64_t by_source = source * of_source + before;
      for (uint64_t i = 0; i < rows; ++i) {
        const T* const from = x.Row((back ? by_expert : by_source) + i);
        std::copy(from, from + x.columns, y.Row((back ? by_source : by_expert) + i));
      }
    }
    before += rows;
  }
  CHECK_EQ(by_expert, x.rows);
}

template <typename T>
void GroupedGemm(const KernelCall<T>& call) {
  const GemmMode mode = call.compute.gemm.mode;
  const Operand<T>& a = call.reads[0];
  const Operand<T>& b = call.reads[1];
  const Operand<T>& c = call.writes[0];
  const bool makes_weights = mode == GemmMode::kTN;
  const bool are_side_by_side = call.Attribute(0) != 0;
  const size_t experts = call.compute.attributes.size() - 1;
  const Operand<T>& weights = makes_weights ? c : b;
  const T beta = call.reads.size() > 2 ? T(1) : T(0);
  uint64_t row = 0;
  for (size_t e = 0; e < experts; ++e) {
    const uint64_t rows = call.Count(1 + e);
    const uint64_t of_one = (are_side_by_side ? weights.columns : weights.rows) / experts;
    const Matrix<T> w = are_side_by_side ? Matrix<T>{weights.data + e * of_one, weights.rows,
                                                     of_one, weights.stride}
                                         : Rows<T>(weights, e * of_one, of_one);
    if (rows == 0 && makes_weights && beta == T(0)) {
      for (uint64_t i = 0; i < w.rows; ++i) std::fill(w.Row(i), w.Row(i) + w.columns, T(0));
    }
    if (rows == 0) continue;
    const Matrix<T> left = Rows<T>(a, row, rows);
    if (makes_weights) {
      CHECK_EQ(w.rows, a.columns);
      CHECK_EQ(w.columns, b.columns);
      MultiplyMatrices<T>(Transposed::kYes, Transposed::kNo, T(1), left, Rows<T>(b, row, rows),
                          beta, w);
    } else {
      const bool is_forward = mode == GemmMode::kNT;
      CHECK_EQ(is_forward ? w.columns : w.rows, a.columns);
      CHECK_EQ(is_forward ? w.rows : w.columns, c.columns);
      MultiplyMatrices<T>(Transposed::kNo, is_forward ? Transposed::kYes : Transposed::kNo, T(1),
                          left, w, beta, Rows<T>(c, row, rows));
    }
    row += rows;
  }
  CHECK_EQ(row, a.rows);
}

REHEARSE_INSTANTIATE(Route);
REHEARSE_INSTANTIATE(RouteBackward);
REHEARSE_INSTANTIATE(Permute);
REHEARSE_INSTANTIATE(PermuteBackward);
REHEARSE_INSTANTIATE(Combine);
REHEARSE_INSTANTIATE(CombineBackward);
REHEARSE_INSTANTIATE(OrderChunks);
REHEARSE_INSTANTIATE(GroupedGemm);

}  // namespace rehearse::kernels
