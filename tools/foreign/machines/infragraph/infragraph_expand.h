// The graph that an infrastructure of InfraGraph describes
// (tools/foreign/machines/infragraph/infragraph_file.h): instances with all their components,
// slices of both ends paired (one2one, as many as the shorter has) or crossed (many2many), devices
// within devices.
//
// Some devices are not taken apart. An instance without an xpu is a switch, whatever is in it; one
// with NICs and CPUs and neither ports nor switches is a host without accelerators, and left out. A
// device within another that has NICs or ports and no xpu is a NIC. Memory is left out: nothing
// goes through it. Machines are instances with xpus, or, in a rack, the devices within them that
// have xpus and CPUs or NICs of their own. Where components have words of our own export
// (tools/foreign/machines/infragraph/infragraph_words.h) everything stays what they say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/foreign/machines/infragraph/infragraph_file.h"
#include "topology/cluster/wiring.h"

namespace rehearse {

struct InfraVertex {
  std::string name;                           // "node0/gpu1"; unique
  std::string machine;                        // "" for the fabric
  const InfraComponent* component = nullptr;  // null: a device that was not taken apart
  std::string text;                           // what is said about it, in small letters
  VertexKind kind = VertexKind::kSwitch;
  bool is_open = false;  // its kind: what is joined to it will tell
  bool is_port = false;
};

struct InfraJoin {
  uint32_t a = 0;  // vertices
  uint32_t b = 0;
  const InfraLink* link = nullptr;
  uint32_t count = 1;  // edges between parts of the two
};

struct ExpandedInfra {
  std::vector<InfraVertex> vertices;
  std::vector<InfraJoin> joins;  // each pair and link once, in the order of the file
  bool is_drawn = false;         // by our own export
};

// `graph` must outlive what is returned. Throws Error with the place for names that are not there,
// indices beyond a count, devices within themselves, and for more than a million parts or edges.
ExpandedInfra ExpandInfra(const InfraGraph& graph, Remarks& remarks);

}  // namespace rehearse
