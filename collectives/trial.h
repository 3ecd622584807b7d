// One collective by itself on a cluster, as nccl-tests would run it: how long, and which bandwidth.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/transfers.h"
#include "sim/schedule.h"
#include "topology/router.h"

namespace rehearse {

struct Trial {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<std::vector<uint32_t>> groups;  // disjoint, equally large; they run at the same time
  Fidelity fidelity = Fidelity::kFluid;
  uint32_t channels = 0;  // > 0 caps them
};

// Deals ranks round-robin into `count` groups: the i-th rank into group i mod count. Throws Error unless
// the ranks are distinct, exist and can be dealt evenly.
std::vector<std::vector<uint32_t>> DealRanks(const std::vector<uint32_t>& ranks, uint32_t count,
                                             uint32_t devices);

// The schedule in which every rank of the groups posts one collective of `bytes`; other ranks are idle.
Schedule TrialSchedule(const Trial& trial, Bytes bytes, uint32_t devices);

// From the common begin until the last rank of the last group is done. Zero for groups of one.
Seconds TimeOf(const Trial& trial, Bytes bytes, Router& router);

}  // namespace rehearse
