#include "real/learning.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "real/control.h"
#include "sim/error.h"

namespace rehearse {
namespace {

constexpr uint32_t kBatch = 10;
constexpr double kStatesApart = 1.5;
constexpr size_t kLeastOfState = 10;  // one in so many

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Batches {
  Probe probe;  // steps of all batches
  ProbeTally tally;
};

Batches RunBatches(const NamedSchedule& named, Transport& transport,
                   const LearningOptions& options) {
  Batches batches;
  batches.tally.name = named.name;
  const auto start = std::chrono::steady_clock::now();
  ExecutionOptions execution;
  execution.repeats = std::min(kBatch, options.kept);
  while (true) {
    Probe probe = RunProbe(named.schedule, transport, execution);
    for (const ProbedStep& step : probe.steps) {
      if (!step.IsKept()) ++batches.tally.disturbed;
    }
    if (batches.probe.steps.empty()) {
      batches.probe = std::move(probe);
    } else {
      std::move(probe.steps.begin(), probe.steps.end(), std::back_inserter(batches.probe.steps));
    }
    const bool goes_on = batches.probe.Kept().size() < options.kept &&
                         SecondsSince(start) < options.patience.value();
    if (BroadcastBytes(transport, goes_on ? "on" : "") != "on") return batches;
  }
}

using CollectiveKey = std::tuple<CollectiveKind, uint32_t, Bytes>;

class Collector {
 public:
  void Add(const Schedule& schedule, const Timeline& timeline) {
    std::map<std::pair<uint32_t, uint32_t>, Span> meetings;  // (first rank of the group, op)
    for (const Span& span : timeline.spans) {
      const Op& op = schedule.roles[schedule.role_of_rank[span.rank]].ops[span.op];
      if (const auto* compute = std::get_if<Compute>(&op.work)) {
        AddKernel(*compute, ToSeconds(span.end - span.begin));
      } else if (const auto* collective = std::get_if<Collective>(&op.work)) {
        const Communicator& communicator = schedule.communicators[collective->communicator.index()];
        if (communicator.size() == 1) continue;
        const uint32_t first = communicator.Rank(communicator.PositionOf(span.rank)->group, 0);
        const auto [it, is_new] = meetings.try_emplace({first, span.op}, span);
        if (is_new) continue;
        it->second.begin = std::min(it->second.begin, span.begin);
        it->second.end = std::max(it->second.end, span.end);
      }
    }
    for (const auto& [key, span] : meetings) {
      const Op& op = schedule.roles[schedule.role_of_rank[span.rank]].ops[span.op];
      const auto& collective = std::get<Collective>(op.work);
      const uint32_t ranks = schedule.communicators[collective.communicator.index()].size();
      AddCollective(collective, ranks, ToSeconds(span.end - span.begin));
    }
  }

  std::vector<KernelSamples> kernels;
  std::vector<CollectiveSamples> collectives;

 private:
  static constexpr DType kComputesIn = DType::kFp32;

  void AddKernel(const Compute& compute, Seconds time) {
    const KernelWork work = WorkOf(compute, kComputesIn);
    const auto key = std::make_tuple(compute.kernel, compute.gemm.mode, work.gemm.m, work.gemm.n,
                                     work.gemm.k, work.bytes, work.flops);
    const auto [it, is_new] = kernel_positions_.emplace(key, kernels.size());
    if (is_new) kernels.push_back({compute.kernel, compute.gemm.mode, kComputesIn, work, {}});
    kernels[it->second].accepted.push_back(time);
  }
  void AddCollective(const Collective& collective, uint32_t ranks, Seconds time) {
    const Bytes bytes = collective.bytes * (SizeOf(kComputesIn) / SizeOf(collective.dtype));
    const auto [it, is_new] = collective_positions_.emplace(
        CollectiveKey(collective.kind, ranks, bytes), collectives.size());
    if (is_new) collectives.push_back({collective.kind, ranks, bytes, {}});
    collectives[it->second].accepted.push_back(time);
  }

  std::map<std::tuple<Kernel, GemmMode, uint64_t, uint64_t, uint64_t, Bytes, Flops>, size_t>
      kernel_positions_;
  std::map<CollectiveKey, size_t> collective_positions_;
};

Seconds MedianPing(const std::vector<Seconds>& pings) {
  return pings.empty() ? Seconds(0) : QuantilesOf(pings).median;
}

}  // namespace

Seconds SplitStates(std::vector<Seconds> pings) {
  std::sort(pings.begin(), pings.end());
  const size_t least = std::max<size_t>(1, pings.size() / kLeastOfState);
  double widest = kStatesApart;
  Seconds split;
  for (size_t i = least; i + least <= pings.size(); ++i) {
    const double gap = pings[i] / pings[i - 1];
    if (gap < widest) continue;
    widest = gap;
    split = pings[i - 1];
  }
  return split;
}

Learned Learn(const std::vector<NamedSchedule>& schedules, Transport& transport,
              const LearningOptions& options) {
  Learned learned;
  learned.ranks = transport.size();
  learned.transport = transport.name();
  std::vector<Batches> all;
  for (const NamedSchedule& named : schedules) {
    all.push_back(RunBatches(named, transport, options));
    if (transport.rank() != 0) continue;
    if (options.progress) {
      options.progress(fmt::format("{} ranks, {}: {} of {} steps undisturbed", transport.size(),
                                   named.name, all.back().probe.Kept().size(),
                                   all.back().probe.steps.size()));
    }
  }
  if (transport.rank() != 0 || all.empty()) return learned;
  learned.backend = all.front().probe.backend;

  std::vector<Seconds> pings;
  for (const Batches& batches : all) {
    for (const ProbedStep* step : batches.probe.Kept()) pings.push_back(step->ping);
  }
  const Seconds split = SplitStates(pings);
  const auto is_low = [&](Seconds ping) { return split == Seconds(0) || ping <= split; };
  std::vector<Seconds> by_state[2];
  for (const Seconds ping : pings) by_state[is_low(ping) ? 0 : 1].push_back(ping);
  const bool low_counts = by_state[0].size() >= by_state[1].size();
  for (const size_t state : {low_counts ? 0 : 1, low_counts ? 1 : 0}) {
    if (by_state[state].empty()) continue;
    learned.states.push_back(
        {MedianPing(by_state[state]), static_cast<uint32_t>(by_state[state].size())});
  }

  Collector collector;
  for (Batches& batches : all) {
    learned.blocking = learned.blocking && batches.probe.blocking;
    for (const ProbedStep* step : batches.probe.Kept()) {
      if (is_low(step->ping) != low_counts) {
        ++batches.tally.other_state;
        continue;
      }
      ++batches.tally.kept;
      collector.Add(batches.probe.schedule, step->timeline);
    }
    learned.probes.push_back(batches.tally);
  }
  learned.kernels = std::move(collector.kernels);
  learned.collectives = std::move(collector.collectives);
  return learned;
}

}  // namespace rehearse
