// The PCIe links of one device, and of the NIC that it uses: half the lanes, or an old generation.
#include <fmt/format.h>

#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause SlowPcieRow() {
  return {"slow-pcie",
          "PCIe of one GPU or NIC runs at fewer lanes or an older generation",
          "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv under "
          "load, and lspci -vv: LnkSta beside LnkCap of every NIC",
          {2, 4, 8, 16},
          false,
          [](double divisor) { return fmt::format("1/{:.0f} of the bandwidth", divisor); },
          [](const CollectiveRun& run, double divisor) {
            const Cluster& cluster = *run.cluster;
            const VertexId device = cluster.devices()[run.trials.front().groups.front().front()];
            const std::optional<FirstCrossing> crossing = FindCrossing(run);
            const VertexId nic = crossing ? crossing->port : device;
            return WithSlowLinks(run, 1 / divisor, Seconds(0), [&](uint32_t link) {
              if (cluster.KindOf(link) != LinkKind::kPcie) return false;
              const VertexId from = cluster.SourceOf(link);
              const VertexId to = cluster.TargetOf(link);
              return from == device || to == device || from == nic || to == nic;
            });
          }};
}

}  // namespace rehearse
