// The constants of NCCL's tuning model, in our own form: what a hop, a start and a channel cost, by
// algorithm, protocol, link and generation of GPU.
//
// Source of every figure: NVIDIA/nccl, src/graph/tuning.cc of v2.18.3-1, v2.28.3-1 and v2.29.2-1
// (latencies in us, bandwidths in GB/s there), and for the threads a channel needs
// src/include/comm.h and device.h. Where a function takes a release, they differ. After 2.30 a few
// changed again on Blackwell: 40 for rings with LL128, and 80 for NVLSTree on more than two
// machines. Immutable data; all functions are pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "collectives/nccl/nccl_version.h"
#include "sim/base/quantity.h"
#include "sim/schedule/collective_choice.h"

namespace rehearse {

// What NCCL calls algorithms. A row of collectives/algorithms/algorithm.h says which
// of these it is.
enum class NcclAlgorithm : uint8_t { kTree, kRing, kNvls, kNvlsTree, kPat };
inline constexpr std::array kNcclAlgorithms = {NcclAlgorithm::kTree, NcclAlgorithm::kRing,
                                               NcclAlgorithm::kNvls, NcclAlgorithm::kNvlsTree,
                                               NcclAlgorithm::kPat};

// GPUs between two of these behave as the older one, and those before Volta as Volta.
enum class NcclGeneration : uint8_t { kVolta, kAmpere, kHopper, kBlackwell };
// The argument is the capability times ten (80 is an A100); nothing for 0, which is no NVIDIA GPU.
std::optional<NcclGeneration> GenerationOf(uint32_t compute_capability);

enum class NcclHop : uint8_t { kNvLink, kPcie, kNetwork };

// The number of machines that the group spans, as the tables below distinguish it: 0: one, 1: two,
// 2: more.
constexpr size_t ScaleOf(uint32_t nodes) { return nodes <= 2 ? nodes - 1 : 2; }

// What a collective costs once, whatever its size.
Seconds NcclBase(NcclVersion version, NcclAlgorithm algorithm, Protocol protocol);
// What every hop costs; NVLS has it only once in a collective.
Seconds NcclHopLatency(NcclVersion version, NcclHop hop, NcclAlgorithm algorithm,
                       Protocol protocol);

// Bus bandwidth that all channels of LL reach together. On several machines the row is the host's,
// and hosts whose maker is not known count as Intel's (the Volta row), as in NCCL.
BytesPerSecond NcclMostLL(NcclVersion version, NcclGeneration generation, uint32_t nodes);
// Bus bandwidth of one channel.
BytesPerSecond NcclMostRingLL128(NcclVersion version, NcclGeneration generation, uint32_t nodes);
BytesPerSecond NcclMostTreeLL128(NcclGeneration generation, uint32_t nodes);
BytesPerSecond NcclMostTree(NcclGeneration generation, uint32_t nodes);
BytesPerSecond NcclMostNvlsTree(NcclVersion version, NcclGeneration generation, uint32_t nodes);
// Share of the links that in-switch reduction reaches; 0 where the generation has none.
double NcclNvlsEfficiency(NcclGeneration generation);

// What a tree's bandwidth is multiplied by: medium sizes fall short of the model.
double NcclTreeCorrection(Protocol protocol, Bytes bytes);

// PAT's latency: base + ⌊log2 k⌋·(one hop / kPatHopsAtOnce) + p·kPatEachRank; share of the rings'
// rate that it reaches.
inline constexpr double kPatHopsAtOnce = 3.5;
inline constexpr Seconds kPatEachRank(2.8e-6);
inline constexpr double kPatEfficiency = 0.75;

// The fewest bytes that NCCL gives to a channel before it uses one channel less. Rings with LL
// count them per rank.
Bytes NcclLeastForAChannel(Protocol protocol);

}  // namespace rehearse
