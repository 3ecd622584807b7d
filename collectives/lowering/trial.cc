#include "collectives/lowering/trial.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "collectives/lowering/lower.h"
#include "sim/base/error.h"
#include "sim/engine/simulate.h"

namespace rehearse {

namespace {

constexpr Seconds kTick(1 / kPicosecondsPerSecond);

// One run of several sizes must fit the clock.
constexpr Bytes kMostBytesTogether(1e15);

Collective CollectiveOf(const Trial& trial, Bytes bytes) {
  Collective collective;
  collective.kind = trial.kind;
  collective.communicator = CommunicatorId(0);
  collective.bytes = bytes;
  collective.algorithm = trial.algorithm;
  collective.protocol = trial.protocol;
  collective.root = trial.root;
  collective.rank_share = trial.rank_share;
  collective.machine_share = trial.machine_share;
  return collective;
}

bool TakesFlowlets(const Router& router) {
  return router.rule() && router.rule()->choice == RouteChoice::kFlowlet;
}

Timeline PlayedTimeline(const Trial& trial, const std::vector<Bytes>& sizes, Router& router,
                        PacketReport* packets = nullptr, ProgressObserver& observer = NoObserver(),
                        NetworkPicture* network = nullptr) {
  const Cluster& cluster = router.cluster();
  const Schedule schedule = TrialSchedule(trial, sizes, cluster.device_count());
  LowerOptions options{.fidelity = trial.fidelity, .channels = trial.channels, .nccl = trial.nccl};
  if (trial.fidelity == Fidelity::kPacket) options.packets = SettingsOfTrial(trial, router);
  std::optional<Router> all_ways;
  if (options.packets && TakesFlowlets(router))
    all_ways.emplace(cluster, RoutingOfPackets(trial.routing, cluster));
  const Lowered lowered = Lower(schedule, all_ways ? *all_ways : router, options, observer);
  Simulation played = Simulate(lowered.program, schedule.ranks(),
                               {.packets = lowered.packets ? &*lowered.packets : nullptr,
                                .watch_packets = network != nullptr,
                                .observer = &observer});
  if (network != nullptr)
    *network = DrawNetwork(*played.packets->history, schedule, lowered.program,
                           OpsOfTasks(lowered.program));
  if (packets != nullptr && played.packets) packets->Add(*played.packets);
  return std::move(played.timeline);
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

Schedule TrialSchedule(const Trial& trial, const std::vector<Bytes>& sizes, uint32_t devices) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Explicit("group", trial.groups));
  Role idle;
  idle.name = "idle";
  Role busy;
  busy.name = "rank";
  busy.streams = {{"group", StreamKind::kCommunication}};
  for (const Bytes bytes : sizes) {
    Op op;
    op.name = Name(trial.kind);
    op.stream = StreamId(0);
    op.work = CollectiveOf(trial, bytes);
    busy.ops.push_back(op);
  }
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

NetworkPicture NetworkOf(const Trial& trial, Bytes bytes, Router& router) {
  CHECK(trial.fidelity == Fidelity::kPacket);
  NetworkPicture network;
  PlayedTimeline(trial, {bytes}, router, nullptr, NoObserver(), &network);
  return network;
}

Seconds TimeOf(const Trial& trial, Bytes bytes, Router& router) {
  return ToSeconds(PlayedTimeline(trial, {bytes}, router).step);
}

std::vector<Seconds> TimesOf(const Trial& trial, const std::vector<Bytes>& sizes, Router& router,
                             PacketReport* packets, ProgressObserver& observer) {
  std::vector<Seconds> times;
  while (times.size() < sizes.size()) {
    std::vector<Bytes> together = {sizes[times.size()]};
    Bytes total = together.front();
    // Several groups must begin each size together.
    while (trial.groups.size() == 1 && times.size() + together.size() < sizes.size()) {
      const Bytes next = sizes[times.size() + together.size()];
      total += next;
      if (total > kMostBytesTogether) break;
      together.push_back(next);
    }
    std::vector<Time> begins(together.size());
    std::vector<Time> ends(together.size());
    for (const Span& span : PlayedTimeline(trial, together, router, packets, observer).spans) {
      begins[span.op] = span.begin;  // of all ranks
      ends[span.op] = std::max(ends[span.op], span.end);
    }
    for (size_t i = 0; i < together.size(); ++i)
      times.push_back(std::max(ToSeconds(ends[i] - begins[i]), kTick));
  }
  return times;
}

std::vector<SeededTime> TimesOverSeeds(const Trial& trial, const std::vector<Bytes>& sizes,
                                       const Cluster& cluster, PacketReport* packets,
                                       ProgressObserver& observer) {
  Router router(cluster, trial.routing);
  const bool seeds_decide = DependsOnSeed(trial, router) && !trial.routing.seed;
  if (seeds_decide)
    observer.Begin("playing it with each seed of the routes", "seeds", kRoutingSeeds);
  // Of several seeds, each is only a part.
  std::vector<std::vector<Seconds>> times = {
      TimesOf(trial, sizes, router, packets, seeds_decide ? NoObserver() : observer)};
  for (uint64_t seed = 1; seeds_decide && seed < kRoutingSeeds; ++seed) {
    Trial seeded = trial;
    seeded.routing.seed = seed;
    Router seeded_router(cluster, seeded.routing);
    observer.Done(static_cast<double>(seed));
    times.push_back(TimesOf(seeded, sizes, seeded_router, packets));
  }
  std::vector<SeededTime> result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<Seconds> own;
    own.reserve(times.size());
    for (const std::vector<Seconds>& of_seed : times) own.push_back(of_seed[i]);
    std::sort(own.begin(), own.end());
    result.push_back({own[(own.size() - 1) / 2], own.front(), own.back()});
  }
  return result;
}

PacketSettings SettingsOfTrial(const Trial& trial, const Router& router) {
  return SettingsOf(router.cluster(), router.rule(), trial.routing.seed.value_or(0), trial.network);
}

bool DependsOnSeed(const Trial& trial, const Router& router) {
  return router.IsHashed() || (trial.fidelity == Fidelity::kPacket && TakesFlowlets(router));
}

}  // namespace rehearse
