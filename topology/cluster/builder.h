// Draws a cluster, vertex by vertex and link by link.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

class ClusterBuilder {
 public:
  explicit ClusterBuilder(std::string name);

  // AddVertex throws Error for a name that is empty or used twice, and for a device whose spec has
  // not been added; AddLink for an end that does not exist, for figures that Cluster::With() would
  // refuse and for a link of a vertex to itself.
  uint32_t AddDeviceSpec(const DeviceSpec& spec);
  void Reserve(size_t vertices, size_t links);  // room, where the caller knows
  // `spec` counts for devices only.
  VertexId AddVertex(const Vertex& vertex, uint32_t spec = 0);
  // All vertices of another cluster, with their devices' specs; for a builder without any yet.
  void AddVerticesOf(const Cluster& cluster);
  void AddLink(VertexId from, VertexId to, const ClusterLink& link);  // one direction; numbers it
  void AddLinks(VertexId a, VertexId b, const ClusterLink& link);     // both directions
  // Equal machines, all at once, after everything else. `figures` are those of one machine's links;
  // all devices are of the kind `spec`. Names must not be those of other vertices.
  void AddMachines(EqualMachines machines, std::vector<LinkFigures> figures, uint32_t spec);
  void set_step_overhead(Seconds overhead) { figures_.step_overhead = overhead; }
  void set_collective_overhead(Seconds overhead) { figures_.collective_overhead = overhead; }
  void set_channel_overhead(Seconds overhead) { figures_.channel_overhead = overhead; }
  void set_network_plugin(NetworkPlugin plugin) { figures_.network_plugin = std::move(plugin); }
  void AddNote(std::string note) { figures_.notes.push_back(std::move(note)); }
  // For SetStructure() of topology/fabrics/structure.h. `is_whole`: no link was taken away, so all
  // devices reach each other.
  void set_structure(std::shared_ptr<const ClusterStructure> structure, Trunks trunks,
                     bool is_whole);

  size_t vertex_count() const { return wiring_->vertex_count(); }
  uint32_t device_count() const { return static_cast<uint32_t>(wiring_->devices.size()); }
  uint32_t link_count() const { return static_cast<uint32_t>(wiring_->link_count()); }
  const std::vector<VertexId>& devices() const { return wiring_->devices; }
  Trunks::Ends EndsOf(uint32_t link) const {
    const WiredLink wired = wiring_->LinkAt(link);
    return {wired.from, wired.to};
  }

  // Once only. Throws Error when there is no device or when some device cannot reach another
  // without passing through a third one, naming both and all ranks that are cut off.
  Cluster Finish();

 private:
  std::unique_ptr<Wiring> wiring_;
  std::vector<LinkFigures> links_;            // of those drawn one by one
  std::vector<LinkFigures> machine_figures_;  // of one machine's links
  Figures figures_;                           // all except the links'
  bool is_whole_ = false;
};

}  // namespace rehearse
