#include "workloads/planner/layer_graphs.h"

namespace rehearse {
namespace {

enum class Part : uint32_t { kNone, kAttention, kMlp, kRouter, kStateSpace };

bool IsReplayed(Part part, const Training& training) {
  switch (part) {
    case Part::kNone:
      return false;
    case Part::kAttention:
      return training.graphs_attention;
    case Part::kMlp:
      return training.graphs_mlp;
    case Part::kRouter:
      return training.graphs_router;
    case Part::kStateSpace:
      return training.graphs_state_space;
  }
  return false;
}

// What a layer has.
struct Kinds {
  bool experts = false;
  bool core = false;
  bool state_space = false;

  // Layers of a pattern have only one part.
  Part First() const {
    if (state_space) return Part::kStateSpace;
    if (core) return Part::kAttention;
    return experts ? Part::kRouter : Part::kMlp;
  }
  Part Second() const { return experts ? Part::kRouter : Part::kMlp; }
};

std::vector<Kinds> KindsOfLayers(const Network& network) {
  std::vector<Kinds> kinds;
  for (const NetworkNode& node : network.nodes) {
    if (node.layer < 0) continue;
    const auto layer = static_cast<size_t>(node.layer);
    if (layer >= kinds.size()) kinds.resize(layer + 1);
    kinds[layer].experts |= node.kind == NodeKind::kRoute;
    kinds[layer].core |= node.kind == NodeKind::kAttention;
    kinds[layer].state_space |= node.kind == NodeKind::kStateSpace;
  }
  return kinds;
}

}  // namespace

std::vector<uint32_t> GraphsOfNodes(const Network& network, const Training& training) {
  const bool are_some = training.graphs_attention || training.graphs_mlp ||
                        training.graphs_router || training.graphs_state_space;
  if (training.host_launch == Seconds(0) || !are_some) return {};
  const std::vector<Kinds> kinds = KindsOfLayers(network);
  std::vector<uint32_t> graphs;
  int32_t layer = -1;
  Part part = Part::kNone;
  for (const NetworkNode& node : network.nodes) {
    if (node.layer != layer)
      part = node.layer < 0 ? Part::kNone : kinds[static_cast<size_t>(node.layer)].First();
    layer = node.layer;
    graphs.push_back(IsReplayed(part, training) ? static_cast<uint32_t>(part) : 0);
    const bool is_sum = node.kind == NodeKind::kResidual || node.kind == NodeKind::kAdd;
    if (part == Part::kAttention && is_sum)
      part = kinds[static_cast<size_t>(layer)].Second();
    else if (part == Part::kRouter && node.kind == NodeKind::kRoute)
      part = Part::kNone;
  }
  return graphs;
}

}  // namespace rehearse
