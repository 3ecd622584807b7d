#include "topology/cluster/wiring.h"

#include <utility>

#include "sim/base/error.h"
#include "topology/cluster/graph.h"

namespace rehearse {

const char* Name(VertexKind kind) {
  switch (kind) {
    case VertexKind::kDevice:
      return "device";
    case VertexKind::kNic:
      return "nic";
    case VertexKind::kPcieSwitch:
      return "pcie-switch";
    case VertexKind::kSocket:
      return "socket";
    case VertexKind::kNvSwitch:
      return "nvswitch";
    case VertexKind::kSwitch:
      return "switch";
  }
  CHECK(false);
}

const char* Name(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvLink:
      return "nvlink";
    case LinkKind::kXgmi:
      return "xgmi";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kSocket:
      return "socket";
    case LinkKind::kNetwork:
      return "network";
    case LinkKind::kMemory:
      return "memory";
  }
  CHECK(false);
}

Wiring::Wiring(std::string cluster) : name(std::move(cluster)), graph(std::make_unique<Graph>()) {}

Wiring::~Wiring() = default;

}  // namespace rehearse
