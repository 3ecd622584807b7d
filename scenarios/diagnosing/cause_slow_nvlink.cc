// NVLinks (or xGMI) of one device: some are down, or retry.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause SlowNvLinkRow() {
  return {"slow-nvlink",
          "NVLinks of one GPU are down or slow",
          "nvidia-smi nvlink -s and nvidia-smi nvlink -e on every box: links inactive, or counting "
          "errors (rocm-smi --showtopo on AMD)",
          Geometric(0.9, 0.05, 6),
          true,
          ShareWords,
          [](const CollectiveRun& run, double share) {
            const Cluster& cluster = *run.cluster;
            const VertexId device = cluster.devices()[run.trials.front().groups.front().front()];
            return WithSlowLinks(run, share, Seconds(0), [&](uint32_t link) {
              const LinkKind kind = cluster.KindOf(link);
              return (kind == LinkKind::kNvLink || kind == LinkKind::kXgmi) &&
                     (cluster.SourceOf(link) == device || cluster.TargetOf(link) == device);
            });
          },
          "of the bandwidth"};
}

}  // namespace rehearse
