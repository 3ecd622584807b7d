#include "workloads/strategies/strategy_summa.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

// Layouts in the order column, row, depth, data.
Strategy MakeSumma(const SummaOptions& options, const Network& network) {
  Strategy strategy{
      .name = fmt::format("SUMMA, q={} depth={} data={}", options.q, options.depth, options.data),
      .mesh = DeviceMesh({{"column", options.q},
                          {"row", options.q},
                          {"depth", options.depth},
                          {"data", options.data}})};
  const Layout blocks = Nested({S(1), S(0), S(0), S(0)});
  const Layout rows = Nested({B(), S(0), S(0), S(0)});
  RoleLayouts layouts;
  layouts.first = {.x = blocks, .w = {S(1), S(0), B(), B()}, .rest = blocks};
  if (options.q > 1) {
    layouts.first.summa = SummaAxes{.row_axis = kSummaRowAxis,
                                    .column_axis = kSummaColumnAxis,
                                    .prefetch = options.overlap_panels};
  }
  layouts.second = layouts.first;
  layouts.qkv = layouts.first;
  layouts.table = {.x = blocks, .w = {S(0), B(), B(), B()}, .rest = blocks};
  layouts.head = {.x = rows, .w = {S(1), B(), B(), B()}, .rest = blocks};
  strategy.products = LayoutsByRole(network, layouts);
  return strategy;
}

}  // namespace rehearse
