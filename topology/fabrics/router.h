// Deterministic routes between devices.
//
// A route passes through no other device, unless nothing else leads there and NVLinks lead through
// one. Inside a machine, and in a cluster drawn vertex by vertex, it is of the nearest class, then
// the widest, then of the smallest latency (topology/fabrics/path_search.h): NVLink beats PCIe,
// whatever their latencies, and a GPU uses its nearest NIC.
// Where several NICs are equally near to several devices, each device owns one of them in turn (two
// GPUs and two NICs on one PCIe switch: a NIC each), as NCCL deals them; with more NICs than
// devices, or a NIC with several ports, a device has several ways out, and what it sends to another
// machine is cut into as many equal parts (topology/fabrics/nic_owners.h).
// Between machines of a cluster that knows its structure, the route is the way to the sender's own
// NIC, the fabric's way (topology/fabrics/fabric_*.h) by its own rule or the one that is asked for
// (topology/fabrics/routing.h), and the way from the receiver's own NIC. Sprayed, it crosses trunks
// (topology/cluster/trunks.h) instead of single cables. ECMP hashes the two ranks and a seed, so
// the two directions of a pair may differ, and each queue pair has a way of its own.
// What-if edits (topology/files/edits.h) change figures, and not routes, until links are taken
// away. Then each machine is routed by what it has left (topology/fabrics/machine_ways.h): a device
// without its NIC borrows another's. If links of a way are gone, other choices of ECMP are tried,
// then other ways round in the fabric, then the other NICs of both ends; only then does the search
// decide, over single cables, which the router counts. If links are going to fail
// (collectives/lowering/perturbation.h), a route that crosses one of them also has a detour: the
// way that would be taken if all links that ever fail were gone.
// Between rails that do not meet (topology/fabrics/fabric_clos.h) the way begins over NVLink with
// the device of the sender's machine that is on the receiver's rail, as NCCL's PXN does by default:
// the one exception to the first sentence; without NVLink, or where the routing has no PXN, it
// leads through the host to that rail's NIC.
// Links of kind "memory" are part of a path like any other. Routes are found by arithmetic, or by a
// bidirectional search that touches only the neighbourhood of both ends, and remembered: there is
// no all-pairs table. A Router is not thread-safe (it remembers); its Cluster must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/cluster/cluster.h"
#include "topology/fabrics/fabric.h"
#include "topology/fabrics/flow_hash.h"
#include "topology/fabrics/machine_ways.h"
#include "topology/fabrics/path_search.h"

namespace rehearse {

struct Route {
  std::vector<uint32_t> links;  // indices of Cluster links and trunks, source first
  Seconds latency;              // sum over the links
  BytesPerSecond bandwidth;     // what a single transfer reaches
  bool crosses_nodes = false;
  std::vector<uint32_t> detour;  // empty if nothing on the way fails or nothing leads round it
  // The ways of the queue pairs after the first. What is sent is cut into as many equal parts as
  // the router has ways; each takes one of these, or, if there is only one way, all take `links`.
  std::vector<std::vector<uint32_t>> others;
};

// visit(link, parts) for each link of the route: with the number of the `ways` parts that cross it.
// Links that several ways share are visited for each.
template <typename Visit>
void ForEachCrossing(const Route& route, uint32_t ways, const Visit& visit) {
  const uint32_t each = route.others.empty() ? ways : 1;
  for (const uint32_t link : route.links) visit(link, each);
  for (const std::vector<uint32_t>& other : route.others)
    for (const uint32_t link : other) visit(link, each);
}

// Whether it crosses nothing else.
bool IsOverNvLinks(const Cluster& cluster, const Route& route);

class Router {
 public:
  // `failing` by link; empty: none. Throws Error for a routing that the cluster's fabric does not
  // support. A cluster drawn vertex by vertex has no choice, and neither has a single machine.
  explicit Router(const Cluster& cluster, const FabricRouting& routing = {},
                  std::vector<bool> failing = {});
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // From one rank's device to another's. CHECKs that they differ. The reference stays valid as long
  // as the Router. With flowlet, what is sent in one phase (any number) runs at the same time and
  // shares the ways; other phases have other routes. Otherwise the phase does not matter.
  const Route& Between(uint32_t from_rank, uint32_t to_rank, uint64_t phase = 0);

