#include "workloads/strategies/strategy_atp.h"

#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

Strategy MakeAtp(const AtpOptions& options, const Network& network) {
  Strategy strategy{
      .name = fmt::format("ATP, DeviceMesh({}, {}), {}-first, {} chunks, data {}", options.d1,
                          options.d2, options.column_first ? "column" : "row", options.chunks,
                          options.data),
      .mesh = DeviceMesh({{"d2", options.d2}, {"d1", options.d1}, {"data", options.data}}),
      .asynchronous_input_gradient = options.overlap_all_reduce,
      .chunks = options.chunks,
      .chunks_overlap_backward = options.overlap_chunks_backward};
  // Column-first splits columns on d1 and rows on d2. Layouts in the order d2, d1, data.
  const auto on = [&](Placement d1, Placement d2) {
    if (!options.column_first) std::swap(d1, d2);
    return Layout{d2, d1, S(0)};
  };
  const auto weight = [&](Placement d1, Placement d2) {
    Layout layout = on(d1, d2);
    layout[kAtpDataAxis] = B();
    return layout;
  };
  const Layout hidden = on(B(), S(1));
  const Layout inner = on(S(1), B());
  RoleLayouts layouts;
  layouts.first = {.x = hidden, .w = weight(S(1), S(0)), .rest = inner};
  layouts.second = {.x = inner, .w = weight(S(0), S(1)), .rest = hidden};
  layouts.qkv = layouts.first;
  layouts.qkv.by_way_of = {inner};
  layouts.qkv.rest = on(S(1, 0), S(1, 1));
  layouts.table = layouts.second;
  layouts.head = layouts.first;
  strategy.products = LayoutsByRole(network, layouts);
  return strategy;
}

}  // namespace rehearse
