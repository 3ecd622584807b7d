// Every NIC's cable alike: a rate that all negotiated, congestion by others, a wrong setting.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause SlowNetworkRow() {
  return {
      "slow-network",
      "all NICs are slower than they should be",
      "ibstat, or ethtool: the rate of every port; ib_write_bw between two boxes at a quiet time",
      Geometric(0.9, 0.015, 8),
      true,
      ShareWords,
      [](const CollectiveRun& run, double share) -> std::optional<CollectiveRun> {
        if (!HasSeveralMachines(run)) return std::nullopt;
        const Cluster& cluster = *run.cluster;
        return WithSlowLinks(run, share, Seconds(0), [&](uint32_t link) {
          return cluster.KindOf(link) == LinkKind::kNetwork && !IsBetweenSwitches(cluster, link);
        });
      },
      "of the bandwidth"};
}

}  // namespace rehearse
