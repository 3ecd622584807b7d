// The links that the known machines are made of, with their figures and sources.
//
// A link's capacity is its nominal bandwidth times one efficiency for its kind, fitted on one
// published row (named here and in topology/MEASURED.md); where nothing is published it is another
// kind's, and marked as assumed.
//
// Latencies (topology/presets/hop_latency.h) are shared out like this:
//   NVLink, xGMI  3.4 us
//   PCIe          5.7 us = 2.85 + 2.85 through a switch or socket; through the host's memory
//                          2.35 + 0.5 + 0.5 + 2.35
//   network      14.0 us = 2 · (2.85 device to switch or socket, 0.65 to the NIC, 3.5 to the
//                          fabric), whatever the number of switches: it was measured on clusters,
//                          so links between switches take 0
#pragma once

#include "topology/presets/hop_latency.h"
#include "topology/presets/node.h"

namespace rehearse {

inline constexpr Seconds kNicToFabric(3.5e-6);
inline constexpr Seconds kDeviceToPcie = kPcieHop / 2;
inline constexpr Seconds kPcieToNic = kNetworkHop / 2 - kDeviceToPcie - kNicToFabric;  // 0.65 us
inline constexpr Seconds kRootPort(0.5e-6);  // PCIe switch to socket; assumed
inline constexpr Seconds kDeviceToPcieStaged = kDeviceToPcie - kRootPort;

// ---- PCIe ---------------------------------------------------------------------------------------

// x16 of generations 3, 4, 5: 8, 16, 32 GT/s per lane, 128 of 130 bits. About 25 of 31.5 GB/s were
// measured between an A100 and its host (ZaidQureshi/bam, issue 54).
inline constexpr BytesPerSecond kPcie3(15.75e9);
inline constexpr BytesPerSecond kPcie4(31.5e9);
inline constexpr BytesPerSecond kPcie5(63e9);
inline constexpr BytesPerSecond kPcie6(126e9);  // 64 GT/s
inline constexpr double kPcieEfficiency = 0.79;

inline ClusterLink Pcie(BytesPerSecond bandwidth, Seconds latency) {
  return MakeLink(LinkKind::kPcie, bandwidth, kPcieEfficiency, latency);
}

// ---- Between sockets ----------------------------------------------------------------------------

// EPYC: we assume three xGMI links of 16 lanes at 16 GT/s, 32 GB/s each. Xeon E5 v4: two QPI links
// of 9.6 GT/s, 19.2 GB/s each (Intel). We assume 0.5 us for both. No path between GPUs that keeps
// to its own NIC uses them.
inline ClusterLink EpycToEpyc() {
  return MakeLink(LinkKind::kSocket, BytesPerSecond(3 * 32e9), 1, Seconds(0.5e-6));
}
inline ClusterLink XeonToXeon() {
  return MakeLink(LinkKind::kSocket, BytesPerSecond(2 * 19.2e9), 1, Seconds(0.5e-6));
}

// Through a socket's memory: every byte is written and read. EPYC 7002/7003: 8 channels of
// DDR4-3200, 204.8 GB/s, half of it. The efficiency is fitted on 8 RTX 4090 without peer-to-peer on
// two EPYC 7542 (NVIDIA/nccl-tests #331: all-reduce bus bandwidth 15.0 GB/s): of the ring's 8 edges
// 4 go through each memory, 4 · 15 of 102.4 GB/s.
inline constexpr BytesPerSecond kEpycCopies(204.8e9 / 2);
inline constexpr double kCopyEfficiency = 4 * 15.0 / 102.4;

// What a socket's memory delivers by its data sheet, for the host's own work: channels of 8 bytes.
constexpr BytesPerSecond Channels(double count, double megatransfers) {
  return BytesPerSecond(count * megatransfers * 1e6 * 8);
}
inline constexpr BytesPerSecond kEpycMemory = Channels(8, 3200);    // EPYC 7002 and 7003, DDR4
inline constexpr BytesPerSecond kEpyc4Memory = Channels(12, 4800);  // EPYC 9004, DDR5
inline constexpr BytesPerSecond kGraceMemory(500e9);                // LPDDR5X

inline ClusterLink HostMemory(BytesPerSecond copies, double efficiency) {
  return MakeLink(LinkKind::kMemory, copies, efficiency, Seconds(0));
}

// ---- Networks -----------------------------------------------------------------------------------

inline ClusterLink Network(double gigabits, double efficiency) {
  return MakeLink(LinkKind::kNetwork, BytesPerSecond(gigabits / 8 * 1e9), efficiency, kNicToFabric);
}
// Cables between switches have no latency of their own (see the head of this file).
inline ClusterLink SwitchCable(double gigabits, double efficiency) {
  return MakeLink(LinkKind::kNetwork, BytesPerSecond(gigabits / 8 * 1e9), efficiency, Seconds(0));
}

// InfiniBand HDR: four DGX A100 reach an all-reduce bus bandwidth of 191.05 GB/s (NVIDIA/deepops
// 3957a42f, 32 GPUs, 4 GiB out of place) of the 200 GB/s that the 8 NICs of a box have. We assume
// the same for EDR and NDR.
inline constexpr double kInfiniBandEfficiency = 0.955;

// Slingshot 11 under NCCL: groups that cross nodes get 80 GiB/s from the four NICs of a Perlmutter
// node (axonn-ai/Megatron-AxoNN 885d2e75, examples/comm_model.py, whose GB are 2^30 bytes): 20
// GiB/s of 25 GB/s.
inline constexpr double kGib = 1024.0 * 1024 * 1024;
inline constexpr double kSlingshotEfficiency = 20 * kGib / 25e9;
// 40 GiB/s from the four NICs of a node in March 2024 (Megatron-AxoNN 885d2e75,
// examples/comm_model.py).
inline constexpr double kFrontierSlingshot2024 = 10 * kGib / 25e9;
// 80.3 GB/s busbw in all-reduces of 4 GiB on 16 nodes, RCCL 2.20.5 of ROCm 6.2.4 with aws-ofi-nccl
// 1.19 (ggracelii/mpich-rccl 790b7e90, frontier/results/sweep).
inline constexpr double kFrontierSlingshotRocm6 = 80.3 / 100;

}  // namespace rehearse
