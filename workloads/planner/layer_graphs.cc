#include "workloads/planner/layer_graphs.h"

namespace rehearse {
namespace {

enum class Part : uint32_t { kNone, kAttention, kMlp, kRouter };

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
  }
  return false;
}

std::vector<bool> LayersWithExperts(const Network& network) {
  std::vector<bool> has;
  for (const NetworkNode& node : network.nodes) {
    if (node.layer < 0) continue;
    const auto layer = static_cast<size_t>(node.layer);
    if (layer >= has.size()) has.resize(layer + 1);
    if (node.kind == NodeKind::kRoute) has[layer] = true;
  }
  return has;
}

}  // namespace

std::vector<uint32_t> GraphsOfNodes(const Network& network, const Training& training) {
  const bool are_some = training.graphs_attention || training.graphs_mlp || training.graphs_router;
  if (training.host_launch == Seconds(0) || !are_some) return {};
  const std::vector<bool> has_experts = LayersWithExperts(network);
  std::vector<uint32_t> graphs;
  int32_t layer = -1;
  Part part = Part::kNone;
  for (const NetworkNode& node : network.nodes) {
    if (node.layer != layer) part = node.layer < 0 ? Part::kNone : Part::kAttention;
    layer = node.layer;
    graphs.push_back(IsReplayed(part, training) ? static_cast<uint32_t>(part) : 0);
    const bool is_sum = node.kind == NodeKind::kResidual || node.kind == NodeKind::kAdd;
    if (part == Part::kAttention && is_sum)
      part = has_experts[static_cast<size_t>(layer)] ? Part::kRouter : Part::kMlp;
    else if (part == Part::kRouter && node.kind == NodeKind::kRoute)
      part = Part::kNone;
  }
  return graphs;
}

}  // namespace rehearse
