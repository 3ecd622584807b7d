#include "real/calibration/learning.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "real/backends/host_activity.h"
#include "real/backends/rank_plan.h"
#include "real/transports/control.h"
#include "real/transports/host_clock.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"

namespace rehearse {
namespace {

constexpr double kStatesApart = 1.5;
constexpr size_t kLeastOfState = 10;  // one in this many

using CollectiveKey = std::tuple<CollectiveKind, uint32_t, Bytes>;

class Collector {
 public:
  explicit Collector(std::optional<DType> computes_in) : computes_in_(computes_in) {}

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
  void AddKernel(const Compute& compute, Seconds time) {
    const DType dtype = computes_in_.value_or(compute.dtype);
    const KernelWork work = WorkOf(compute, dtype);
    const auto key = std::make_tuple(compute.kernel, compute.gemm.mode, dtype, work.gemm.m,
                                     work.gemm.n, work.gemm.k, work.bytes, work.flops);
    const auto [it, is_new] = kernel_positions_.emplace(key, kernels.size());
    if (is_new) kernels.push_back({compute.kernel, compute.gemm.mode, dtype, work, {}});
    kernels[it->second].accepted.push_back(time);
  }
  void AddCollective(const Collective& collective, uint32_t ranks, Seconds time) {
    const DType dtype = computes_in_.value_or(collective.dtype);
    const Bytes bytes = collective.bytes * (SizeOf(dtype) / SizeOf(collective.dtype));
    const auto [it, is_new] = collective_positions_.emplace(
        CollectiveKey(collective.kind, ranks, bytes), collectives.size());
    if (is_new) collectives.push_back({collective.kind, ranks, bytes, {}});
    collectives[it->second].accepted.push_back(time);
  }

