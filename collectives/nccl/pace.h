// How long NCCL's kernels take over NVLinks, which is not what NCCL expects when it chooses
// (collectives/nccl/nccl_model.h). For n bytes on p ranks of k machines, T = latency + n/bandwidth:
//
//   ring, one machine: s = 2(p−1) steps of all-reduce, p−1 of all-gather and reduce-scatter, of n/p
//   each, which take w at the rate that the protocol leaves (LL 0.37, LL128 0.8, Simple all).
//     x·w is the copy that a rank makes for itself beside the first step (or the last): it is why
//     two GPUs have a lower bus bandwidth than eight.
//       LL      base + s·max(least, step + w) + x·w
//       LL128   base + s·(step + w) + x·w
//       Simple  base + s·max(w + 2·slice, w/2 + step) + x·w + d·min(w, what the chunks of all
//               channels hold): a step travels as two slices, of which one moves while the other's
//               flag does. As long as moving half a step is quicker than the flag, the flag counts;
//               then two slices' overheads. At the end the last chunk drains.
//   NVLS: c bytes of each head on each of its channels are a loop of W bytes, through the switch
//     and back. Loops take W·(1+1/p)/v + 1.03 us·heads, and three are under way at a time:
//       start + 2.85·W·(1+1/p)/v + n/W loops;   gathering: half of the fill and the overhead
//     NCCL takes c = 128 KiB, 64 below 64 loops of it, 32 below 8 loops of 64, 16 below 2 of 32
//     (calcCollChunking, src/enqueue.cc).
//   NVLSTree: start + 2·log2(k)·across + fill·W/bandwidth; inside at 0.82 of NVLS' rate, across as
//     the links allow. Chunks of 128 KiB (64 from four machines on), 64 below 4 loops, 32 below
//     one.
//   ring, several machines: inside as above, with LL from its base on, w at the pace of the slowest
//     hop; a hop across is NCCL's own; in gathering and scattering, a NIC carries no more than its
//     channels of a ring move, two of each that NCCL's search finds.
//   all-to-all, send-receive: a peer has 32/p of the p2p channels, twice as many as long as more
//     than 16 MiB are left to each (addP2pToPlan, src/enqueue.cc); each moves a fixed rate, those
//     of several peers one after the other. What fills the channels, up to 12.5 MiB, is waited for
//     at the start to 0.4. Across, sends reach 0.85 of the links, or 0.96 of NICs of 800 Gb/s; a
//     peer in another machine has two channels, one where 2·p is more than 4 times the p2p channels
//     (ncclTopoGetNchannels, src/graph/paths.cc), of 9.8 GB/s each (Vultr's untuned environment).
//   tree: base + 2(p/k − 1) steps inside, as of rings + 2·log2(k)·across. With Simple, 0.92 of what
//     its steps reach on the links, times NCCL's correction by size: that a channel carries no more
//     than a figure of NCCL's tables only decides its choice. PAT likewise.
//   broadcast, reduce: NCCL's own latency and bandwidth.
// Hops are as long as their routes, whatever NCCL took them for when it chose; one across has the
// latency that the plug-in adds, not what it reports; with messages that it announces first, two
// such latencies more. A message is what a rank sends in a step.
//
// The rates are shares of what the rings reach on the graph, so that weak links and calibrations
// count. The other figures, common ones and by generation of GPU, were read off
// ai-dynamo/aiconfigurator 095f58a51c4c (2, 4, 8 A100, H100, B200; NCCL 2.27.3, 2.29.2), those
// between machines off two boxes each of H100, H200 and B200, those of NVLS' largest chunks and of
// peers off NVL72; collectives/MEASURED.md has what all tables say. Before Ampere, over PCIe and
// through hosts NCCL's own figures count. Pure functions.
#pragma once

#include <algorithm>

#include "collectives/nccl/nccl_model.h"

namespace rehearse {

struct NcclPace {
  Seconds latency;
  BytesPerSecond bandwidth;  // bytes of the collective a second
  // If it is above 0, this share of what the steps reach on the links, and no bandwidth.
  double of_links = 0;

  Seconds Time(Bytes bytes) const { return latency + bytes / bandwidth; }
};

// The pace of what NCCL chose.
NcclPace NcclPaceOf(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                    const NcclCost& chosen);

// How many channels a collective has if nothing caps them.
uint32_t NcclChannels(const NcclGroup& group, NcclAlgorithm algorithm);

// What one of a ring's or a tree's channels moves at most over a link, whatever the link: inside a
// machine what a peer's channel was measured to move, across what NCCL's search leaves to it, which
// makes two of one that would move 25 GB/s (50 from Hopper on), and then runs twice as many.
BytesPerSecond NcclChannelRate(const NcclGroup& group);

// The group with so many channels at most: steps of rings inside a machine take as long as these
// make them. What NCCL expects, and paces that are made from it, do not change; how much of the
// links is left to them is the caller's (collectives/lowering/tuning.cc).
NcclGroup WithChannels(const NcclGroup& group, uint32_t channels);

// How long grouped sends wait at the start, and how fast they go then.
struct SendsPace {
  Seconds latency;
  double of_links = 1;  // the share of the links that they reach
  // What the channels to a rank's peers carry, in bytes of the collective a second; 0 where that is
  // more than its links do.
  BytesPerSecond most;

  // Of links on which the collective moves at this rate, bytes of it a second: what its channels
  // carry is the same however fast the links are, and whichever of them is the slowest.
  double ShareOf(BytesPerSecond bare) const {
    return most.value() > 0 ? std::min(of_links, most / bare) : of_links;
  }
};
SendsPace SendsPaceOf(const NcclGroup& group, CollectiveKind kind, Bytes bytes);

}  // namespace rehearse