  // The same, but on the receiver's rail: if machines are cabled rail by rail and the sender
  // reaches the device at the receiver's place in its own machine over NVLink alone, the route goes
  // by way of that device, whose NIC is on the receiver's leaf. NCCL calls this PXN, and its rings,
  // which keep to one NIC (NCCL_CROSS_NIC 0 or 2), need it. Otherwise, without PXN or where rings
  // may change NICs (FabricRouting::cross_nic), as Between().
  const Route& AlongRail(uint32_t from_rank, uint32_t to_rank, uint64_t phase = 0);

  // Appends the links of Between() without remembering them, for code that looks at very many pairs
  // once. Returns false, and appends nothing, if Between() has more to say: it searches, cuts what
  // is sent into parts, balances, or knows of links that will fail.
  bool AppendWay(uint32_t from_rank, uint32_t to_rank, std::vector<uint32_t>* links);

  // Forgets the routes that it remembers if they are many and finding one again finds the same:
  // references to them are void then. For code that looks at the pairs of many groups once.
  void ForgetMany();

  // Whether a link of the way is going to fail.
  bool MeetsFailure(const Route& route) const;

  // Whether all machines have the same links and figures, and none is going to fail: then a way
  // within one is a way within all, link by link.
  bool MachinesAreAlike() const;

  // All pairs of these ranks, both ways, at once: visit(link, how many of their parts cross it),
  // possibly several times per link. Returns the latency of the longest way. Looks only at members
  // and at pairs of switches, and in fat trees by ECMP at the hash of each pair. Returns nothing,
  // and visits nothing, if ways depend on more than that: if they are balanced, cut or of a
  // dragonfly's detours, may fail, or machines are not as they were drawn.
  std::optional<Seconds> VisitAllPairs(const std::vector<uint32_t>& ranks,
                                       const std::function<void(uint32_t, uint32_t)>& visit);

  const Cluster& cluster() const { return cluster_; }

  // Equal parts that a transfer between machines is cut into: the ports of a device's NICs, if
  // there are several, times the queue pairs of ECMP; else 1.
  uint32_t ways() const { return parts_; }
  // Nothing if there is no fabric with arithmetic.
  const std::optional<RoutingRule>& rule() const { return rule_; }
  // Whether ways depend on the seed.
  bool IsHashed() const;
  // How many links all searches so far have looked at: the work done, for tests and benchmarks.
  size_t links_scanned() const;
  // How many of the ways that were asked for so far, within machines and between them, are neither
  // the fabric's nor of its kind: cut everywhere else, they were searched over single cables.
  size_t ways_searched() const { return ways_searched_; }
  // Whether some machine lacks links of its own, so that its devices may share what is left.
  bool HasMachinesApart() const { return !variant_of_.empty(); }
  // What routes fall back to where links are down, for people: "without 2 of the fabric's 96
  // links", "node0 and 1 more lack links: gpu1 by nic0". Nothing if none are.
  std::vector<std::string> Fallbacks();

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  using Way = MachineWays::Way;
  using Exit = MachineWays::Exit;

  struct Ends {
    const Exit* exit = nullptr;
    const Exit* entry = nullptr;
  };
  // A way between two machines that is being put together.
  struct Crossing {
    uint32_t from = 0;  // machines
    uint32_t to = 0;
    uint64_t flow = 0;
    uint32_t phase = 0;
    bool round_failures = false;
  };

  // Visits what the pairs in different machines cross, as VisitAllPairs() does.
  using VisitLink = std::function<void(uint32_t, uint32_t)>;
  using PlacesByMachine = std::map<uint32_t, std::vector<uint32_t>>;
  Seconds VisitSprayedPairs(const PlacesByMachine& places, const VisitLink& visit);
  Seconds VisitHashedPairs(const PlacesByMachine& places, const VisitLink& visit);

