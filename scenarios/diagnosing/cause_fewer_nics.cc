// NCCL uses fewer NICs of every machine than there are.
#include <set>

#include <fmt/format.h>

#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {
namespace {

// The names of the NICs of the group's first machine, in order, as patterns for those of all.
std::vector<std::string> PatternsOfNics(const CollectiveRun& run) {
  const Cluster& cluster = *run.cluster;
  const std::string machine = cluster.NodeOf(run.trials.front().groups.front().front());
  std::vector<std::string> patterns;
  for (VertexId vertex = 0; vertex < cluster.vertex_count(); ++vertex) {
    if (cluster.KindOfVertex(vertex) != VertexKind::kNic) continue;
    const Vertex nic = cluster.VertexAt(vertex);
    if (nic.node != machine) continue;
    const size_t slash = nic.name.rfind('/');
    patterns.push_back(slash == std::string::npos ? nic.name : "*" + nic.name.substr(slash));
  }
  return patterns;
}

}  // namespace

CollectiveCause FewerNicsRow() {
  return {"fewer-nics",
          "NCCL uses fewer NICs than every box has",
          "NCCL_DEBUG=INFO: the line \"NET/IB : Using\" lists the NICs; NCCL_IB_HCA, and the "
          "interfaces that a container sees",
          {2, 4, 8},
          false,
          [](double divisor) { return fmt::format("1 of {:.0f}", divisor); },
          [](const CollectiveRun& run, double divisor) -> std::optional<CollectiveRun> {
            if (!HasSeveralMachines(run)) return std::nullopt;
            std::vector<std::string> gone = PatternsOfNics(run);
            const size_t kept = gone.size() / static_cast<size_t>(divisor);
            if (kept == 0 || gone.size() % static_cast<size_t>(divisor) != 0) return std::nullopt;
            gone.erase(gone.begin(), gone.begin() + static_cast<ptrdiff_t>(kept));
            return WithoutLinksOf(run, gone, LinkKind::kNetwork);
          }};
}

}  // namespace rehearse
