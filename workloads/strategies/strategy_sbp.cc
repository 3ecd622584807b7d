#include "workloads/strategies/strategy_sbp.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace rehearse {
namespace {

using Triple = std::array<uint32_t, 3>;

// The order in which a product's numbers take the factors of the ranks, from the outside.
Triple OrderOf(MatrixRole role) {
  const bool is_second =
      role == MatrixRole::kSecond || role == MatrixRole::kTable || role == MatrixRole::kTail;
  return is_second ? Triple{0, 2, 1} : Triple{0, 1, 2};
}

std::map<uint32_t, uint32_t> PrimeFactors(uint32_t number) {
  std::map<uint32_t, uint32_t> exponents;
  for (uint32_t prime = 2; number > 1; ++prime) {
    for (; number % prime == 0; number /= prime) ++exponents[prime];
  }
  return exponents;
}

// An axis of the mesh: a run of equal prime factors of the machines (or of the ranks in one) that
// no product cuts.
struct Factor {
  bool in_node = false;
  uint32_t size = 1;
  std::vector<uint32_t> part;  // by product: 0, 1, 2 for p0, p1, p2
};

// Cuts the factors of `total` at every boundary between the parts of some product. Outermost first.
std::vector<Factor> FactorsOf(uint32_t total, const std::vector<Triple>& products,
                              const std::vector<Triple>& orders, bool in_node) {
  std::vector<Factor> factors;
  for (const auto& [prime, count] : PrimeFactors(total)) {
    std::vector<Triple> ends;  // by product: where each part ends, in its order
    std::set<uint32_t> cuts = {count};
    for (size_t i = 0; i < products.size(); ++i) {
      uint32_t end = 0;
      Triple own{};
      for (size_t j = 0; j < 3; ++j) {
        const auto exponents = PrimeFactors(products[i][orders[i][j]]);
        const auto it = exponents.find(prime);
        own[j] = end += it == exponents.end() ? 0 : it->second;
        if (end > 0) cuts.insert(end);
      }
      ends.push_back(own);
    }
    uint32_t begin = 0;
    for (const uint32_t cut : cuts) {
      Factor factor{in_node, 1, {}};
      for (uint32_t i = begin; i < cut; ++i) factor.size *= prime;
      for (size_t i = 0; i < products.size(); ++i) {
        size_t j = 0;
        while (ends[i][j] <= begin) ++j;
        factor.part.push_back(orders[i][j]);
      }
      factors.push_back(std::move(factor));
      begin = cut;
    }
  }
  return factors;
}

// "p1" (in a machine "p1'") if all products agree on what the axis is for.
std::vector<MeshAxis> AxesOf(const std::vector<Factor>& factors) {
  std::vector<MeshAxis> axes;
  std::map<std::string, uint32_t> count;
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    const bool agree = std::all_of(factor->part.begin(), factor->part.end(),
                                   [&](uint32_t part) { return part == factor->part.front(); });
    std::string name = agree
                           ? fmt::format("p{}{}", factor->part.front(), factor->in_node ? "'" : "")
                           : std::string(factor->in_node ? "gpus" : "nodes");
    const uint32_t number = count[name]++;
    if (number > 0) name += fmt::format(".{}", number);
    axes.push_back({std::move(name), factor->size});
  }
  if (axes.empty()) axes.push_back({"p0", 1});
  return axes;
}

void CheckProducts(const SbpOptions& options, const Network& network, const Place& place) {
  for (size_t i = 0; i < options.products.size(); ++i) {
    const auto check = [&](const Triple& p, uint32_t expected, const char* what) {
      const uint64_t product = uint64_t{p[0]} * p[1] * p[2];
      if (product == expected) return;
      throw Error(place,
                  fmt::format("\"{}\": p0·p1·p2 = {}·{}·{} = {} {}, expected {}",
                              network.matrices[i].name, p[0], p[1], p[2], product, what, expected));
    };
    check(options.products[i].nodes, options.nodes, "machines");
    check(options.products[i].gpus, options.gpus, "ranks per machine");
  }
}

