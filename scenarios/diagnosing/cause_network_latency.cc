// Every hop between machines takes longer.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause NetworkLatencyRow() {
  return {"network-latency",
          "messages between boxes take longer to arrive",
          "ib_write_lat between two boxes; pause frames and queues (ethtool -S); interrupts and "
          "power states of the host",
          Geometric(3e-6, 1e-3, 7),
          true,
          AdditionWords,
          [](const CollectiveRun& run, double seconds) -> std::optional<CollectiveRun> {
            if (!HasSeveralMachines(run)) return std::nullopt;
            const Cluster& cluster = *run.cluster;
            // A way has two cables of NICs.
            return WithSlowLinks(run, 1, Seconds(seconds / 2), [&](uint32_t link) {
              return cluster.KindOf(link) == LinkKind::kNetwork &&
                     !IsBetweenSwitches(cluster, link);
            });
          },
          "more"};
}

}  // namespace rehearse
