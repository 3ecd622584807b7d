// What a cluster of equal machines and a fabric knows of itself: where everything is, by arithmetic.
//
// Machine n has the vertices first_vertex + n·vertices_per_machine…, the devices n·devices_per_machine… (ranks),
// and the links first_link + n·links_per_machine…: its inner links, then for each port the cable to the fabric and the
// one from it. Immutable.
#pragma once

#include <optional>
#include <vector>

#include "topology/fabric.h"

namespace rehearse {

struct ClusterStructure {
  uint32_t machines = 1;
  uint32_t devices_per_machine = 1;
  uint32_t vertices_per_machine = 1;
  uint32_t inner_links = 0;  // of a machine
  Cluster::VertexId first_vertex = 0;
  uint32_t first_link = 0;
  uint32_t link_count = 0;            // of the cluster
  std::vector<uint32_t> port_vertex;  // of each port, counted from the machine's first vertex
  std::vector<Seconds> latencies;     // of a machine's links, as they were drawn
  std::optional<Fabric> fabric;       // none: one machine alone

  uint32_t device_count() const { return machines * devices_per_machine; }
  uint32_t ports() const { return static_cast<uint32_t>(port_vertex.size()); }
  uint32_t links_per_machine() const { return inner_links + 2 * ports(); }
  uint32_t FirstLinkOf(uint32_t machine) const {
    return first_link + machine * links_per_machine();
  }
  Cluster::VertexId FirstVertexOf(uint32_t machine) const {
    return first_vertex + Cluster::VertexId{machine} * vertices_per_machine;
  }
  // The cable of a port towards the fabric; the next link leads back.
  uint32_t PortLink(uint32_t machine, uint32_t port) const {
    return FirstLinkOf(machine) + inner_links + 2 * port;
  }
};

}  // namespace rehearse
