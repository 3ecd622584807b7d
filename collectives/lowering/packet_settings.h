// How packets travel between the machines of a cluster: what its network does unless it is told,
// and what a user may say about it.
//
//   network                       link control  rate control  cables                recovery
//   InfiniBand, routes sprayed    credits       none          shortest queue        selective
//   RoCE, routes hashed           pfc           dcqcn         the route's           go-back-n
//   RoCE, flowlets                pfc           dcqcn         by flowlet            go-back-n
//   EFA (network_plugin efa…)     drop          window        each packet the next  selective
//   TCP (tcpx, tcpxo, socket)     drop          window        the route's           selective
//
// InfiniBand: credits by virtual lane (IBTA, volume 1, section 7.9), adaptive routing by the queues
// of the ports (NVIDIA Quantum), NICs that place packets in any order. RoCE: Zhu et al., 2015.
// EFA: SRD sprays over many ways and bears any order (Shalev et al., IEEE Micro 40(6), 2020); its
// control is not published: a window stands for it. A cluster says neither which kind of NIC it has
// nor how large its buffers are: with NCCL's own driver, routing tells InfiniBand from RoCE, and
// buffers are the defaults here, of the size that switches of 51.2 Tb/s have for a port (64 MB to
// 165 MB for 64 to 128 ports, makers' data sheets).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/packets/packet_options.h"
#include "topology/cluster/cluster.h"
#include "topology/fabrics/routing.h"

namespace rehearse {

struct PacketSettings {
  PacketOptions options;
  // Of each cable between machines, a switch's own time included. Cables' latencies in a cluster
  // are NCCL's hops, software included; what they exceed this by is spent before a message leaves.
  Seconds cable_delay;
  bool remembers = true;                // sim/packets/remembered_network.h
  std::vector<std::string> lanes = {};  // NetworkOptions::lanes
};

// The key "network"; what is not given is the network's own.
struct NetworkOptions {
  std::optional<LinkControl> link_control;
  std::optional<RateControl> rate_control;
  std::optional<Recovery> recovery;
  bool sprays_blindly = false;  // where routes are sprayed: the next cable, whatever its queue
  Bytes mtu = Bytes(4096);
  Bytes header = Bytes(0);
  std::optional<Bytes> buffer;
  Bytes shared_buffer = Bytes(0);
  double dynamic_threshold = 0.125;
  Bytes pause_above = Bytes(200e3);
  Bytes resume_below = Bytes(180e3);
  Bytes headroom = Bytes(200e3);
  Bytes window = Bytes(512e3);
  std::optional<Seconds> target_delay;  // swift, nscc
  double utilisation = HpccFigures().utilisation;
  std::optional<Seconds> rtt_low;  // timely
  std::optional<Seconds> rtt_high;
  Seconds cable_delay = Seconds(0.5e-6);
  Seconds flowlet_gap = Seconds(10e-6);
  bool cut_through = false;
  bool remembers = true;
  // Communicators whose messages have a lane of their own: a priority with pauses of its own in
  // Ethernet, a virtual lane with credits of its own in InfiniBand. All others share one.
  std::vector<std::string> lanes = {};
  bool lanes_are_strict = false;  // the first goes ahead of the second, and all of the rest

  friend bool operator==(const NetworkOptions&, const NetworkOptions&) = default;
};

inline constexpr size_t kMostLanes = 8;  // priorities of IEEE 802.1Q, and data lanes of a switch

// Throws Error for what the network cannot be.
PacketSettings SettingsOf(const Cluster& cluster, const std::optional<RoutingRule>& rule,
                          uint64_t seed, const NetworkOptions& own);

// The routing whose ways packets take: flowlets choose among all as they go.
FabricRouting RoutingOfPackets(const FabricRouting& routing, const Cluster& cluster);

}  // namespace rehearse
