// GPUs of a machine go by PCIe and the host although they have NVLink.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause NoPeerToPeerRow() {
  return {
      "no-peer-to-peer",
      "NVLink is not used within a box: GPUs go by PCIe and the host",
      "NCCL_DEBUG=INFO: channels \"via SHM\" instead of \"via P2P\"; NCCL_P2P_DISABLE, and "
      "whether nv-fabricmanager runs",
      {1, 2},
      false,
      [](double copies) -> std::string {
        return copies > 1 ? "copied through the host's memory" : "by PCIe";
      },
      [](const CollectiveRun& run, double copies) -> std::optional<CollectiveRun> {
        const Cluster& cluster = *run.cluster;
        std::optional<LinkKind> kind;
        for (uint32_t link = 0; link < cluster.link_count() && !kind; ++link)
          if (cluster.KindOf(link) == LinkKind::kNvLink || cluster.KindOf(link) == LinkKind::kXgmi)
            kind = cluster.KindOf(link);
        if (!kind) return std::nullopt;
        const CollectiveRun apart = WithoutLinksOf(run, {"**"}, *kind);
        return WithSlowLinks(apart, 1 / copies, Seconds(0), [&](uint32_t link) {
          return apart.cluster->KindOf(link) == LinkKind::kPcie;
        });
      }};
}

}  // namespace rehearse
