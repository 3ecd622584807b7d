// The cluster: devices, NICs, switches and sockets, and directed links between them. Links that run
// both ways are two; each direction has its own capacity.
//
// A cluster is its wiring (topology/cluster/wiring.h) under its figures
// (topology/cluster/figures.h). Copies share both and neither ever changes, so a cluster is cheap
// to copy and safe to read from many threads; With() gives another cluster with the same wiring. A
// ClusterBuilder (topology/cluster/builder.h) makes the first one.
//
// A cluster that was built from equal machines and a fabric (topology/presets/machine.h) also knows
// its structure, which saves the router most of its searching. Names are made when asked for: a
// large cluster has millions.
//
// Invariants: every device reaches every other without passing through a third, or over NVLink and
// xGMI alone; names are unique; devices are ranked in the order in which they were added.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/id.h"
#include "sim/base/quantity.h"
#include "topology/cluster/figures.h"
#include "topology/cluster/wiring.h"
#include "topology/devices/device.h"

namespace rehearse {

// One direction of a link, wiring and figures together.
struct ClusterLink {
  LinkKind kind = LinkKind::kNetwork;
  uint32_t index = 0;        // dense, in the order of adding
  BytesPerSecond bandwidth;  // nominal, this direction
  double efficiency = 1;     // share of it that collectives reach
  Seconds latency;

  BytesPerSecond Capacity() const { return bandwidth * efficiency; }
};

class Cluster {
 public:
  Cluster(const Cluster&) = default;
  Cluster& operator=(const Cluster&) = delete;

  // The same wiring with these figures. Throws Error for a link's bandwidth that is not positive,
  // an efficiency outside (0, 1] and a latency outside 0 to kLongestLatency; CHECKs that there are
  // figures for every link and device.
  Cluster With(Figures figures) const;

  const Figures& figures() const { return *figures_; }
  const std::shared_ptr<const Wiring>& wiring() const { return wiring_; }
  const std::string& name() const { return wiring_->name; }

  // Vertices.
  size_t vertex_count() const { return wiring_->vertex_count(); }
  Vertex VertexAt(VertexId id) const { return wiring_->VertexAt(id); }  // makes its names
  VertexKind KindOfVertex(VertexId id) const { return wiring_->KindAt(id); }
  VertexId FindVertex(const std::string& name) const;  // Error with "did you mean"

  // Devices, by rank.
  uint32_t device_count() const { return static_cast<uint32_t>(devices().size()); }
  const std::vector<VertexId>& devices() const { return wiring_->devices; }  // rank -> vertex
  std::string DeviceName(uint32_t rank) const;                               // "node0/gpu1"
  const DeviceSpec& DeviceOf(uint32_t rank) const;
  uint32_t SpecOf(uint32_t rank) const;  // position in device_specs()
  const std::vector<DeviceSpec>& device_specs() const { return figures_->device_specs; }
  // Its machine's name. Devices that name no machine all belong to one, named "".
  std::string NodeOf(uint32_t rank) const;
  uint32_t NodeIndexOf(uint32_t rank) const;  // machines numbered by their first device
  uint32_t node_count() const { return wiring_->node_count; }

  // Links, by index; after them the trunks (topology/cluster/trunks.h), which these functions take
  // as well. A trunk's ends are the first of the switches that its cables join.
  uint32_t link_count() const { return static_cast<uint32_t>(wiring_->link_count()); }
  uint32_t way_count() const { return link_count() + wiring_->trunks.count(); }  // trunks included
  ClusterLink Link(uint32_t index) const;
  LinkKind KindOf(uint32_t link) const {
    return IsTrunk(link) ? LinkKind::kNetwork : wiring_->LinkAt(link).kind;
  }
  Seconds LatencyOf(uint32_t link) const {
    return (IsTrunk(link) ? (*trunk_figures_)[link - link_count()] : (*figures_->links)[link])
        .latency;
  }
  VertexId SourceOf(uint32_t link) const;
  VertexId TargetOf(uint32_t link) const;
  // "node0/gpu0->node0/gpu1"; of a trunk "leaf0->spine*".
  std::string LinkName(uint32_t index) const;
  bool IsTrunk(uint32_t link) const { return link >= link_count(); }
  // The cables of a trunk.
  std::span<const uint32_t> CablesOf(uint32_t link) const {
    return wiring_->trunks.CablesOf(link - link_count());
  }

  // The other figures; topology/cluster/figures.h says what they are.
  Seconds step_overhead() const { return figures_->step_overhead; }
  Seconds collective_overhead() const { return figures_->collective_overhead; }
  Seconds channel_overhead() const { return figures_->channel_overhead; }
  const NetworkPlugin& network_plugin() const { return figures_->network_plugin; }
  const std::vector<std::vector<uint32_t>>& rings() const { return figures_->rings; }
  const std::shared_ptr<const MeasuredCollectives>& measured_collectives() const {
    return figures_->measured_collectives;
  }
  const std::optional<CalibrationOrigin>& calibration_origin() const {
    return figures_->calibration_origin;
  }
  const std::vector<std::string>& notes() const { return figures_->notes; }

  // Null for a cluster that was drawn vertex by vertex.
  const std::shared_ptr<const ClusterStructure>& structure() const { return wiring_->structure; }

 private:
  friend class ClusterBuilder;
  // `trunks` are the sums over the figures' links; null: still to be summed up.
  Cluster(std::shared_ptr<const Wiring> wiring, std::shared_ptr<const Figures> figures,
          std::shared_ptr<const std::vector<LinkFigures>> trunks = nullptr);

  std::shared_ptr<const Wiring> wiring_;
  std::shared_ptr<const Figures> figures_;
  std::shared_ptr<const std::vector<LinkFigures>> trunk_figures_;  // sums over their cables
};

}  // namespace rehearse
