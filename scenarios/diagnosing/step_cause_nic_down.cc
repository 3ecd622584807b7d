// One NIC of one machine is gone, and its devices share another's.
#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {
namespace {

// "" if machines have no NICs, or one each.
std::string SecondNicOfAMachine(const Cluster& cluster) {
  std::string first;
  for (VertexId vertex = 0; vertex < cluster.vertex_count(); ++vertex) {
    if (cluster.KindOfVertex(vertex) != VertexKind::kNic) continue;
    const Vertex nic = cluster.VertexAt(vertex);
    if (!first.empty() && nic.node == first) return nic.name;
    first = nic.node;
  }
  return "";
}

}  // namespace

StepCause StepNicDownRow() {
  return {"nic-down",
          "one NIC of one box is down, and its GPUs go by another one",
          "ibstat, or ip link, on every box: a port that is not Active",
          {1},
          false,
          [](double) { return std::string(); },
          [](const StepSubject& subject, double) -> std::vector<std::string> {
            const std::string nic = SecondNicOfAMachine(subject.cluster);
            if (nic.empty()) return {};
            return {WithEdit(subject, {{"links", nic}, {"kind", "network"}, {"down", true}})};
          }};
}

}  // namespace rehearse
