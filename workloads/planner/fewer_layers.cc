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
  // The layer that begins at `own` is like the one that begins at `before`: once its number and
  // whatever refers to its parts are moved by a layer, nothing is left that differs.
  bool IsLike(const LayerBegin& own, const LayerBegin& end, const LayerBegin& before) const {
    for (uint32_t i = own.node; i < end.node; ++i)
      if (!NodesAreAlike(i, own, before)) return false;
    for (uint32_t i = own.matrix; i < end.matrix; ++i) {
      NetworkMatrix moved = network_.matrices[i];
      const NetworkMatrix& other = network_.matrices[i - own.matrix + before.matrix];
      moved.layer = other.layer;
      if (moved.tied || moved != other) return false;
    }
    for (uint32_t i = own.vector; i < end.vector; ++i) {
      NetworkVector moved = network_.vectors[i];
      const NetworkVector& other = network_.vectors[i - own.vector + before.vector];
      moved.layer = other.layer;
      if (moved != other) return false;
    }
    return true;
  }

  bool NodesAreAlike(uint32_t i, const LayerBegin& own, const LayerBegin& before) const {
    NetworkNode moved = network_.nodes[i];
    const NetworkNode& other = network_.nodes[i - own.node + before.node];
    if (moved.window) return false;  // convolutions change from layer to layer
    // From this layer or the one before it.
    for (uint32_t& input : moved.inputs) {
      if (input < before.node || input + own.node < 2 * before.node) return false;
      input -= own.node - before.node;
    }
    for (uint32_t& vector : moved.vectors) vector -= own.vector - before.vector;
    if (moved.matrix) *moved.matrix -= own.matrix - before.matrix;
    moved.layer = other.layer;
    return moved == other;
  }

  const Network& network_;
};

// From the second layer on.
bool LayoutsAreEqual(const Strategy& strategy, const LayerBegins& begins) {
  for (size_t layer = 2; layer + 1 < begins.size(); ++layer) {
    const uint32_t size = begins[layer].matrix - begins[layer - 1].matrix;
    for (uint32_t i = begins[layer].matrix; i < begins[layer + 1].matrix; ++i)
      if (strategy.products[i] != strategy.products[i - size]) return false;
  }
  return true;
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
  if (!AlikeUnder(strategy).layers || strategy.products.size() != network.matrices.size())
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
