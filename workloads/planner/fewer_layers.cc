#include "workloads/planner/fewer_layers.h"

#include <algorithm>

namespace rehearse {
namespace {

// The first layers, before those that are left out, have another neighbour on the way there.
constexpr uint32_t kFirst = 2;

template <typename Thing>
std::optional<std::vector<uint32_t>> BeginsOf(const std::vector<Thing>& things, uint32_t layers) {
  std::vector<uint32_t> begins;
  uint32_t i = 0;
  while (i < things.size() && things[i].layer < 0) ++i;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    begins.push_back(i);
    while (i < things.size() && things[i].layer == static_cast<int32_t>(layer)) ++i;
  }
  begins.push_back(i);
  for (; i < things.size(); ++i)
    if (things[i].layer >= 0) return std::nullopt;
  return begins;
}

bool AreEqual(const ProductLayouts& a, const ProductLayouts& b) {
  return a.x == b.x && a.w == b.w && a.rest == b.rest && a.by_way_of == b.by_way_of && !a.summa &&
         !b.summa;
}

bool AreEqual(const std::optional<Window>& a, const std::optional<Window>& b) {
  return !a && !b;  // convolutions change from layer to layer
}

class LayerComparison {
 public:
  explicit LayerComparison(const Network& network) : network_(network) {}

  std::optional<LayerBegins> Run() const {
    const auto layers = static_cast<uint32_t>(network_.layers);
    const auto nodes = BeginsOf(network_.nodes, layers);
    const auto matrices = BeginsOf(network_.matrices, layers);
    const auto vectors = BeginsOf(network_.vectors, layers);
    if (!nodes || !matrices || !vectors) return std::nullopt;
    LayerBegins begins;
    for (uint32_t layer = 0; layer <= layers; ++layer)
      begins.push_back({(*nodes)[layer], (*matrices)[layer], (*vectors)[layer]});
    for (uint32_t layer = 1; layer < layers; ++layer) {
      const LayerBegin& before = begins[layer - 1];
      const LayerBegin& own = begins[layer];
      const LayerBegin& end = begins[layer + 1];
      if (end.node - own.node != own.node - before.node ||
          end.matrix - own.matrix != own.matrix - before.matrix ||
          end.vector - own.vector != own.vector - before.vector)
        return std::nullopt;
      if (layer > 1 && !IsLike(own, end, before)) return std::nullopt;
    }
    return begins;
  }

 private:
  // The layer that begins at `own` is like the one that begins at `before`.
  bool IsLike(const LayerBegin& own, const LayerBegin& end, const LayerBegin& before) const {
    for (uint32_t i = own.node; i < end.node; ++i)
      if (!NodesAreAlike(i, i - own.node + before.node, own, before)) return false;
    for (uint32_t i = own.matrix; i < end.matrix; ++i) {
      const NetworkMatrix& a = network_.matrices[i];
      const NetworkMatrix& b = network_.matrices[i - own.matrix + before.matrix];
      if (a.name != b.name || a.k != b.k || a.n != b.n || a.role != b.role || a.tied || b.tied)
        return false;
    }
    for (uint32_t i = own.vector; i < end.vector; ++i) {
      const NetworkVector& a = network_.vectors[i];
      const NetworkVector& b = network_.vectors[i - own.vector + before.vector];
      if (a.name != b.name || a.size != b.size) return false;
    }
    return true;
  }

  bool NodesAreAlike(uint32_t i, uint32_t j, const LayerBegin& own,
                     const LayerBegin& before) const {
    const NetworkNode& a = network_.nodes[i];
    const NetworkNode& b = network_.nodes[j];
    if (a.kind != b.kind || a.name != b.name || a.op != b.op || a.backward_op != b.backward_op ||
        a.rows != b.rows || a.columns != b.columns ||
        a.matrix.has_value() != b.matrix.has_value() || !AreEqual(a.window, b.window) ||
        a.kernels != b.kernels || a.rotary != b.rotary || a.scaled_rotary != b.scaled_rotary ||
        a.has_extra != b.has_extra || a.attributes != b.attributes || a.units != b.units ||
        a.unit_name != b.unit_name || a.whole_samples != b.whole_samples || a.part != b.part ||
        a.of_choices != b.of_choices || a.inputs.size() != b.inputs.size() ||
        a.vectors.size() != b.vectors.size())
      return false;
    // From this layer or the one before it.
    for (size_t k = 0; k < a.inputs.size(); ++k)
      if (i - a.inputs[k] != j - b.inputs[k] || a.inputs[k] + own.node < 2 * before.node ||
          a.inputs[k] < before.node)
        return false;
    for (size_t k = 0; k < a.vectors.size(); ++k)
      if (a.vectors[k] - own.vector != b.vectors[k] - before.vector) return false;
    return true;
  }

