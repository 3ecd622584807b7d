// How fast the links of an imported machine are, and how long they take.
//
// Bandwidths are what the wire carries; efficiencies are NCCL's, which plans with less than that
// (source of all of NCCL's figures here: NVIDIA/nccl 069a3d4f, src/graph/topo.h and topo.cc; of
// xGMI's: ROCm/rccl, src/graph/topo.h). If only NCCL's figure is known, it is the bandwidth, with
// efficiency 1. Latencies are shared out as in the presets: NCCL's hop
// (topology/presets/preset_rows.h) between two GPUs on one switch, or over two NICs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/cluster/cluster.h"
#include "topology/presets/hop_latency.h"

namespace rehearse {

// `count` links of a GPU of this compute capability (70, 80, 90 ...).
ClusterLink NvLinksOf(uint32_t sm, uint32_t count, Seconds latency);

// How many links together carry the MB/s that hwloc gives: it counts 20, 25 and 50 GB/s per link
// for NVLink 1, 2 to 4 and 5 (hwloc, topology-nvml.c).
uint32_t NvLinksThatCarry(uint32_t sm, double megabytes);

// `count` xGMI links of an AMD GPU ("906", "90a", "942").
ClusterLink XgmiLinksOf(std::string_view gcn, uint32_t count, Seconds latency);

// The same at AMD's rate per link; at least 1.
uint32_t XgmiLinksThatCarry(std::string_view gcn, double megabytes);

struct PcieSlot {
  double gigatransfers = 8;  // 2.5, 5, 8, 16, 32, 64: those of NCCL's table
  uint32_t lanes = 16;
};
ClusterLink PcieLinkOf(PcieSlot slot, Seconds latency);
// "16.0 GT/s PCIe" is 16. Nothing when NCCL does not know it; it then takes 8.
std::optional<double> ParseGigatransfers(std::string_view link_speed);
inline constexpr PcieSlot kUnknownSlot = {8, 16};  // NCCL's assumption

// The slot that carries this many GB/s after coding, as hwloc gives it: 15.753846 is 8 GT/s on 16
// lanes. Of several, the one with the most lanes up to 16, all of which carry the same; if none
// does, the nearest.
PcieSlot SlotThatCarries(double gigabytes);

// The port that such a slot is made for, in Mbit/s: the fastest of 10, 25, 40, 50, 100, 200, 400
// and 800 Gbit/s that it carries.
double PortOfSlot(PcieSlot slot);
ClusterLink NetworkPortOf(double megabits, Seconds more_latency);

// What NCCL expects between two NUMA nodes. Nothing if it does not know the processor.
struct ProcessorKind {
  std::string arch;    // "x86_64"
  std::string vendor;  // "GenuineIntel"
  std::optional<uint32_t> family;
  std::optional<uint32_t> model;
};
std::optional<BytesPerSecond> BetweenSockets(const ProcessorKind& processor);
inline constexpr BytesPerSecond kUnknownBetweenSockets(10e9);  // NCCL's figure for Intel's Skylake
ClusterLink SocketLinkOf(BytesPerSecond bandwidth);

inline constexpr Seconds kGpuUplink(2.85e-6);        // half of a PCIe hop
inline constexpr Seconds kPcieSwitchUplink(0.5e-6);  // assumed, as kRootPort
inline constexpr Seconds kSocketHop(0.5e-6);         // likewise
inline constexpr Seconds kNicUplink(
    0.65e-6);  // together with the two beside it, half of a network hop
inline constexpr Seconds kNetworkPort(3.5e-6);

}  // namespace rehearse
