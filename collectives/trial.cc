#include "collectives/trial.h"

#include <algorithm>

#include "collectives/lower.h"
#include "sim/error.h"
#include "sim/simulate.h"

namespace rehearse {

namespace {

Collective CollectiveOf(const Trial& trial, Bytes bytes) {
  Collective collective;
  collective.kind = trial.kind;
  collective.communicator = CommunicatorId(0);
  collective.bytes = bytes;
  collective.algorithm = trial.algorithm;
  collective.protocol = trial.protocol;
  collective.root = trial.root;
  return collective;
}

}  // namespace

std::vector<std::vector<uint32_t>> DealRanks(const std::vector<uint32_t>& ranks, uint32_t count,
                                             uint32_t devices) {
  std::vector<uint32_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) throw Error(fmt::format("rank {} is named twice", *twice));
  if (!sorted.empty() && sorted.back() >= devices) {
    throw Error(fmt::format("there is no rank {}; the cluster has ranks 0 to {}", sorted.back(),
                            devices - 1));
  }
  if (count == 0 || ranks.empty() || ranks.size() % count != 0) {
    throw Error(fmt::format("{} ranks cannot be dealt evenly into {} groups", ranks.size(), count));
  }
  std::vector<std::vector<uint32_t>> groups(count);
  for (size_t i = 0; i < ranks.size(); ++i) groups[i % count].push_back(ranks[i]);
  return groups;
}

Schedule TrialSchedule(const Trial& trial, Bytes bytes, uint32_t devices) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Explicit("group", trial.groups));
  Role idle;
  idle.name = "idle";
  Role busy;
  busy.name = "rank";
  busy.streams = {{"group", StreamKind::kCommunication}};
  Op op;
  op.name = Name(trial.kind);
  op.stream = StreamId(0);
  op.work = CollectiveOf(trial, bytes);
  busy.ops.push_back(op);
  schedule.roles = {busy, idle};
  schedule.role_of_rank.assign(devices, 1);
  for (const auto& group : trial.groups) {
    for (const uint32_t rank : group) schedule.role_of_rank[rank] = 0;
  }
  return schedule;
}

Choice ChoiceOf(const Trial& trial, Bytes bytes, Tuner& tuner) {
  const Collective collective = CollectiveOf(trial, bytes);
  return tuner.Choose({collective, trial.groups.front(), trial.channels});
}

Seconds TimeOf(const Trial& trial, Bytes bytes, Router& router) {
  const Schedule schedule = TrialSchedule(trial, bytes, router.cluster().device_count());
  const Lowered lowered = Lower(
      schedule, router, {.fidelity = trial.fidelity, .channels = trial.channels, .fold = true});
  return ToSeconds(Simulate(lowered.program, schedule.ranks()).timeline.step);
}

}  // namespace rehearse
