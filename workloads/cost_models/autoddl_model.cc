#include "workloads/cost_models/autoddl_model.h"

#include <cmath>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// The factors of α and nβ in Table 2.
struct Shares {
  double alpha = 0;
  double beta = 0;
};

Shares SharesOf(CollectiveKind kind, uint32_t devices) {
  CHECK_GE(devices, 1u);
  CHECK(HasAutoddlTime(kind));
  const double passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const double others = devices - 1;
  return {passes * others, passes * others / devices};
}

}  // namespace

bool HasAutoddlTime(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllToAll;
}

Seconds AutoddlTime(CollectiveKind kind, uint32_t devices, Bytes bytes, const AlphaBeta& network) {
  const Shares shares = SharesOf(kind, devices);
  return shares.alpha * network.alpha + Seconds(shares.beta * bytes.value() * network.beta);
}

AlphaBeta FitAlphaBeta(const std::vector<AlphaBetaSample>& samples) {
  // The sums of the normal equations of T = a·α + b·β.
  double aa = 0, ab = 0, bb = 0, at = 0, bt = 0;
  for (const AlphaBetaSample& sample : samples) {
    const Shares shares = SharesOf(sample.kind, sample.devices);
    const double a = shares.alpha;
    const double b = shares.beta * sample.bytes.value();
    aa += a * a;
    ab += a * b;
    bb += b * b;
    at += a * sample.time.value();
    bt += b * sample.time.value();
  }
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 1e-12 * aa * bb))
    throw Error(
        fmt::format("{} measured collectives do not determine latency and bandwidth; "
                    "expected at least two sizes",
                    samples.size()));
  return {Seconds((at * bb - bt * ab) / determinant), (bt * aa - at * ab) / determinant};
}

AutoddlTerms TermsOf(const SbpProduct& product, const SbpNetwork& network) {
  const auto time = [&](CollectiveKind kind, const SbpFactor& factor, double elements) {
    return AutoddlTime(kind, factor.Size(), elements * network.element,
                       factor.nodes == 1 ? network.inside : network.between);
  };
  const auto sent = [&](const SbpFactor& factor, double elements) {
    return SharesOf(CollectiveKind::kAllGather, factor.Size()).beta * elements * network.element;
  };
  const SbpFactor& p0 = product.choice.p0;
  const SbpFactor& p1 = product.choice.p1;
  const SbpFactor& p2 = product.choice.p2;
  const double input = product.rows * product.k / p0.Size() / p2.Size();
  const double output = product.rows * product.n / p0.Size() / p1.Size();
  const double weight = product.k * product.n / p1.Size() / p2.Size();
  // To change p0 all devices exchange their shares of the rows × k matrix.
  const SbpFactor all{p0.nodes * p1.nodes * p2.nodes, p0.gpus * p1.gpus * p2.gpus};
  const double share = product.rows * product.k / all.Size();
  // Each term is that of forward, and the conjugate one of backward; the first product's input has
  // no gradient.
  AutoddlTerms terms;
  terms.gather_input = time(CollectiveKind::kAllGather, p1, input);
  if (!product.first) terms.scatter_input = time(CollectiveKind::kReduceScatter, p1, input);
  terms.scatter_output = time(CollectiveKind::kReduceScatter, p2, output);
  terms.gather_output = time(CollectiveKind::kAllGather, p2, output);
  terms.gradient = time(CollectiveKind::kAllReduce, p0, weight);
  terms.change = 2.0 * time(CollectiveKind::kAllToAll, all, share);
  terms.forward = sent(p1, input) + sent(p2, output);
  terms.forward_change = sent(all, share);
  return terms;
}

AutoddlPrediction PredictAutoddl(const std::vector<SbpProduct>& chain, const SbpNetwork& network) {
  AutoddlPrediction sum;
  for (size_t i = 0; i < chain.size(); ++i) {
    CHECK_EQ(chain[i].choice.Devices(), chain.front().choice.Devices());
    const bool changes = i > 0 && !(chain[i - 1].choice.p0 == chain[i].choice.p0);
    sum.Add(TermsOf(chain[i], network), changes);
  }
  return sum;
}

}  // namespace rehearse
