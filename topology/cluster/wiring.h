// What is wired in a cluster: vertices with their names, links with their ends and kinds, ranks,
// machines. Figures are not part of it (topology/cluster/figures.h). A ClusterBuilder makes it;
// from then on it never changes, and all clusters that differ in figures alone share it.
//
// As a graph that can be searched it is in topology/cluster/graph.h, which brings Boost.Graph with
// it; this header, like all that includes no more than topology/cluster/cluster.h, does without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "topology/cluster/trunks.h"

namespace rehearse {

struct ClusterStructure;  // topology/fabrics/structure.h

enum class VertexKind : uint8_t { kDevice, kNic, kPcieSwitch, kSocket, kNvSwitch, kSwitch };
enum class LinkKind : uint8_t { kNvLink, kXgmi, kPcie, kSocket, kNetwork, kMemory };
// "device", "nic", "pcie-switch", "socket", "nvswitch", "switch"
const char* Name(VertexKind kind);
// "nvlink", "xgmi", "pcie", "socket", "network", "memory"
const char* Name(LinkKind kind);

using VertexId = size_t;  // in the order of adding
inline constexpr VertexId kNoVertex = ~VertexId{0};

struct Vertex {
  std::string name;  // "node0/gpu1"
  VertexKind kind = VertexKind::kDevice;
  std::string node;  // the machine it is part of; "" for the fabric
};

struct WiredLink {
  uint32_t from = 0;
  uint32_t to = 0;
  LinkKind kind = LinkKind::kNetwork;
};

struct Wiring {
  struct Graph;  // topology/cluster/graph.h

  explicit Wiring(std::string cluster);
  ~Wiring();
  Wiring(const Wiring&) = delete;
  Wiring& operator=(const Wiring&) = delete;

  std::string name;  // the cluster's
  std::vector<Vertex> vertices;
  std::vector<WiredLink> links;
  std::vector<VertexId> devices;     // rank -> vertex
  std::vector<uint32_t> node_index;  // by rank; machines are numbered by their first device
  uint32_t node_count = 0;
  std::shared_ptr<const ClusterStructure> structure;  // null where it was drawn vertex by vertex
  Trunks trunks;                                      // none there either
  std::unique_ptr<Graph> graph;

  // Vertices by their name, which only they themselves hold.
  struct HashName {
    using is_transparent = void;
    const std::vector<Vertex>* of;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    size_t operator()(VertexId id) const { return (*this)(std::string_view((*of)[id].name)); }
  };
  struct SameName {
    using is_transparent = void;
    const std::vector<Vertex>* of;
    bool operator()(VertexId a, VertexId b) const { return (*of)[a].name == (*of)[b].name; }
    bool operator()(std::string_view a, VertexId b) const { return a == (*of)[b].name; }
    bool operator()(VertexId a, std::string_view b) const { return b == (*of)[a].name; }
  };
  std::unordered_set<VertexId, HashName, SameName> vertex_by_name{0, HashName{&vertices},
                                                                  SameName{&vertices}};
};

}  // namespace rehearse