  // The hash of a pair's queue pair.
  uint64_t FlowOf(uint32_t from_rank, uint32_t to_rank, uint32_t queue_pair) const {
    const uint64_t flow = FlowHash(routing_.seed.value_or(0), from_rank, to_rank);
    return queue_pair == 0 ? flow : Mix(flow ^ (uint64_t{queue_pair} << 32));
  }
  // Its position in loads_; 0 where it does not matter, as below.
  uint32_t NumberOf(uint64_t phase);
  // Round all links that ever fail, or not.
  std::vector<uint32_t> Find(uint32_t from_rank, uint32_t to_rank, bool round_failures,
                             uint32_t phase, uint32_t queue_pair = 0);
  // On rails that do not meet, over NVLink by way of the device whose NIC is on the receiver's.
  bool AppendByRail(const Crossing& crossing, uint32_t from_place, uint32_t to_place, uint32_t part,
                    std::vector<uint32_t>* links);
  // False if all ways that the structure knows are cut.
  bool AppendByStructure(uint32_t from_rank, uint32_t to_rank, bool round_failures, uint32_t phase,
                         uint32_t queue_pair, std::vector<uint32_t>* links);
  // Out of one machine, over the fabric, into the other; false, and nothing, if it is cut.
  bool AppendCrossing(const Crossing& crossing, const Way& first, const Exit& exit,
                      const Exit& entry, std::vector<uint32_t>* links);
  // By other NICs than the ends' own.
  bool AppendByOthers(const Crossing& crossing, uint32_t from_place, uint32_t to_place,
                      std::vector<uint32_t>* links);
  // The way over the fabric between two switches, by its structure; links as they are now.
  void AppendFabric(uint32_t from_switch, uint32_t to_switch, uint64_t flow, uint32_t phase,
                    std::vector<uint32_t>* links);
  // With flowlet: takes the load off links of ways that were tried and not taken.
  void TakeBackLoad(uint32_t phase);
  bool IsCut(uint32_t link, bool round_failures) const;
  bool IsAmong(const std::vector<bool>& links, uint32_t link) const;  // for a trunk, all its cables
  BytesPerSecond AloneOn(const Route& route) const;
  // The device that AlongRail() goes through; nothing if it is the same as Between().
  std::optional<uint32_t> RailProxy(uint32_t from_rank, uint32_t to_rank);
  MachineWays& WaysOf(uint32_t machine, bool round_failures = false);
  // By machine, which of the variants_ it is; adds those that are new. Empty: all are whole.
  std::vector<uint32_t> VariantsWithout(bool round_failures);
  uint32_t MostExits();
  // Where a part leaves and arrives, on one tree of the fabric; nothing if the two places have no
  // tree in common.
  std::optional<Ends> EndsOf(MachineWays& here, uint32_t from_place, MachineWays& there,
                             uint32_t to_place, uint32_t part);
  PathSearch& Everywhere();

  const Cluster& cluster_;
  const FabricRouting routing_;
  std::optional<RoutingRule> rule_;
  uint32_t parts_ = 1;
  // For flowlet: the phases in the order in which they were met; for each, pairs by link as drawn.
  std::map<uint64_t, uint32_t> phases_;
  std::vector<std::vector<uint32_t>> loads_;
  std::vector<uint32_t> tried_;  // links as drawn whose load a way that is being tried has added to
  const std::vector<bool> failing_;
  std::unique_ptr<PathSearch> search_;  // in the whole cluster; null until it is needed
  size_t ways_searched_ = 0;
  std::deque<Route> routes_;
  // Where the pair's route is, or belongs.
  uint32_t& SlotOf(uint32_t from_rank, uint32_t to_rank, uint32_t phase);

  struct PairSlot {
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t phase = 0;
    uint32_t route = kNone;  // position in routes_
  };
  std::vector<PairSlot> pairs_;  // a hash table, at most half full

  // In a cluster that knows its structure: the ways of machines that lack the same links, first of
  // those that lack none.
  std::vector<std::unique_ptr<MachineWays>> variants_;
  std::map<std::vector<bool>, uint32_t> variant_without_;  // by what is gone
  std::vector<uint32_t> variant_of_;                       // by machine; empty: all are whole
  std::vector<uint32_t> variant_round_failures_;           // likewise, if links are going to fail
};

}  // namespace rehearse
