#include "workloads/strategy_4d.h"

#include "sim/error.h"

namespace rehearse {
namespace {

// Layouts in the order column, row, depth, data.
constexpr Placement kRows = S(0);
constexpr Placement kColumns = S(1);

// W's rows on r, columns on c.
MatmulLayouts Normal() {
  return {.x = {B(), kColumns, kRows, kRows}, .w = {kColumns, kRows, B(), B()}};
}
// The other way round.
MatmulLayouts Transposed() {
  return {.x = {kColumns, B(), kRows, kRows}, .w = {kRows, kColumns, B(), B()}};
}

}  // namespace

GptStrategy MakeFourD(const FourDOptions& options) {
  GptStrategy strategy{.name = fmt::format("4D, G_c={} G_r={} G_d={} G_data={}", options.column,
                                           options.row, options.depth, options.data),
                       .mesh = DeviceMesh({{"column", options.column},
                                           {"row", options.row},
                                           {"depth", options.depth},
                                           {"data", options.data}}),
                       .layouts = {},
                       .gather = {},
                       .data_axes = {kDepthAxis, kDataAxis},
                       .asynchronous_input_gradient = options.overlap_all_reduce,
                       .asynchronous_weight_gradient = options.overlap_reduce_scatter};

  const bool alternate = options.transpose_alternate_layers;
  const MatmulLayouts second = alternate ? Transposed() : Normal();
  // The table serves the output layer too, which is a normal product, so it lies transposed itself.
  strategy.layouts.embedding = Transposed();
  strategy.layouts.qkv = Normal();
  strategy.layouts.projection = second;
  strategy.layouts.up = Normal();
  strategy.layouts.down = second;
  strategy.layouts.output = Normal();
  const Layout whole_rows = {B(), B(), kRows, kRows};
  const Layout columns_on_c = {kColumns, B(), kRows, kRows};
  const Layout columns_on_r = {B(), kColumns, kRows, kRows};
  strategy.layouts.hidden = alternate ? columns_on_r : whole_rows;
  strategy.layouts.attention = alternate ? columns_on_c : whole_rows;
  strategy.layouts.mlp = alternate ? columns_on_c : whole_rows;
  strategy.layouts.logits = columns_on_c;

  if (options.depth > 1) {
    strategy.gather = GatherPolicy{.axis = kDepthAxis,
                                   .prefetch = options.overlap_all_gather,
                                   .cached_layers = options.cached_layers};
  }
  return strategy;
}

}  // namespace rehearse
