// One machine, as data: how many devices, how they are joined to each other, the host with its
// sockets, PCIe switches, NICs and memory. Functions in node_*.h make such descriptions; DrawNode
// turns one into vertices and links, which topology/presets/machine.h repeats for each machine.
//
// Vertices are named node3/gpu1, node3/nvswitch, node3/socket0, node3/pcie2, node3/nic0 (the names
// are in the description). Devices are dealt evenly and in order to the PCIe switches, these to the
// sockets, and NICs likewise to switches or sockets.
//
// Through the host: where devices have no peer-to-peer access and NICs no access to device memory,
// a copy goes into the host's memory and out again. So that no path can avoid it, what leads to a
// socket and what leads from it are two vertices, socketN and memoryN, with one link of kind
// "memory" from the first to the second; a PCIe switch is likewise two, pcieN/up and pcieN/down.
// The memory link's capacity is what copies through that socket's memory reach together, and they
// contend there. Sockets are joined behind the memory: a reader fetches from the writer's socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/cluster/cluster.h"

namespace rehearse {

// Two devices and how many of the node's device_lane join them.
struct DeviceLanes {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t lanes = 1;
};

enum class NicPlace : uint8_t { kSwitch, kSocket };

// NICs of another speed beside the others; they are numbered after them.
struct MoreNics {
  uint32_t count = 1;
  NicPlace place = NicPlace::kSwitch;
  ClusterLink pcie;   // NIC to its switch or socket
  ClusterLink cable;  // each of its ports to the fabric
};

struct Host {
  uint32_t sockets = 1;
  uint32_t switches = 0;  // PCIe switches; 0: root ports
  uint32_t nics = 0;
  uint32_t nic_ports = 1;                  // of every NIC, each with a cable of its own
  NicPlace nic_place = NicPlace::kSwitch;  // sockets anyway when there are no switches
  std::optional<ClusterLink> device;       // device to its switch, or to its socket
  std::optional<ClusterLink> root_port;    // switch to socket; none: the switch leads nowhere else
  std::optional<ClusterLink> device_to_socket;  // in addition to a switch
  std::optional<ClusterLink> nic;               // NIC to its switch or socket
  std::vector<MoreNics> more_nics;
  std::optional<ClusterLink> between_sockets;  // every two; none: they are not joined
  // Copies through the host go through this; without it, devices have peer-to-peer access.
  std::optional<ClusterLink> memory;
  BytesPerSecond
      memory_bandwidth;  // nominal, of each socket, for the host's own work; 0: not given
  std::string socket_name = "socket";
  std::string switch_name = "pcie";
};

struct NodeSpec {
  std::string prefix = "node";  // machines are called prefix0, prefix1, …
  std::string device_name = "gpu";
  uint32_t devices = 1;
  std::vector<DeviceLanes> lanes;       // direct links
  std::optional<ClusterLink> lane;      // one of them
  std::optional<ClusterLink> nvswitch;  // each device to the one NVSwitch plane
  std::optional<Host> host;
  // What joins each port of a NIC to the fabric or, without NICs, each device.
  std::optional<ClusterLink> cable;
};

struct NodeShape {
  struct Part {
    std::string name;  // within the machine: "gpu1"
    VertexKind kind = VertexKind::kDevice;
  };
  struct Wire {
    uint32_t from = 0;  // position in parts
    uint32_t to = 0;
    ClusterLink link;  // one direction
  };
  std::string prefix;
  std::vector<Part> parts;  // the devices first
  std::vector<Wire> wires;
  struct Port {
    uint32_t part = 0;  // the part that is cabled to the fabric, and by what
    ClusterLink cable;
  };
  std::vector<Port> ports;  // those of a NIC are neighbours
};

// How large DrawNode would make it, without drawing it.
struct NodeSize {
  uint64_t parts = 0;
  uint64_t wires = 0;
  uint64_t ports = 0;
};
NodeSize SizeOf(const NodeSpec& spec);
// A mistyped count must not use up the memory.
inline constexpr uint64_t kMostNodeWires = 1u << 20;

// CHECKs that the description is complete, with all links that its counts need.
NodeShape DrawNode(const NodeSpec& spec);

ClusterLink MakeLink(LinkKind kind, BytesPerSecond bandwidth, double efficiency, Seconds latency);

// Every two devices joined by that many lanes.
std::vector<DeviceLanes> AllToAll(uint32_t devices, uint32_t lanes);

}  // namespace rehearse