  const Network& network_;
};

// From the second layer on.
bool LayoutsAreEqual(const Strategy& strategy, const LayerBegins& begins) {
  for (size_t layer = 2; layer + 1 < begins.size(); ++layer) {
    const uint32_t size = begins[layer].matrix - begins[layer - 1].matrix;
    for (uint32_t i = begins[layer].matrix; i < begins[layer + 1].matrix; ++i)
      if (!AreEqual(strategy.products[i], strategy.products[i - size])) return false;
  }
  return true;
}

bool TreatsLayersAlike(const Strategy& strategy) {
  if (strategy.bucket_elements > 0 || strategy.gathers_beside_forward) return false;
  const std::optional<ShardPolicy>& shard = strategy.shard;
  return !shard || (shard->cached_layers == 0 && shard->prefetch_elements == 0 &&
                    shard->most_gathered == 0 && shard->reduce_elements == 0);
}

// The things but for those from `begin` to `end`.
template <typename Thing>
std::vector<Thing> Without(const std::vector<Thing>& things, uint32_t begin, uint32_t end) {
  std::vector<Thing> left;
  left.reserve(things.size() - (end - begin));
  left.insert(left.end(), things.begin(), things.begin() + begin);
  left.insert(left.end(), things.begin() + end, things.end());
  return left;
}

bool HasMoreThan(const Network& network, uint32_t layers) {
  return layers > kFirst && network.layers > static_cast<int32_t>(layers);
}

}  // namespace

std::optional<LayerBegins> FindEqualLayers(const Network& network) {
  return LayerComparison(network).Run();
}

std::optional<FewerLayers> WithFewerLayers(const Network& network, const Strategy& strategy,
                                           uint32_t layers) {
  if (!HasMoreThan(network, layers)) return std::nullopt;
  const std::optional<LayerBegins> begins = FindEqualLayers(network);
  if (!begins) return std::nullopt;
  return WithFewerLayers(network, strategy, layers, *begins);
}

std::optional<FewerLayers> WithFewerLayers(const Network& network, const Strategy& strategy,
                                           uint32_t layers, const LayerBegins& begins) {
  if (!HasMoreThan(network, layers)) return std::nullopt;
  if (!TreatsLayersAlike(strategy) || strategy.products.size() != network.matrices.size())
    return std::nullopt;
  if (!LayoutsAreEqual(strategy, begins)) return std::nullopt;

  const uint32_t count = static_cast<uint32_t>(network.layers) - layers;
  const LayerBegin& from = begins[kFirst];
  const LayerBegin& to = begins[kFirst + count];
  FewerLayers fewer{WithoutParts(network), strategy};
  Network& left = fewer.network;
  left.layers = static_cast<int32_t>(layers);
  left.left_out = {count, static_cast<int32_t>(kFirst)};
  left.nodes = Without(network.nodes, from.node, to.node);
  left.matrices = Without(network.matrices, from.matrix, to.matrix);
  left.vectors = Without(network.vectors, from.vector, to.vector);
  fewer.strategy.products = Without(strategy.products, from.matrix, to.matrix);
  // What comes behind them takes from the layer before them what it took from the last of them.
  const auto move = [](uint32_t* i, uint32_t begin, uint32_t end) {
    if (*i >= begin) *i -= end - begin;
  };
  const auto renumber = [&](auto* things, uint32_t begin) {
    for (size_t i = begin; i < things->size(); ++i)
      if ((*things)[i].layer >= 0) (*things)[i].layer -= static_cast<int32_t>(count);
  };
  renumber(&left.nodes, from.node);
  renumber(&left.matrices, from.matrix);
  renumber(&left.vectors, from.vector);
  for (size_t i = from.node; i < left.nodes.size(); ++i) {
    NetworkNode& node = left.nodes[i];
    for (uint32_t& input : node.inputs) move(&input, from.node, to.node);
    for (uint32_t& vector : node.vectors) move(&vector, from.vector, to.vector);
    if (node.matrix) move(&*node.matrix, from.matrix, to.matrix);
  }
  for (size_t i = from.matrix; i < left.matrices.size(); ++i)
    if (left.matrices[i].tied) move(&*left.matrices[i].tied, from.matrix, to.matrix);
  return fewer;
}

}  // namespace rehearse
