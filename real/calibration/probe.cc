#include "real/calibration/probe.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "real/transports/collective_run.h"
#include "real/transports/control.h"
#include "real/transports/host_clock.h"
#include "sim/base/interruption.h"

namespace rehearse {
namespace {

constexpr uint32_t kBatch = 10;
constexpr int kPings = 20;
constexpr uint32_t kPingTag = kControlTag + 100;

// What a rank notes after a step.
struct StepNote {
  HostShares shares;
  double ping = 0;
};

Group Everybody(const Transport& transport) {
  Group group;
  for (uint32_t rank = 0; rank < transport.size(); ++rank) group.ranks.push_back(rank);
  group.member = transport.rank();
  return group;
}

Seconds Ping(Transport& transport) {
  const Group group = Everybody(transport);
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.dtype = DType::kFp32;
  std::vector<float> number(group.size(), 1);
  const CollectiveCall<float> call{&collective,   &group,        kPingTag,     number.data(),
                                   number.size(), number.data(), number.size()};
  int64_t quickest = 0;
  for (int i = 0; i < kPings; ++i) {
    const int64_t before = NowNanoseconds();
    RunCollective(transport, call);
    const int64_t took = NowNanoseconds() - before;
    if (i == 0 || took < quickest) quickest = took;
  }
  return Seconds(static_cast<double>(quickest) * 1e-9);
}

}  // namespace

bool ProbedStep::IsKept(uint32_t cores) const { return WereLeftAlone(shares, cores); }

bool ProbedStep::WasStolen() const {
  return std::any_of(shares.begin(), shares.end(),
                     [](const HostShares& own) { return own.was_stolen; });
}

std::vector<const ProbedStep*> Probe::Kept() const {
  std::vector<const ProbedStep*> kept;
  for (const ProbedStep& step : steps) {
    if (keeps_all || step.IsKept(cores)) kept.push_back(&step);
  }
  return kept;
}

Probe RunProbe(const Schedule& schedule, Transport& transport, const ExecutionOptions& options) {
  std::vector<StepNote> notes;
  HostUsage before = UsageNow();
  Execution execution = Execute(schedule, transport, options, [&](const StepOfRank& step) {
    if (!step.failure.empty()) return;  // the others are not there to ping
    StepNote note;
    note.shares = SharesBetween(before, UsageNow());
    note.ping = Ping(transport).value();
    notes.push_back(note);
    before = UsageNow();
  });

  Probe probe;
  probe.cores = ThisHost().cores;
  probe.keeps_all = options.backend != nullptr;
  probe.blocking = execution.blocking;
  probe.schedule = std::move(execution.schedule);
  probe.backend = std::move(execution.backend);
  for (Timeline& timeline : execution.repeats) probe.steps.push_back({std::move(timeline), {}, {}});
  const auto all = GatherBytes(transport, ToBytes(std::span<const StepNote>(notes)));
  for (const std::string& bytes : all) {
    const auto of_rank = FromBytes<StepNote>(bytes);
    for (size_t i = 0; i < probe.steps.size(); ++i) {
      const StepNote& note = of_rank.at(options.warm_ups + i);
      ProbedStep& step = probe.steps[i];
      step.shares.push_back(note.shares);
      if (step.shares.size() == 1 || Seconds(note.ping) < step.ping) step.ping = Seconds(note.ping);
    }
  }
  return probe;
}

Probe RunUntilKept(const Schedule& schedule, Transport& transport, const ProbeOptions& options) {
  const int64_t start = NowNanoseconds();
  ExecutionOptions execution;
  execution.backend = options.backend;
  execution.streams = options.streams;
  execution.repeats = options.backend ? options.kept : std::min(kBatch, options.kept);
  Probe all;
  while (true) {
    Probe batch = RunProbe(schedule, transport, execution);
    std::move(batch.steps.begin(), batch.steps.end(), std::back_inserter(all.steps));
    std::swap(all.steps, batch.steps);
    all = std::move(batch);
    const Seconds passed(static_cast<double>(NowNanoseconds() - start) * 1e-9);
    const bool goes_on = all.Kept().size() < options.kept && passed < options.patience;
    const bool stops =
        goes_on && transport.rank() == 0 && options.is_stopped && options.is_stopped();
    const std::string decision = BroadcastBytes(transport, stops ? "stop" : goes_on ? "on" : "");
    if (decision == "stop") throw Stopped("a schedule is not measured");
    if (decision != "on") return all;
  }
}

}  // namespace rehearse
