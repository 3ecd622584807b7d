#include "scenarios/playing/token_shares.h"

#include <algorithm>
#include <set>

#include "collectives/algorithms/token_spread.h"
#include "sim/schedule/expert_routing.h"

namespace rehearse {

void ShareTokens(const Network& network, const Cluster& cluster,
                 const std::vector<uint32_t>& placement, Schedule* schedule) {
  const auto route =
      std::find_if(network.nodes.begin(), network.nodes.end(),
                   [](const NetworkNode& node) { return node.kind == NodeKind::kRoute; });
  if (route == network.nodes.end()) return;
  const auto attribute = [&](RoutingAttribute which) {
    return static_cast<uint32_t>(route->attributes[which]);
  };
  TokenRouting routing;
  routing.experts = attribute(kRoutingExperts);
  routing.top_k = attribute(kRoutingPerToken);
  routing.groups = attribute(kRoutingGroups);
  routing.limited_groups = attribute(kRoutingLimitedGroups);
  for (Role& role : schedule->roles) {
    for (Op& op : role.ops) {
      auto* const collective = std::get_if<Collective>(&op.work);
      if (collective == nullptr || collective->kind != CollectiveKind::kAllToAll ||
          collective->algorithm != AlgorithmId::kDeepEp)
        continue;
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
