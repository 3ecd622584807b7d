#include "workloads/strategies/strategy_4d.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Layouts in the order column, row, depth, data.
constexpr Placement kRows = S(0);
constexpr Placement kColumns = S(1);

// W's rows on r, columns on c.
ProductLayouts NormalProduct(const Layout& rest) {
  return {.x = Nested({B(), kColumns, kRows, kRows}),
          .w = {kColumns, kRows, B(), B()},
          .rest = Nested(rest)};
}
// The other way round.
ProductLayouts TransposedProduct(const Layout& rest) {
  return {.x = Nested({kColumns, B(), kRows, kRows}),
          .w = {kRows, kColumns, B(), B()},
          .rest = Nested(rest)};
}

}  // namespace

Strategy MakeFourD(const FourDOptions& options, const Network& network) {
  Strategy strategy{.name = fmt::format("4D, G_c={} G_r={} G_d={} G_data={}", options.column,
                                        options.row, options.depth, options.data),
                    .mesh = DeviceMesh({{"column", options.column},
                                        {"row", options.row},
                                        {"depth", options.depth},
                                        {"data", options.data}}),
                    .asynchronous_input_gradient = options.overlap_all_reduce,
                    .asynchronous_weight_gradient = options.overlap_reduce_scatter};
  const Layout whole_rows = {B(), B(), kRows, kRows};
  const Layout columns_on_c = {kColumns, B(), kRows, kRows};
  const Layout columns_on_r = {B(), kColumns, kRows, kRows};
  RoleLayouts layouts;
  if (options.transpose_alternate_layers) {
    layouts.first = NormalProduct(columns_on_c);
    layouts.second = TransposedProduct(columns_on_r);
    // The table serves the output layer too, which is a normal product, so it lies transposed
    // itself.
    layouts.table = TransposedProduct(columns_on_r);
  } else {
    layouts.first = NormalProduct(whole_rows);
    layouts.second = NormalProduct(whole_rows);
    layouts.table = TransposedProduct(whole_rows);
  }
  layouts.qkv = layouts.first;
  layouts.head = NormalProduct(columns_on_c);
  strategy.products = LayoutsByRole(network, layouts);

  if (options.depth > 1) {
    strategy.shard = ShardPolicy{.axes = {kDepthAxis},
                                 .prefetch = options.overlap_all_gather ? 1u : 0u,
                                 .cached_layers = options.cached_layers};
  }
  return strategy;
}

}  // namespace rehearse
