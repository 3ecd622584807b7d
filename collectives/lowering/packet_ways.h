// From transfers to connections: which of a program's flows travel as packets, and by which ports.
//
// Those that cross the network between machines do, from device to device; all others (NVLink, PCIe
// and memory within a machine) stay fluid. On the way to its NIC and from the other's, a packet
// crosses the links of the machine as ports with the link's rate and no delay, which hold back what
// a NIC cannot take; those that never could are taken out (sim/packets/packet_chains.h). Cables
// that a fabric sprays over (topology/cluster/trunks.h) are a bundle, of which every switch chooses
// those that leave it. Where a trunk stands for cables of other switches as well (between groups of
// a dragonfly), it is one port with the rate of all.
// The cables' delays are taken off the latency of a step (collectives/lowering/packet_settings.h).
// If it has less latency than they have, its collective keeps several steps under way and has
// counted their latency at its start (collectives/lowering/choice.h): cables then take no time.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/lowering/packet_settings.h"
#include "collectives/lowering/transfers.h"
#include "sim/base/clock.h"
#include "sim/packets/packet_play.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

class PacketWays {
 public:
  static constexpr uint32_t kNone = PacketProgram::kNone;

  // `table` must outlive it; `ranks` are those of the schedule.
  PacketWays(const Cluster& cluster, const TransferTable& table, uint32_t ranks,
             const PacketSettings& settings);

  // The lane of a communicator's messages: 0, or 1 and on for those of PacketSettings::lanes.
  uint32_t LaneOf(const std::string& communicator) const;
  // The set of connections of a transfer on a lane; kNone: it stays in its machine. Throws Error if
  // a switch of the network, and no rank, is at one of its ends.
  uint32_t SetOf(uint32_t transfer, uint32_t lane = 0);
  // What its cables take of its latency: the delay of the longest way, or nothing.
  Time DelayOf(uint32_t set) const { return set == kNone ? Time() : delays_[set]; }
  // The next flow of the program goes by these connections.
  void AddFlow(uint32_t set) { program_.set_of_flow.push_back(set); }

  PacketProgram Take();

 private:
  bool CrossesNetwork(const Transfer& transfer) const;
  // Adds the connections of the way, and returns the delay of its cables.
  Time AddWay(const std::vector<uint32_t>& links, uint32_t lane);
  uint32_t PortOf(uint32_t link, uint32_t lane);
  uint32_t BundleOf(uint32_t trunk, uint32_t lane);
  uint32_t VertexOf(VertexId vertex);

  const Cluster& cluster_;
  const TransferTable& table_;
  const uint32_t ranks_;
  const Time cable_delay_;
  const std::vector<std::string> lanes_;
  PacketProgram program_;
  std::vector<uint32_t> set_of_transfer_;  // and lane
  std::vector<Time> delays_;               // by set
  // By link or trunk, and lane.
  std::unordered_map<uint64_t, uint32_t> ports_;
  std::unordered_map<uint64_t, uint32_t> bundles_;  // by trunk
  std::unordered_map<VertexId, uint32_t> vertices_;
};

}  // namespace rehearse