// Partial sums come to rest as columns, inside those already there.
Layout FullySplit(const ProductLayouts& product) {
  Layout rest;
  for (size_t axis = 0; axis < product.x.size(); ++axis) {
    rest.push_back(MatmulRule(product.x[axis], product.w[axis]).value_or(B()));
  }
  auto level = static_cast<uint8_t>(SplitAxes(rest, 1).size());
  for (const uint32_t axis : PartialAxes(rest)) rest[axis] = S(1, level++);
  return rest;
}

}  // namespace

SbpNumbers Exchanged(const SbpNumbers& numbers) {
  SbpNumbers result = numbers;
  std::swap(result.nodes[1], result.nodes[2]);
  std::swap(result.gpus[1], result.gpus[2]);
  return result;
}

std::optional<uint64_t> SbpCuts(const SbpNumbers& numbers, MatrixRole role, uint32_t nodes,
                                uint32_t gpus) {
  const auto product = [](const Triple& p) { return uint64_t{p[0]} * p[1] * p[2]; };
  if (product(numbers.nodes) != nodes || product(numbers.gpus) != gpus) return std::nullopt;
  const Triple order = OrderOf(role);
  uint64_t cuts = 0;
  uint32_t first = 0;
  for (const bool in_node : {false, true}) {
    const Triple& own = in_node ? numbers.gpus : numbers.nodes;
    for (const auto& [prime, count] : PrimeFactors(in_node ? gpus : nodes)) {
      uint32_t end = 0;
      for (const uint32_t part : order) {
        for (uint32_t left = own[part]; left % prime == 0; left /= prime) ++end;
        if (end > 0) cuts |= uint64_t{1} << (first + end - 1);
      }
      first += count;
    }
  }
  return cuts;
}

Strategy MakeSbp(const SbpOptions& options, const Network& network, const Place& place) {
  CHECK_EQ(options.products.size(), network.matrices.size());
  CheckProducts(options, network, place);
  std::vector<Triple> nodes;
  std::vector<Triple> gpus;
  std::vector<Triple> orders;
  for (size_t i = 0; i < options.products.size(); ++i) {
    nodes.push_back(options.products[i].nodes);
    gpus.push_back(options.products[i].gpus);
    orders.push_back(OrderOf(network.matrices[i].role));
  }
  std::vector<Factor> factors = FactorsOf(options.nodes, nodes, orders, false);
  for (Factor& factor : FactorsOf(options.gpus, gpus, orders, true)) {
    factors.push_back(std::move(factor));
  }
  if (factors.size() > kMostAxes) {
    throw Error(place, fmt::format("the products' numbers cut {} machines of {} ranks into {} "
                                   "factors, expected at most {}",
                                   options.nodes, options.gpus, factors.size(), kMostAxes));
  }
  const std::vector<MeshAxis> axes = AxesOf(factors);
  std::vector<ProductLayouts> products;
  for (size_t i = 0; i < options.products.size(); ++i) {
    // Placements of X and W for p0, p1, p2.
    constexpr Placement kX[] = {S(0), B(), S(1)};
    constexpr Placement kW[] = {B(), S(1), S(0)};
    ProductLayouts product{
        .x = Layout(axes.size(), B()), .w = Layout(axes.size(), B()), .rest = {}};
    for (size_t j = 0; j < factors.size(); ++j) {
      const size_t axis = factors.size() - 1 - j;
      product.x[axis] = kX[factors[j].part[i]];
      product.w[axis] = kW[factors[j].part[i]];
    }
    product.x = Nested(product.x);
    product.w = Nested(product.w);
    products.push_back(std::move(product));
  }
  return MakeSbp(DeviceMesh(axes), std::move(products), options.overlap_all_reduce,
                 options.overlap_gradients);
}

Strategy MakeSbp(DeviceMesh mesh, std::vector<ProductLayouts> products, bool overlap_all_reduce,
                 bool overlap_gradients) {
  for (ProductLayouts& product : products) {
    if (product.rest.empty()) product.rest = FullySplit(product);
  }
  std::string name = fmt::format("SBP on {} ranks", mesh.size());
  return {.name = std::move(name),
          .mesh = std::move(mesh),
          .products = std::move(products),
          .asynchronous_input_gradient = overlap_all_reduce,
          .asynchronous_data_gradient = overlap_gradients};
}

}  // namespace rehearse
