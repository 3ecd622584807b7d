// Equal machines and their cables, kept once for all of them: a large cluster has millions of
// vertices and links, and all but its fabric are copies.
//
// Machine n is named prefix + n, and its parts "node0/gpu1". Its vertices and links are numbered
// consecutively, machine by machine, after those drawn one by one: first the inner links, then for
// each port the cable to its switch and the one from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

enum class VertexKind : uint8_t { kDevice, kNic, kPcieSwitch, kSocket, kNvSwitch, kSwitch };
enum class LinkKind : uint8_t { kNvLink, kXgmi, kPcie, kSocket, kNetwork, kMemory };

struct WiredLink {
  uint32_t from = 0;
  uint32_t to = 0;
  LinkKind kind = LinkKind::kNetwork;
};

struct EqualMachines {
  struct Part {
    std::string name;  // "gpu1"
    VertexKind kind = VertexKind::kDevice;
  };

  uint32_t count = 0;
  std::string prefix;
  std::vector<Part> parts;
  std::vector<WiredLink> wires;    // between parts
  std::vector<uint32_t> ports;     // parts; one with several cables is listed as often
  std::vector<LinkKind> cables;    // of each port
  std::vector<uint32_t> switches;  // vertices: for each machine, that of each port

  size_t vertex_count() const { return count * parts.size(); }
  size_t links_per_machine() const { return wires.size() + 2 * ports.size(); }
  size_t link_count() const { return count * links_per_machine(); }
};

}  // namespace rehearse
