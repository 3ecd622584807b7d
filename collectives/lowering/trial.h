// One collective alone on a cluster, as nccl-tests would run it: how long it takes, and at which
// bandwidth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/lowering/packet_settings.h"
#include "collectives/lowering/transfers.h"
#include "collectives/lowering/tuning.h"
#include "sim/base/progress.h"
#include "sim/packets/packet_play.h"
#include "sim/report/network_picture.h"
#include "sim/schedule/schedule.h"
#include "topology/fabrics/router.h"

namespace rehearse {

struct Trial {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<std::vector<uint32_t>> groups;  // disjoint, equally large; they run at the same time
  Fidelity fidelity = Fidelity::kFluid;
  uint32_t channels = 0;   // > 0 caps them
  NcclSettings nccl = {};  // which chooses
  // As in sim/schedule/schedule.h, "auto" among them.
  AlgorithmId algorithm = AlgorithmId::kRing;
  Protocol protocol = Protocol::kNone;
  // As in sim/schedule/schedule.h, for an all-to-all by deepep.
  double rank_share = 1;
  double machine_share = 1;
  uint32_t root = 0;            // broadcast, reduce: a member of each group, by its position
  FabricRouting routing = {};   // of the routers made for it
  NetworkOptions network = {};  // at fidelity packet
};

// Deals ranks round-robin into `count` groups: the i-th rank into group i mod count. Throws Error
// unless the ranks are distinct, exist and can be dealt evenly.
std::vector<std::vector<uint32_t>> DealRanks(const std::vector<uint32_t>& ranks, uint32_t count,
                                             uint32_t devices);

// The schedule in which every rank of the groups posts a collective of each size, one after the
// other; other ranks are idle.
Schedule TrialSchedule(const Trial& trial, const std::vector<Bytes>& sizes, uint32_t devices);

// What the trial's first group takes for this many bytes.
Choice ChoiceOf(const Trial& trial, Bytes bytes, Tuner& tuner);

// From the common start until the last rank of the last group is done. Zero for groups of one.
Seconds TimeOf(const Trial& trial, Bytes bytes, Router& router);

// The same for each of several sizes, but at least a tick of the clock. A single group is lowered
// and played once for all of them. `packets`, unless it is null, is told what travelled.
std::vector<Seconds> TimesOf(const Trial& trial, const std::vector<Bytes>& sizes, Router& router,
                             PacketReport* packets = nullptr,
                             ProgressObserver& observer = NoObserver());

// With a router of the trial's routing. If a seed decides and none is given, the lower median over
// kRoutingSeeds seeds, and their range; else all three are equal. `packets` is of all seeds.
struct SeededTime {
  Seconds median;
  Seconds least;
  Seconds most;
};
std::vector<SeededTime> TimesOverSeeds(const Trial& trial, const std::vector<Bytes>& sizes,
                                       const Cluster& cluster, PacketReport* packets = nullptr,
                                       ProgressObserver& observer = NoObserver());

// What the ports of the network do meanwhile; at fidelity packet, on routers of its routing.
NetworkPicture NetworkOf(const Trial& trial, Bytes bytes, Router& router);

// How its packets travel, on routers of its routing; at fidelity packet.
PacketSettings SettingsOfTrial(const Trial& trial, const Router& router);

// Whether the trial's times depend on a seed: hashed ways, or flowlets.
bool DependsOnSeed(const Trial& trial, const Router& router);

}  // namespace rehearse
