#include "workloads/strategies/strategy.h"

#include <algorithm>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Columns of Y lie like those of a second product's result; X is whole where these are split.
ProductLayouts StemLayouts(const Layout& rest) {
  ProductLayouts stem{.x = rest, .w = Layout(rest.size(), B()), .rest = rest};
  for (const uint32_t axis : SplitAxes(rest, 1)) {
    stem.x[axis] = B();
    stem.w[axis] = rest[axis];
  }
  return stem;
}

// X lies like a second product's result; Y is whole where its columns are split.
ProductLayouts TailLayouts(const Layout& rest) {
  ProductLayouts tail{.x = rest, .w = Layout(rest.size(), B()), .rest = rest};
  for (const uint32_t axis : SplitAxes(rest, 1)) {
    tail.w[axis] = S(0, rest[axis].level);
    tail.rest[axis] = B();
  }
  return tail;
}

// Rows lie like those of a second product's result; everything else is on every rank.
ProductLayouts WholeLayouts(Layout rest) {
  for (const uint32_t axis : SplitAxes(rest, 1)) rest[axis] = B();
  return {.x = rest, .w = Layout(rest.size(), B()), .rest = rest};
}

ProductLayouts LayoutsOf(const RoleLayouts& layouts, MatrixRole role) {
  switch (role) {
    case MatrixRole::kTable:
      return layouts.table;
    case MatrixRole::kQkv:
    case MatrixRole::kUp:
      return layouts.qkv;
    case MatrixRole::kFirst:
      return layouts.first;
    case MatrixRole::kSecond:
      return layouts.second;
    case MatrixRole::kHead:
      return layouts.head;
    case MatrixRole::kStem:
      return StemLayouts(layouts.second.rest);
    case MatrixRole::kTail:
      return TailLayouts(layouts.second.rest);
    case MatrixRole::kRouter:
    case MatrixRole::kExpertFirst:
    case MatrixRole::kExpertSecond:
    case MatrixRole::kWhole:
      return WholeLayouts(layouts.second.rest);
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown role of a matrix");
}

}  // namespace

std::vector<ProductLayouts> LayoutsByRole(const Network& network, const RoleLayouts& layouts) {
  std::vector<ProductLayouts> products;
  for (const NetworkMatrix& matrix : network.matrices) {
    products.push_back(LayoutsOf(layouts, matrix.role));
  }
  return products;
}

Alike AlikeUnder(const Strategy& strategy) {
  const ShardPolicy shard = strategy.shard.value_or(ShardPolicy());
  const bool any_summa =
      std::any_of(strategy.products.begin(), strategy.products.end(),
                  [](const ProductLayouts& one) { return one.summa.has_value(); });
  return {.layers = strategy.bucket_elements == 0 && !strategy.gathers_beside_forward &&
                    shard.cached_layers == 0 && shard.prefetch_elements == 0 &&
                    shard.most_gathered == 0 && shard.reduce_elements == 0 && !any_summa};
}

}  // namespace rehearse
