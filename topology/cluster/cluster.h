// The cluster: devices, NICs, switches and sockets as the vertices of a Boost graph, and directed
// links between them. Links that run both ways are two edges; each direction has its own capacity.
//
// A cluster that was built from equal machines and a fabric (topology/presets/machine.h) also knows
// its structure, which saves the router most of its searching. Link names are made when asked for:
// a large cluster has millions.
//
// Invariants after Finish(): every device reaches every other without passing through a third;
// vertex names are unique; devices are ranked in the order in which they were added. Its figures
// may still be changed; as long as they are not it is thread-safe. Not copyable: links are
// remembered by their place in the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "sim/base/error.h"
#include "sim/base/id.h"
#include "sim/base/quantity.h"
#include "topology/devices/device.h"

namespace rehearse {

struct ClusterStructure;  // topology/fabrics/structure.h

enum class VertexKind : uint8_t { kDevice, kNic, kPcieSwitch, kSocket, kNvSwitch, kSwitch };
enum class LinkKind : uint8_t { kNvLink, kXgmi, kPcie, kSocket, kNetwork, kMemory };
// "device", "nic", "pcie-switch", "socket", "nvswitch", "switch".
const char* Name(VertexKind kind);
// "nvlink", "xgmi", "pcie", "socket", "network", "memory".
const char* Name(LinkKind kind);

struct Vertex {
  std::string name;  // "node0/gpu1"
  VertexKind kind = VertexKind::kDevice;
  std::string node;     // the machine it is part of; "" for the fabric
  uint32_t device = 0;  // kDevice: position in Cluster::device_specs()
};

struct ClusterLink {
  LinkKind kind = LinkKind::kNetwork;
  uint32_t index = 0;        // dense, in the order of adding
  BytesPerSecond bandwidth;  // nominal, this direction
  double efficiency = 1;     // share of it that collectives reach
  Seconds latency;

  BytesPerSecond Capacity() const { return bandwidth * efficiency; }
};

// Longer ones are mistakes, and sums of them must fit the simulated clock.
inline constexpr Seconds kLongestLatency(100);

// What users of a calibration have to know about where it is from.
struct CalibrationOrigin {
  std::string machine;  // "AMD EPYC, 2 cores"; "" when not told
  std::string date;
  // Not so: ranks shared a device, or there was only one; times mean little then.
  bool is_representative = true;
};

class Cluster {
 public:
  using Graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Vertex, ClusterLink>;
  using VertexId = Graph::vertex_descriptor;
  using EdgeId = Graph::edge_descriptor;

  explicit Cluster(std::string name) : name_(std::move(name)) {}
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Building. AddVertex throws Error for a name that is empty or used twice, and for a device whose
  // spec has not been added; AddLink for an end that does not exist, for a bandwidth that is not
  // positive, an efficiency outside (0, 1], a latency outside 0 to kLongestLatency and for a link
  // of a vertex to itself.
  uint32_t AddDeviceSpec(const DeviceSpec& spec);
  void Reserve(size_t vertices, size_t links);  // room, where the builder knows
  VertexId AddVertex(const Vertex& vertex);
  void AddLink(VertexId from, VertexId to, ClusterLink link);      // one direction; numbers it
  void AddLinks(VertexId a, VertexId b, const ClusterLink& link);  // both directions
  void set_step_overhead(Seconds overhead) { step_overhead_ = overhead; }
  void set_collective_overhead(Seconds overhead) { collective_overhead_ = overhead; }
  void set_channel_overhead(Seconds overhead) { channel_overhead_ = overhead; }
  // Instead of playing their steps over links; null for none.
  void set_measured_collectives(std::shared_ptr<const MeasuredCollectives> measured) {
    measured_collectives_ = std::move(measured);
  }
  void set_calibration_origin(CalibrationOrigin origin) { calibration_origin_ = std::move(origin); }
  // What a preset simplifies, for the user to read.
  void AddNote(std::string note) { notes_.push_back(std::move(note)); }
  // By SetStructure() of topology/fabrics/structure.h. `is_whole` where no link was taken away, so
  // that all devices reach each other.
  void set_structure(std::shared_ptr<const ClusterStructure> structure, bool is_whole);
  // Throws Error when there is no device or when some device cannot reach another without passing
  // through a third one, naming both and all ranks that are cut off.
  void Finish();

