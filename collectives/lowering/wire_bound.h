// The least time that any algorithm could take for a collective: what the wires alone say.
//
// However a collective is done, certain bytes have to leave a set S of s of its p members for the
// others, and no more than the tightest cut between the two carries passes in a second. Of n bytes
// as nccl-tests counts them, each of these at least once:
//   all-gather      s/p·n out, (p-s)/p·n in      reduce-scatter  (p-s)/p·n out, s/p·n in
//   all-reduce      n out and n in               all-to-all      s(p-s)/p·n out and in
//   broadcast       n, away from the root        reduce          n, towards it
//   send-receive    n out and n in, for S one member
// Sums may be formed anywhere: switches that add (NVLS, SHARP) are not below it. The tightest cut
// is Boost's maximum flow from all of S to all others (topology/cluster/max_flow.h), through other
// devices too. S is each device, each machine, and half of them (within a machine, half of its
// members). Where machines have the same links, one of each kind is looked at. Latencies, launches
// and protocols are left out, so small messages are far above it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

struct WireBound {
  Seconds time;
  std::string cut;         // "node0/gpu3", "node0", "half of the nodes": what binds
  bool leaves = true;      // it; else it enters
  BytesPerSecond carries;  // the cut
  Bytes bytes;             // that have to cross it
};

class WireBounds {
 public:
  // Of a group of ranks, at least two. Finds the cuts, which all kinds share.
  WireBounds(const Cluster& cluster, const std::vector<uint32_t>& ranks);

  // `root` is a member. Zero, with an empty cut, for kinds without bytes.
  WireBound Of(CollectiveKind kind, Bytes bytes, uint32_t root) const;

 private:
  struct Cut {
    std::string name;
    std::vector<uint32_t> members;  // of S, ascending
    BytesPerSecond out;
    BytesPerSecond in;
  };

  void AddCut(const Cluster& cluster, std::string name, std::vector<uint32_t> members);

  std::vector<uint32_t> ranks_;
  std::vector<Cut> cuts_;
};

}  // namespace rehearse
