#include "workloads/strategy.h"

#include "sim/error.h"

namespace rehearse {
namespace {

const ProductLayouts& LayoutsOf(const RoleLayouts& layouts, MatrixRole role) {
  switch (role) {
    case MatrixRole::kTable:
      return layouts.table;
    case MatrixRole::kQkv:
      return layouts.qkv;
    case MatrixRole::kFirst:
      return layouts.first;
    case MatrixRole::kSecond:
      return layouts.second;
    case MatrixRole::kHead:
      return layouts.head;
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

}  // namespace rehearse
