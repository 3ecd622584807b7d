#include "workloads/cost_models/axonn_model.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kElement = 2;   // bf16
constexpr double kGradient = 4;  // fp32

// The time of eq. 2, (p-1)/p · bytes / bandwidth, which is half of eq. 1's.
Seconds HalfRing(uint32_t ranks, double bytes, BytesPerSecond bandwidth) {
  return Bytes(bytes * (ranks - 1) / ranks) / bandwidth;
}

}  // namespace

const AxonnBandwidths& PerlmutterBandwidths() {
  static const AxonnBandwidths bandwidths = [] {
    constexpr double kGiB = 1073741824.0;  // the script divides bytes by 1024^3
    AxonnBandwidths table;
    table.name = "perlmutter";
    table.source = "axonn-ai/Megatron-AxoNN 885d2e75, examples/comm_model.py";
    table.gpus_per_node = 4;
    table.inter = BytesPerSecond(80 * kGiB);
    table.intra[{1, 2}] = BytesPerSecond(76 * kGiB);
    table.intra[{1, 4}] = BytesPerSecond(225 * kGiB);
    table.intra[{2, 2}] = BytesPerSecond(76 * kGiB);
    return table;
  }();
  return bandwidths;
}

BytesPerSecond AxonnBandwidth(const AxonnBandwidths& table, uint32_t inner, uint32_t size) {
  if (inner * size > table.gpus_per_node) {
    return table.inter / std::min(inner, table.gpus_per_node);
  }
  const auto it = table.intra.find({inner, size});
  if (it == table.intra.end()) {
    throw Error(fmt::format("no profiled bandwidth of {} for a group of {} with {} ranks inside",
                            table.name, size, inner));
  }
  return it->second;
}

std::vector<AxonnProduct> AxonnProducts(const Network& network) {
  std::vector<AxonnProduct> products;
  for (const NetworkNode& node : network.nodes) {
    if (node.kind != NodeKind::kProduct || !node.matrix) continue;
    const NetworkMatrix& matrix = network.matrices[*node.matrix];
    if (matrix.layer < 0) continue;
    const AxonnProduct product{
        .rows = static_cast<double>(node.rows) * network.micro_batches,
        .k = static_cast<double>(matrix.k),
        .n = static_cast<double>(matrix.n),
        .transposed = matrix.role == MatrixRole::kSecond,
    };
    const auto alike = std::find_if(products.begin(), products.end(), [&](const AxonnProduct& p) {
      return p.rows == product.rows && p.k == product.k && p.n == product.n &&
             p.transposed == product.transposed;
    });
    if (alike != products.end())
      ++alike->count;
    else
      products.push_back(product);
  }
  return products;
}

AxonnPrediction PredictAxonn(const std::vector<AxonnProduct>& products, const Training& training,
                             const FourDOptions& options, const AxonnBandwidths& bandwidths) {
  const uint32_t sizes[] = {options.column, options.row, options.depth, options.data};
  BytesPerSecond bandwidth[4];
  uint32_t inner = 1;
  for (int axis = 0; axis < 4; ++axis) {
    bandwidth[axis] =
        sizes[axis] == 1 ? BytesPerSecond(1) : AxonnBandwidth(bandwidths, inner, sizes[axis]);
    inner *= sizes[axis];
  }
  const double passes = training.recomputation == Recomputation::kFull ? 2 : 1;
  AxonnPrediction sum;
  for (const AxonnProduct& product : products) {
    // The axes that split the rows and the columns of W.
    const int in = product.transposed ? kColumnAxis : kRowAxis;
    const int out = product.transposed ? kRowAxis : kColumnAxis;
    const double m = product.rows / options.data;
    const double block = product.k * product.n / (options.column * options.row);
    const double y = m * product.n / (options.depth * sizes[out]);
    const double x = m * product.k / (options.depth * sizes[in]);
    const Seconds depth = HalfRing(options.depth, kElement * block, bandwidth[kDepthAxis]);
    sum.all_gather += product.count * training.micro_batches * passes * depth;
    sum.reduce_scatter += product.count * training.micro_batches * depth;
    sum.forward_all_reduce +=
        product.count * passes * 2 * HalfRing(sizes[in], kElement * y, bandwidth[in]);
    sum.backward_all_reduce +=
        product.count * 2 * HalfRing(sizes[out], kElement * x, bandwidth[out]);
    sum.data_all_reduce +=
        product.count * 2 *
        HalfRing(options.data, kGradient * block / options.depth, bandwidth[kDataAxis]);
  }
  return sum;
}

AxonnPrediction PredictAxonn(const GptModel& model, const Training& training,
                             const FourDOptions& options, const AxonnBandwidths& bandwidths) {
  const double h = static_cast<double>(model.hidden);
  const double tokens = training.Tokens();
  const double layers = model.layers;
  return PredictAxonn({{tokens, h, 3 * h, false, layers},
                       {tokens, h, h, true, layers},
                       {tokens, h, 4 * h, false, layers},
                       {tokens, 4 * h, h, true, layers}},
                      training, options, bandwidths);
}

std::vector<std::pair<FourDOptions, AxonnPrediction>> RankConfigurations(
    const GptModel& model, const Training& training, uint32_t ranks,
    const AxonnBandwidths& bandwidths) {
  std::vector<std::pair<FourDOptions, AxonnPrediction>> ranking;
  for (uint32_t column = 1; column <= ranks; ++column) {
    if (ranks % column != 0 || model.heads % column != 0 || model.hidden % column != 0) continue;
    const uint32_t after_column = ranks / column;
    for (uint32_t row = 1; row <= after_column; ++row) {
      if (after_column % row != 0 || model.hidden % row != 0) continue;
      const uint32_t after_row = after_column / row;
      for (uint32_t depth = 1; depth <= after_row; ++depth) {
        if (after_row % depth != 0) continue;
        const uint32_t data = after_row / depth;
        if (training.batch % (uint64_t{depth} * data * training.micro_batches) != 0) continue;
        FourDOptions options;
        options.column = column;
        options.row = row;
        options.depth = depth;
        options.data = data;
        ranking.emplace_back(options, PredictAxonn(model, training, options, bandwidths));
      }
    }
  }
  std::stable_sort(ranking.begin(), ranking.end(), [](const auto& a, const auto& b) {
    return a.second.Total() < b.second.Total();
  });
  return ranking;
}

}  // namespace rehearse
