// GPUs send by NICs behind the other socket.
//
// NCCL reaches such a NIC through the hosts' memory (NCCL_NET_GDR_LEVEL is PHB unless it is set),
// and all that a box sends and gets crosses the link between its sockets: half of each in each
// direction, so a direction of it carries what all NICs send. Boxes of
// more sockets are taken to be as if they had two.
#include <algorithm>

#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {
namespace {

// Of the NICs' bandwidth: what the link between sockets carries. Nothing if the group's first
// machine has one socket, or no NICs.
std::optional<double> ShareOverSockets(const CollectiveRun& run) {
  const Cluster& cluster = *run.cluster;
  const std::string machine = cluster.NodeOf(run.trials.front().groups.front().front());
  const auto is_there = [&](VertexId vertex) { return cluster.VertexAt(vertex).node == machine; };
  BytesPerSecond of_nics(0);
  BytesPerSecond of_sockets(0);
  for (uint32_t link = 0; link < cluster.link_count(); ++link) {
    const LinkKind kind = cluster.KindOf(link);
    if (kind != LinkKind::kNetwork && kind != LinkKind::kSocket) continue;
    const VertexId from = cluster.SourceOf(link);
    if (!is_there(from)) continue;
    const BytesPerSecond rate = (*cluster.figures().links)[link].bandwidth;
    if (kind == LinkKind::kSocket) of_sockets = std::max(of_sockets, rate);
    if (kind == LinkKind::kNetwork && cluster.KindOfVertex(from) == VertexKind::kNic)
      of_nics += rate;
  }
  if (of_sockets <= BytesPerSecond(0) || of_nics <= BytesPerSecond(0)) return std::nullopt;
  return std::min(1.0, of_sockets / of_nics);
}

}  // namespace

CollectiveCause WrongNicRow() {
  return {"wrong-nic",
          "GPUs use NICs behind the other socket (a wrong affinity, or a topology that a virtual "
          "machine hides)",
          "nvidia-smi topo -m: PIX or PXB to a NIC, not SYS; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS="
          "GRAPH: which NIC each channel ends at; NCCL_TOPO_FILE, NCCL_IB_HCA",
          {1},
          false,
          [](double) { return std::string(); },
          [](const CollectiveRun& run, double) -> std::optional<CollectiveRun> {
            constexpr Seconds kCopy(5e-6);
            const std::optional<double> share = ShareOverSockets(run);
            if (!share || !HasSeveralMachines(run)) return std::nullopt;
            return ThroughTheHost(run, *share, kCopy);
          }};
}

}  // namespace rehearse
