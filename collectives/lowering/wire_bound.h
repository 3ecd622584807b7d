// The least time that any algorithm could take for a collective: what the wires alone say.
//
// However a collective is done, certain bytes have to leave a set S of s of its p members for the
// others, and no more than the tightest cut between the two carries passes in a second. Of n bytes
// as nccl-tests counts them, each of these at least once:
//   all-gather      s/p·n out, (p-s)/p·n in      reduce-scatter  (p-s)/p·n out, s/p·n in
//   all-reduce      n out and n in               all-to-all      s(p-s)/p·n out and in
//   broadcast       n, away from the root        reduce          n, towards it
//   send-receive    n out and n in, for S one member
// The tightest cut is Boost's maximum flow from all of S to all others
// (topology/cluster/max_flow.h), through other devices too. S is each device, each machine, half of
// them in the order of their numbers (within a machine, half of its members), in a torus, a mesh or
// a HyperX half of them along each dimension, and of each level of the fabric the machines of the
// block (leaf, pod, group) whose cables to the rest are tightest. Where machines have the same
// links, and so have the switches that they are cabled to, one of each kind is looked at.
// Where switches neither add nor copy, an all-reduce needs more: if its members are k parts, k - 1
// messages have to cross from one part to another before a sum is complete, and k - 1 until every
// part has it (gossip by one-way messages: Harary and Schwenk, 1974), so that at least 2(k-1)n
// leave all parts together. Switches that add (NVLS, SHARP) are bound by the cuts alone.
// Latencies, launches and protocols are left out, so small messages are far above it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

struct WireBound {
  Seconds time;
  // What binds: "node0/gpu3", "node0", "half of the nodes, along dimension 0"; "all devices" where
  // what leaves (or enters) all of them together does.
  std::string cut;
  bool leaves = true;      // it; else it enters
  BytesPerSecond carries;  // the cut
  Bytes bytes;             // that have to cross it
};

// Whether switches form sums (and copies), or only devices do.
enum class Switches : uint8_t { kPass, kAdd };
// Of an algorithm by its name: NVLS and SHARP have them add.
Switches SwitchesOf(AlgorithmId algorithm);

class WireBounds {
 public:
  // Of a group of ranks, at least two. Finds the cuts, which all kinds share.
  WireBounds(const Cluster& cluster, const std::vector<uint32_t>& ranks);

  // `root` is a member, by its position in the group, as in sim/schedule/schedule.h. Zero, with an
  // empty cut, for kinds without bytes.
  WireBound Of(CollectiveKind kind, Bytes bytes, uint32_t root,
               Switches switches = Switches::kPass) const;

 private:
  struct Cut {
    std::string name;
    std::vector<uint32_t> members;  // of S, ascending
    BytesPerSecond out;
    BytesPerSecond in;
  };

  // What the members are divided into, each by itself.
  struct Parts {
    std::string name;
    uint32_t count = 0;
    BytesPerSecond out;  // of all together
    BytesPerSecond in;

    void Add(const Cut& cut);
  };
  using Machines = std::map<uint32_t, std::vector<uint32_t>>;  // with their members

  void AddCut(const Cluster& cluster, std::string name, std::vector<uint32_t> members);
  void AddNewCut(const Cluster& cluster, std::string name, std::vector<uint32_t> members);
  void AddHalvesAlong(const Cluster& cluster, const std::string& name);
  template <typename Passed>
  void AddBlocks(const Cluster& cluster,
                 const std::map<std::pair<size_t, uint32_t>, std::set<uint32_t>>& blocks,
                 const Machines& machines, const Passed& passed);

  std::vector<uint32_t> group_;  // in member order
  std::vector<uint32_t> ranks_;  // the same, ascending
  std::vector<Cut> cuts_;
  std::vector<Parts> parts_;
};

}  // namespace rehearse
