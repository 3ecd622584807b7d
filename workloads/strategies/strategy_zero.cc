#include "workloads/strategies/strategy_zero.h"

#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Rows split along all axes of the mesh, weights whole.
std::vector<ProductLayouts> RowsSplit(const Network& network, size_t axes) {
  const Layout rows = Nested(Layout(axes, S(0)));
  const ProductLayouts product = {.x = rows, .w = Layout(axes, B()), .rest = rows};
  return std::vector<ProductLayouts>(network.matrices.size(), product);
}

}  // namespace

std::optional<ShardPolicy> SharesOf(const ZeroOptions& options, std::vector<uint32_t> axes) {
  if (options.stage == 0) return std::nullopt;
  return ShardPolicy{.axes = std::move(axes),
                     .stage = options.stage,
                     .by_layer = options.by_layer,
                     .prefetch = options.prefetch,
                     .gathers_behind_backward = options.gathers_behind_backward,
                     .reshard_after_forward = options.reshard_after_forward,
                     .copies = options.copies,
                     .reduces_in_fp32 = options.reduces_in_fp32,
                     .prefetch_elements = options.prefetch_elements,
                     .most_gathered = options.most_gathered,
                     .reduce_elements = options.reduce_elements};
}

Strategy MakeZero(const ZeroOptions& options, const Network& network) {
  Strategy strategy{.name = fmt::format("ZeRO-{}, {} shards, {} replicas", options.stage,
                                        options.shard, options.replicas),
                    .mesh = DeviceMesh({{"shard", options.shard}, {"replica", options.replicas}}),
                    .products = RowsSplit(network, 2)};
  strategy.asynchronous_weight_gradient = options.overlap_reduce_scatter;
  strategy.asynchronous_data_gradient = options.overlap_all_reduce;
  strategy.shard = SharesOf(options, {kShardAxis});
  return strategy;
}

Strategy MakeDataParallel(uint32_t data, bool overlap_all_reduce, const Network& network) {
  Strategy strategy{.name = fmt::format("data parallel, {}", data),
                    .mesh = DeviceMesh({{"data", data}}),
                    .products = RowsSplit(network, 1)};
  strategy.asynchronous_data_gradient = overlap_all_reduce;
  return strategy;
}

}  // namespace rehearse
