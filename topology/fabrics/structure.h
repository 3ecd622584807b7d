// What a cluster of equal machines and a fabric knows about itself: where everything is, by
// arithmetic.
//
// Machine n has the vertices first_vertex + n·vertices_per_machine…, the devices
// n·devices_per_machine… (ranks), and the links first_link + n·links_per_machine…: its inner links,
// then for each port the cable to the fabric and the one from it. Links are counted as they were
// drawn; link_now says where they are after some were taken away. Immutable.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "topology/fabrics/fabric.h"

namespace rehearse {

struct ClusterStructure {
  static constexpr uint32_t kGone = 0xffffffffu;

  uint32_t machines = 1;
  uint32_t devices_per_machine = 1;
  uint32_t vertices_per_machine = 1;
  uint32_t inner_links = 0;  // of a machine
  VertexId first_vertex = 0;
  uint32_t first_link = 0;
  uint32_t link_count = 0;            // as drawn
  std::vector<uint32_t> port_vertex;  // of each port, counted from the machine's first vertex
  std::optional<Fabric> fabric;       // none: one machine alone
  std::vector<uint32_t> link_now;     // by link as drawn, or kGone; empty: all are where they were

  uint32_t device_count() const { return machines * devices_per_machine; }
  uint32_t ports() const { return static_cast<uint32_t>(port_vertex.size()); }
  uint32_t links_per_machine() const { return inner_links + 2 * ports(); }
  uint32_t FirstLinkOf(uint32_t machine) const {
    return first_link + machine * links_per_machine();
  }
  VertexId FirstVertexOf(uint32_t machine) const {
    return first_vertex + VertexId{machine} * vertices_per_machine;
  }
  // The cable of a port towards the fabric; the next link leads back.
  uint32_t PortLink(uint32_t machine, uint32_t port) const {
    return FirstLinkOf(machine) + inner_links + 2 * port;
  }
  uint32_t LinkNow(uint32_t drawn) const { return link_now.empty() ? drawn : link_now[drawn]; }
  uint32_t LinksNow() const;
};

// The cluster's fabric; null if it was drawn vertex by vertex, and for one machine alone.
const Fabric* FabricOf(const Cluster& cluster);

// The figures of a link (no trunk) by which routes are chosen: those that it was drawn with,
// whatever edits have made of it.
const LinkFigures& FiguresForRoutes(const Cluster& cluster, uint32_t link);

// For a cluster with the vertices and links of this structure.
void SetStructure(ClusterBuilder& cluster, std::shared_ptr<const ClusterStructure> structure);

// The structure after links of the cluster, counted as they are now, are taken away.
ClusterStructure WithoutLinks(const ClusterStructure& structure, const std::vector<bool>& gone);

}  // namespace rehearse
