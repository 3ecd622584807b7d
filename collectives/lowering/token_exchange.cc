#include "collectives/lowering/token_exchange.h"

#include <set>

#include "sim/base/error.h"

namespace rehearse {

uint32_t MachinesOf(const Trial& trial, const Cluster& cluster) {
  std::set<uint32_t> machines;
  for (const uint32_t rank : trial.groups.front()) machines.insert(cluster.NodeIndexOf(rank));
  return static_cast<uint32_t>(machines.size());
}

ExchangeTime TimeOf(const TokenExchange& exchange, uint64_t tokens, const Trial& trial,
                    const Cluster& cluster) {
  CHECK(trial.kind == CollectiveKind::kAllToAll);
  const bool forwards = FindAlgorithm(trial.algorithm).forwards;
  const TokenRouting& routing = exchange.routing;
  const auto count = static_cast<double>(tokens);
  Trial own = trial;
  double copies = routing.top_k;
  if (forwards) {
    const TokenSpread spread = SpreadOf(routing);
    own.rank_share = spread.ranks / routing.top_k;
    own.machine_share = spread.machines / routing.top_k;
    copies = routing.machines > 1 ? spread.machines : spread.ranks;
  }
  const Bytes bytes = count * routing.top_k * exchange.token;
  const Seconds time = TimesOverSeeds(own, {bytes}, cluster).front().median;
  return {time, count * copies * exchange.token / time};
}

}  // namespace rehearse