  const std::optional<DType> computes_in_;
  std::map<std::tuple<Kernel, GemmMode, DType, uint64_t, uint64_t, uint64_t, Bytes, Flops>, size_t>
      kernel_positions_;
  std::map<CollectiveKey, size_t> collective_positions_;
};

bool DoesOneOpAfterTheOther(const Probe& probe) {
  return probe.blocking || std::all_of(probe.schedule.roles.begin(), probe.schedule.roles.end(),
                                       [](const Role& role) { return role.streams.size() == 1; });
}

ProbeOptions OptionsFor(const Schedule& schedule, const LearningOptions& options) {
  ProbeOptions own{options.kept, options.patience, options.backend, StreamUse::kAuto,
                   options.is_stopped};
  if (options.backend) {
    own.streams = BlockingForm(schedule) ? StreamUse::kBlocking : StreamUse::kThreads;
  }
  return own;
}

std::string WhyGivenUp(size_t steps, Seconds hope, const HostSnapshot& before) {
  const std::string who = WhoWasInTheWay(ActivityBetween(before, SnapshotOfHost(), getpid()));
  return fmt::format(
      "none of {} steps was left alone by other programs within {:.0f} s, so that nothing can be "
      "learned here; {}. Stop the others, or give this program the cores to itself (chrt --fifo 10 "
      "rehearse calibrate ...)",
      steps, hope.value(), who.empty() ? "who was in the way is not known" : who);
}

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

GivingUp::GivingUp(Seconds limit, std::function<int64_t()> now)
    : limit_(limit), now_(now ? std::move(now) : NowNanoseconds), begun_(now_()) {}

bool GivingUp::IsOver(size_t kept) {
  has_kept_ = has_kept_ || kept > 0;
  return !has_kept_ && Seconds(static_cast<double>(now_() - begun_) * 1e-9) >= limit_;
}

Haste::Haste(Seconds limit, std::function<int64_t()> now)
    : limit_(limit), now_(now ? std::move(now) : NowNanoseconds), begun_(now_()) {}

void Haste::Add(size_t kept, size_t steps) {
  kept_ += kept;
  steps_ += steps;
  is_on_ = is_on_ || (static_cast<double>(kept_) < kFewest * static_cast<double>(steps_) &&
                      Seconds(static_cast<double>(now_() - begun_) * 1e-9) >= limit_);
}

Learned Learn(const std::vector<NamedSchedule>& schedules, Transport& transport,
              const LearningOptions& options) {
  Learned learned;
  learned.ranks = transport.size();
  learned.transport = options.backend ? "nccl" : transport.name();
  learned.computes_in = options.computes_in;
  std::vector<Probe> probes;
  GivingUp giving_up(options.hope);
  const HostSnapshot before = SnapshotOfHost();
  size_t steps = 0;
  for (const NamedSchedule& named : schedules) {
    const bool stops = transport.rank() == 0 && options.is_stopped && options.is_stopped();
    if (BroadcastBytes(transport, stops ? "stop" : "") == "stop")
      throw Stopped("a schedule is not measured");
    Haste* const haste = transport.rank() == 0 ? options.haste : nullptr;
    const bool hurries = haste != nullptr && haste->IsOn();
    ProbeOptions own = OptionsFor(named.schedule, options);
    if (hurries) own.patience = Seconds(0);
    probes.push_back(RunUntilKept(named.schedule, transport, own));
    const Probe& probe = probes.back();
    const auto kept = static_cast<uint32_t>(probe.Kept().size());
    const auto all = static_cast<uint32_t>(probe.steps.size());
    ProbeTally& tally = learned.probes.emplace_back();
    tally.name = named.name;
    tally.disturbed = all - kept;
    tally.hurried = hurries && kept < options.kept;
    if (haste != nullptr) haste->Add(kept, all);
    for (const ProbedStep& step : probe.steps) {
      if (!options.backend && !step.IsKept(probe.cores) && step.WasStolen()) ++tally.stolen;
    }
    steps += all;
    // Only rank 0 knows the steps, so it says why for all: any of them may be heard first.
    const bool is_over = transport.rank() == 0 && giving_up.IsOver(kept);
    const std::string why =
        BroadcastBytes(transport, is_over ? WhyGivenUp(steps, options.hope, before) : "");
    if (!why.empty()) throw Error(why);
    if (transport.rank() == 0 && options.progress) {
      options.progress(fmt::format("{} ranks, {}: {} of {} steps undisturbed", transport.size(),
                                   named.name, kept, all));
    }
  }
  if (transport.rank() != 0 || probes.empty()) return learned;
  learned.backend = probes.front().backend;

  std::vector<Seconds> pings;
  for (const Probe& probe : probes) {
    for (const ProbedStep* step : probe.Kept()) pings.push_back(step->ping);
  }
  // The host's state affects only what the host does, so times of GPUs are not split by it.
  const Seconds split = options.backend ? Seconds(0) : SplitStates(pings);
  const auto is_low = [&](Seconds ping) { return split == Seconds(0) || ping <= split; };
  std::vector<Seconds> by_state[2];
  for (const Seconds ping : pings) by_state[is_low(ping) ? 0 : 1].push_back(ping);
  const bool low_counts = by_state[0].size() >= by_state[1].size();
  for (const size_t state : {low_counts ? 0 : 1, low_counts ? 1 : 0}) {
    if (by_state[state].empty()) continue;
    learned.states.push_back(
        {MedianPing(by_state[state]), static_cast<uint32_t>(by_state[state].size())});
  }

  Collector collector(options.computes_in);
  for (size_t i = 0; i < probes.size(); ++i) {
    learned.blocking = learned.blocking && DoesOneOpAfterTheOther(probes[i]);
    for (const ProbedStep* step : probes[i].Kept()) {
      if (is_low(step->ping) != low_counts) {
        ++learned.probes[i].other_state;
        continue;
      }
      ++learned.probes[i].kept;
      collector.Add(probes[i].schedule, step->timeline);
    }
  }
  learned.kernels = std::move(collector.kernels);
  learned.collectives = std::move(collector.collectives);
  return learned;
}

}  // namespace rehearse
