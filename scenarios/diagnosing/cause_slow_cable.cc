// The cable or port of one NIC of one machine.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause SlowCableRow() {
  return {"slow-cable",
          "the cable or port of one NIC of one box is slow or flaps",
          "ib_write_bw -d mlx5_N between every two boxes, NIC by NIC; ibqueryerrors, or ethtool -S",
          Geometric(0.9, 0.015, 8),
          true,
          ShareWords,
          [](const CollectiveRun& run, double share) -> std::optional<CollectiveRun> {
            const std::optional<FirstCrossing> crossing = FindCrossing(run);
            if (!crossing) return std::nullopt;
            const Cluster& cluster = *run.cluster;
            return WithSlowLinks(run, share, Seconds(0), [&](uint32_t link) {
              return cluster.KindOf(link) == LinkKind::kNetwork &&
                     (cluster.SourceOf(link) == crossing->port ||
                      cluster.TargetOf(link) == crossing->port);
            });
          },
          "of the bandwidth"};
}

}  // namespace rehearse
