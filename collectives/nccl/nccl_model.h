// NCCL's tuning model: how long NCCL expects a collective to take with an algorithm and a protocol,
// and so which it chooses (NVIDIA/nccl v2.28.3-1, src/graph/tuning.cc). How long it then really
// takes is another matter: collectives/nccl/pace.h. For n bytes on p ranks of k machines:
//
//   time = latency + n / bandwidth
//   ring   latency = base + (s − a)·inside + a·across,  s = 2(p−1) steps of all-reduce, p−1 of
//            all-gather and reduce-scatter, of which a = 2(k−1), k−1 cross machines; base + one hop
//            for broadcast and reduce, whose chain is filled while it is used. On several machines
//            a Simple hop inside takes at least 3 times, others at least once, the network's
//            overhead of 1 us; with one rank in each, a hop across takes the tree's; and from 64
//            bytes per channel and rank on, an all-reduce's Simple latency counts 1.4 times (1.9
//            before Ampere).
//          bandwidth = r·p/s, with r the rate of the rings: LL min(most, r/2),
//            LL128 min(0.92 r, channels·most), Simple r
//   tree   latency = base + 2((p/k − 1)·inside + log2(k)·across): a chain in each machine, a tree
//            of machines
//          bandwidth = t/2·correction(n), with t the rate of the trees:
//            Simple min(0.92 t, channels·most), of that LL min(t/3.8, most),
//            LL128 min(t·7/9 on one machine, t·120/128 on more, channels·most)
//   NVLS   one machine: latency = one hop; bandwidth = v·p/s with v = h·b·(h−1)/h·efficiency for
//          h heads of b (collectives/nccl/nccl_search.h), twice that for all-reduce; all-gather and
//          reduce-scatter, of up to 32 ranks: v·(p−1)/p
//   NVLSTree  more machines, all-reduce: latency = one hop inside + 2·log2(k)·across;
//          bandwidth = min(2v of the machine, r (twice with two machines), c·most)·p/s, c of a
//          machine
//   PAT    one rank in each machine, all-gather and reduce-scatter:
//          latency = base + log2(k)·across/3.5 + p·2.8 us, bandwidth = 0.75 r
// CollNet is chosen only where a plug-in for the switches is installed and NCCL_COLLNET_ENABLE is
// set, which no cluster here states; it can be pinned.
//
// v2.18.3-1 differs: LL takes r/4 (r/3 for all-gather and reduce-scatter on one machine) and on
// Hopper the A100's most; LL128 0.7 r with one rank in each machine, and none after Hopper; 2k
// crossing steps of an all-reduce; NVLS for all-reduce only, h·b·5/6 after 23 us; NVLSTree
// min(h·b, r across, half of it from three machines on)·0.7·k/(2(k−1)) after 23 + 2(k−1)·across;
// no PAT.
// v2.29.2-1 differs on Blackwell, where a channel of a ring's LL128 takes 34.5 GB/s instead of
// 73.4, and NVLSTree has the tree's correction(n) if hosts are x86; a hop across of NVLSTree takes
// 20.9 us instead of 14 on all.
//
// Rates are those that our own graph's rings have on the idle machine, except among NVSwitches,
// where they are those of NCCL's search. Hops are NCCL's constants; across machines, also the
// latency that a plug-in reports (topology/cluster/network_plugin.h), twice with Simple, which
// flushes. NCCL knows nothing else of how long a route is, so its choice does not depend on it;
// the time does: a hop takes longer by what its route takes beyond a standard hop
// (topology/presets/hop_latency.h), or less in proportion if it is shorter. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/nccl/nccl_constants.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// What the model must know about a group.
struct NcclGroup {
  NcclVersion version = kStandardNccl;
  NcclGeneration generation = NcclGeneration::kAmpere;
  uint32_t ranks = 2;
  uint32_t nodes = 1;
  NcclHop inside = NcclHop::kNvLink;  // the slowest kind of hop within a machine
  Seconds inside_route;   // latency of the slowest route within a machine, as the graph has it
  Seconds across_route;   // and between machines
  Seconds step_overhead;  // every hop
  BytesPerSecond rings;   // bus bandwidth of all rings together, as NCCL sees it
  // The rate of the links that a tree crosses; on two machines it counts twice, as one is the root.
  BytesPerSecond trees;
  // What all rings reach on the graph, and those inside one machine (0 for a single member).
  BytesPerSecond reached;
  BytesPerSecond inside_reached;
  BytesPerSecond nic;           // nominal, of one that the rings pass
  BytesPerSecond nic_capacity;  // what it reaches
  uint32_t nics = 0;            // per machine, that the rings pass
  uint32_t nic_channels = 1;    // of NCCL's search, of each of these
  bool has_nvlinks = false;     // some machine has several members, joined by NVLinks
  uint32_t heads = 0;           // of NVLS in each machine
  BytesPerSecond head;          // bandwidth of each
  // If there are several machines: what the network's plug-in adds to a hop, as it reports it, and
  // as it is (collectives/nccl/pace.h), and up to how many bytes it sends without asking (0: all).
  Seconds plugin_told;
  Seconds plugin_latency;
  Bytes plugin_eager;
  bool has_ll = true;
  uint32_t graph_channels = 1;  // rings of NCCL's search, each of which becomes two channels
  uint32_t most_channels = 0;   // of these, if fewer run; 0: all
  bool has_ll128 = false;       // NVLink inside, and NICs beside the GPUs
  bool has_nvls = false;        // every machine has a switch that reduces
  bool has_x86_hosts = true;    // no Grace, whose NVLinks reach the GPUs
};

struct NcclCost {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  Seconds latency;
  BytesPerSecond bandwidth;  // bytes of the collective per second

  Seconds Time(Bytes bytes) const { return latency + bytes / bandwidth; }
};

// On the group's routes. Returns nothing if NCCL has no such combination.
std::optional<NcclCost> CostOf(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                               NcclAlgorithm algorithm, Protocol protocol);

// All combinations that NCCL has, in the order of its tables: algorithms, each LL, LL128, Simple;
// as NCCL weighs them, on standard hops.
std::vector<NcclCost> AllCosts(const NcclGroup& group, CollectiveKind kind, Bytes bytes);

// How many channels NCCL would use for this many bytes.
uint32_t ChannelsFor(const NcclGroup& group, const NcclCost& cost, Bytes bytes);

// How many channels all-to-all and send-receive run on: all there are, rounded to a power of two,
// whatever the bytes (ncclTopoComputeP2pChannels; the few that one peer gets are spread over all of
// them).
bool IsGroupedSends(CollectiveKind kind);
uint32_t PeerChannels(const NcclGroup& group);

AlgorithmId IdOf(NcclAlgorithm algorithm);

}  // namespace rehearse