  // Other figures of what there is, by the only owner of a finished cluster. Conditions
  // as for AddLink.
  void ChangeLink(uint32_t index, BytesPerSecond bandwidth, Seconds latency);
  void ChangeEfficiency(uint32_t index, double efficiency);
  void ChangeDevice(uint32_t rank, uint32_t spec);
  void ChangeDeviceSpec(uint32_t spec, const DeviceSpec& changed);

  const std::string& name() const { return name_; }
  const Graph& graph() const { return graph_; }
  const std::vector<VertexId>& devices() const { return devices_; }  // rank -> vertex
  uint32_t device_count() const { return static_cast<uint32_t>(devices_.size()); }
  const DeviceSpec& DeviceOf(uint32_t rank) const;
  const std::vector<DeviceSpec>& device_specs() const { return device_specs_; }
  // Its machine's name. Devices that name no machine all belong to one, named "".
  const std::string& NodeOf(uint32_t rank) const;
  uint32_t NodeIndexOf(uint32_t rank) const;  // machines numbered by their first device
  uint32_t node_count() const { return node_count_; }
  uint32_t link_count() const { return static_cast<uint32_t>(links_.size()); }
  const ClusterLink& Link(uint32_t index) const;
  std::string LinkName(uint32_t index) const;  // "node0/gpu0->node0/gpu1"
  EdgeId Edge(uint32_t index) const { return links_[index]; }
  VertexId FindVertex(const std::string& name) const;       // Error with "did you mean"
  Seconds step_overhead() const { return step_overhead_; }  // each step of a collective
  // What launching a collective takes: once, and again for each channel that NCCL gives it.
  Seconds collective_overhead() const { return collective_overhead_; }
  Seconds channel_overhead() const { return channel_overhead_; }
  const std::shared_ptr<const MeasuredCollectives>& measured_collectives() const {
    return measured_collectives_;
  }
  // Nothing where no calibration was applied.
  const std::optional<CalibrationOrigin>& calibration_origin() const { return calibration_origin_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // Null for a cluster that was drawn vertex by vertex.
  const std::shared_ptr<const ClusterStructure>& structure() const { return structure_; }

 private:
  // Vertices by their name, which only the graph holds.
  struct HashName {
    using is_transparent = void;
    const Graph* graph;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
    size_t operator()(VertexId id) const { return (*this)(std::string_view((*graph)[id].name)); }
  };
  struct SameName {
    using is_transparent = void;
    const Graph* graph;
    bool operator()(VertexId a, VertexId b) const { return (*graph)[a].name == (*graph)[b].name; }
    bool operator()(std::string_view a, VertexId b) const { return a == (*graph)[b].name; }
    bool operator()(VertexId a, std::string_view b) const { return b == (*graph)[a].name; }
  };

  std::string name_;
  Graph graph_;
  std::vector<DeviceSpec> device_specs_;
  std::vector<VertexId> devices_;
  std::vector<EdgeId> links_;
  std::unordered_set<VertexId, HashName, SameName> vertex_by_name_{0, HashName{&graph_},
                                                                   SameName{&graph_}};
  std::vector<uint32_t> node_index_;  // by rank
  uint32_t node_count_ = 0;
  Seconds step_overhead_;
  Seconds collective_overhead_;
  Seconds channel_overhead_;
  std::shared_ptr<const MeasuredCollectives> measured_collectives_;
  std::optional<CalibrationOrigin> calibration_origin_;
  std::vector<std::string> notes_;
  std::shared_ptr<const ClusterStructure> structure_;
  bool is_whole_ = false;
};

}  // namespace rehearse
