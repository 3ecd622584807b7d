// One NIC of one machine is gone, and its devices share another's.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause NicDownRow() {
  return {
      "nic-down",
      "one NIC of one box is down, and its GPUs go by another one",
      "ibstat, or ip link, on every box: a port that is not Active; NCCL_DEBUG=INFO: a box with "
      "fewer NICs than the others",
      {1},
      false,
      [](double) { return std::string(); },
      [](const CollectiveRun& run, double) -> std::optional<CollectiveRun> {
        const std::optional<FirstCrossing> crossing = FindCrossing(run);
        if (!crossing || crossing->port == crossing->device) return std::nullopt;
        return WithoutLinksOf(run, {run.cluster->VertexAt(crossing->port).name},
                              LinkKind::kNetwork);
      }};
}

}  // namespace rehearse
