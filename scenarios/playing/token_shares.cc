#include "scenarios/playing/token_shares.h"

#include <map>
#include <set>
#include <vector>

#include "collectives/algorithms/token_spread.h"
#include "sim/schedule/expert_routing.h"

namespace rehearse {
namespace {

TokenRouting RoutingOf(const std::vector<double>& attributes) {
  const auto attribute = [&](RoutingAttribute which) {
    return static_cast<uint32_t>(attributes[which]);
  };
  TokenRouting routing;
  routing.experts = attribute(kRoutingExperts);
  routing.top_k = attribute(kRoutingPerToken);
  routing.groups = attribute(kRoutingGroups);
  routing.limited_groups = attribute(kRoutingLimitedGroups);
  const ExpertRouting drawn = MakeRouting(attributes);
  if (drawn.IsEven()) return routing;
  for (const uint64_t load : drawn.loads)
    routing.wanted.push_back(static_cast<double>(load) / static_cast<double>(drawn.period));
  return routing;
}

// Of each layer with experts; -1: of any.
std::map<int32_t, TokenRouting> RoutingsOf(const Network& network) {
  std::map<int32_t, TokenRouting> routings;
  for (const NetworkNode& node : network.nodes) {
    if (node.kind != NodeKind::kRoute) continue;
    if (routings.empty()) routings.emplace(-1, RoutingOf(node.attributes));
    routings.emplace(node.layer, RoutingOf(node.attributes));
  }
  return routings;
}

}  // namespace

void ShareTokens(const Network& network, const Cluster& cluster,
                 const std::vector<uint32_t>& placement, Schedule* schedule) {
  std::map<int32_t, TokenRouting> routings;  // made when the first is needed
  for (Role& role : schedule->roles) {
    for (Op& op : role.ops) {
      auto* const collective = std::get_if<Collective>(&op.work);
      if (collective == nullptr || collective->kind != CollectiveKind::kAllToAll ||
          collective->algorithm != AlgorithmId::kDeepEp)
        continue;
      if (routings.empty()) routings = RoutingsOf(network);
      if (routings.empty()) return;
      const auto of_layer = routings.find(op.tag.layer);
      TokenRouting& routing = of_layer != routings.end() ? of_layer->second : routings.at(-1);
      const Communicator& communicator = schedule->communicators[collective->communicator.index()];
      std::set<uint32_t> machines;
      for (uint32_t i = 0; i < communicator.size(); ++i)
        machines.insert(cluster.NodeIndexOf(placement[communicator.Rank(0, i)]));
      routing.ranks = communicator.size();
      routing.machines = static_cast<uint32_t>(machines.size());
      if (routing.ranks > 1) SendOnce(routing, collective);
    }
  }
}

}  // namespace rehearse
