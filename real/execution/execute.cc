#include "real/execution/execute.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "real/backends/executable.h"
#include "real/backends/initial_state.h"
#include "real/cpu/cpu_backend.h"
#include "real/execution/measured_timeline.h"
#include "real/transports/control.h"
#include "real/transports/host_clock.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_check.h"

namespace rehearse {
namespace {

bool DecideAlone(const Schedule& schedule, Transport& transport, StreamUse use) {
  if (use == StreamUse::kThreads) return false;
  const bool can = BlockingForm(schedule).has_value();
  if (use == StreamUse::kBlocking) {
    if (!can) {
      throw Error(
          "this schedule does not finish when every rank does one op after the other: its ranks "
          "send and receive at the same time; leave the choice of streams to rehearse");
    }
    return true;
  }
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  return can && cores < transport.ranks_on_host() * StreamsInUse(schedule);
}

// The times of all ranks in one step, on rank 0's clock; empty on other ranks.
std::vector<std::vector<OpTime>> GatherTimes(Transport& transport, const std::vector<OpTime>& own,
                                             const std::vector<ClockMap>& clocks) {
  std::vector<std::vector<OpTime>> all;
  const auto gathered = GatherBytes(transport, ToBytes(std::span<const OpTime>(own)));
  for (uint32_t rank = 0; rank < gathered.size(); ++rank) {
    all.push_back(FromBytes<OpTime>(gathered[rank]));
    if (transport.has_common_clock()) continue;
    for (OpTime& time : all.back()) {
      if (time.ready != OpTime::kNever) time.ready = clocks[rank].ToRank0(time.ready);
      if (time.end != OpTime::kNever) time.end = clocks[rank].ToRank0(time.end);
    }
  }
  return all;
}

// The slowest rank's time of each step; empty on ranks other than 0.
std::vector<Seconds> SlowestWalls(Transport& transport, const std::vector<int64_t>& own) {
  std::vector<Seconds> slowest;
  for (const std::string& bytes : GatherBytes(transport, ToBytes(std::span<const int64_t>(own)))) {
    const auto walls = FromBytes<int64_t>(bytes);
    slowest.resize(walls.size());
    for (size_t step = 0; step < walls.size(); ++step) {
      slowest[step] = std::max(slowest[step], Seconds(static_cast<double>(walls[step]) * 1e-9));
    }
  }
  return slowest;
}

// What the ranks had of the host, by step; empty on ranks other than 0.
std::vector<std::vector<HostShares>> GatherShares(Transport& transport,
                                                  const std::vector<HostShares>& own) {
  std::vector<std::vector<HostShares>> by_step;
  for (const std::string& bytes :
       GatherBytes(transport, ToBytes(std::span<const HostShares>(own)))) {
    const auto of_rank = FromBytes<HostShares>(bytes);
    by_step.resize(of_rank.size());
    for (size_t step = 0; step < of_rank.size(); ++step) by_step[step].push_back(of_rank[step]);
  }
  return by_step;
}

// By rank; empty on ranks other than 0, and if backends do not count.
std::vector<MemoryUse> GatherMemory(Transport& transport, const std::optional<MemoryUse>& own) {
  std::vector<MemoryUse> counted;
  if (own) counted.push_back(*own);
  std::vector<MemoryUse> all;
  for (const std::string& bytes :
       GatherBytes(transport, ToBytes(std::span<const MemoryUse>(counted)))) {
    for (const MemoryUse& use : FromBytes<MemoryUse>(bytes)) all.push_back(use);
  }
  return all;
}

// Tells the observer of rank 0's own steps.
class StepObserver {
 public:
  StepObserver(const ExecutionOptions& options, const Transport& transport)
      : options_(options), tells_(options.observer != nullptr && transport.rank() == 0) {
    if (tells_) options_.observer->Begin("executing", "steps", options.warm_ups + options.repeats);
  }

  void EndStep(uint32_t step, const std::vector<int64_t>& walls) {
    if (!tells_) return;
    if (walls.empty()) {
      options_.observer->Note("warming up");
    } else {
      const auto quickest = static_cast<double>(*std::min_element(walls.begin(), walls.end()));
      options_.observer->Note(fmt::format("quickest {}", Print(Seconds(1e-9 * quickest))));
    }
    options_.observer->Done(step + 1.0);
  }

 private:
  const ExecutionOptions& options_;
  const bool tells_;
};

}  // namespace

bool AgreeToStop(const std::function<bool()>& is_stopped, Transport& transport) {
  if (!is_stopped) return false;
  const bool own = transport.rank() == 0 && is_stopped();
  return BroadcastBytes(transport, own ? "stop" : "") == "stop";
}

bool DecideBlocking(const Schedule& schedule, Transport& transport, StreamUse use) {
  const bool own = DecideAlone(schedule, transport, use);
  return BroadcastBytes(transport, own ? "blocking" : "threads") == "blocking";
}

size_t Execution::LeftAlone() const {
  size_t count = 0;
  for (size_t i = 0; i < repeats.size(); ++i) count += WasLeftAlone(i) ? 1 : 0;
  return count;
}

std::optional<double> Execution::Lost() const {
  Seconds lost;
  Seconds all;
  for (const std::vector<HostShares>& ranks : host) {
    Seconds longest;
    for (const HostShares& own : ranks) longest = std::max(longest, own.wall);
    lost += LostShare(ranks, cores) * longest;
    all += longest;
  }
  if (all == Seconds(0)) return std::nullopt;
  return lost / all;
}

const Timeline& Execution::Median() const {
  CHECK(!repeats.empty());
  const bool takes_all = LeftAlone() == 0;
  std::vector<size_t> order;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (takes_all || WasLeftAlone(i)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return repeats[a].step < repeats[b].step; });
  return repeats[order[(order.size() - 1) / 2]];
}

Execution Execute(const Schedule& schedule, Transport& transport, const ExecutionOptions& options,
                  const StepSink& sink) {
  CHECK_EQ(schedule.ranks(), transport.size());
  Execution execution;
  execution.schedule = Executable(schedule);
  execution.blocking = DecideBlocking(execution.schedule, transport, options.streams);
  if (execution.blocking) execution.schedule = OnOneStream(execution.schedule);

  const RankPlan plan = PlanRank(execution.schedule, transport.rank());
  const std::unique_ptr<Backend> backend =
      options.backend ? options.backend(plan, transport)
                      : MakeCpuBackend(plan, transport, options.arithmetic);
  execution.backend = backend->Description();
  WriteInitialState(plan, options.seed, options.poison, *backend);

  const std::vector<ClockSample> before = MeasureClocks(transport);
  uint32_t steps = options.warm_ups + options.repeats;
  std::vector<std::vector<OpTime>> times(steps);
  std::vector<RowLoss> losses;
  // Runs a step and returns its wall time.
  const auto run = [&](uint32_t number, std::vector<OpTime>* own) {
    StepFacts facts;
    facts.seed = options.seed;
    facts.tokens = schedule.tokens;
    facts.number = number;
    PrepareStep(plan, options.poison, *backend);
    transport.Barrier();
    const int64_t began = NowNanoseconds();
    backend->Step(facts, own, &losses);
    return NowNanoseconds() - began;
  };
  std::vector<int64_t> walls;
  std::vector<HostShares> shares;
  StepObserver observer(options, transport);
  bool is_stopped = false;
  for (uint32_t step = 0; step < steps; ++step) {
    const bool is_warm_up = step < options.warm_ups;
    try {
      const HostUsage usage = options.watches_host ? UsageNow() : HostUsage();
      const int64_t wall = run(step + 1, &times[step]);
      if (!is_warm_up) walls.push_back(wall);
      if (!is_warm_up && options.watches_host) shares.push_back(SharesBetween(usage, UsageNow()));
    } catch (const std::exception& error) {
      if (sink) sink({step, is_warm_up, times[step], error.what()});
      throw;
    }
    if (sink) sink({step, is_warm_up, times[step], {}});
    observer.EndStep(step, walls);
    if (AgreeToStop(options.is_stopped, transport)) {
      steps = step + 1;
      is_stopped = true;
    }
  }
  if (steps <= options.warm_ups) throw Stopped("no step was measured");
  const std::vector<LibraryChoice> choices = backend->Choices();
  std::vector<OpTime> whole;
  std::vector<int64_t> untimed_walls;
  if (!is_stopped && options.repeats_untimed && backend->Use(StepMode::kWhole)) {
    for (uint32_t step = steps; step < steps + options.repeats; ++step)
      untimed_walls.push_back(run(step + 1, &whole));
  }
  std::vector<int64_t> graph_walls;
  if (!is_stopped && options.repeats_by_graph && backend->Use(StepMode::kGraph)) {
    run(steps + 1, &whole);  // captures it; a replay repeats the same step
    for (uint32_t i = 0; i < options.repeats; ++i) graph_walls.push_back(run(steps + 1, &whole));
  }
  const std::vector<ClockSample> after = MeasureClocks(transport);
  for (size_t rank = 0; rank < before.size(); ++rank) {
    execution.clocks.push_back({before[rank], after[rank]});
  }
  execution.cores = ThisHost().cores;
  execution.host = GatherShares(transport, shares);
  execution.walls = SlowestWalls(transport, walls);
  execution.untimed_walls = SlowestWalls(transport, untimed_walls);
  execution.graph_walls = SlowestWalls(transport, graph_walls);
  execution.memory = GatherMemory(transport, backend->CountedMemory());
  for (const auto& own : GatherBytes(transport, ToBytes(std::span<const LibraryChoice>(choices))))
    execution.choices.push_back(FromBytes<LibraryChoice>(own));
  for (uint32_t step = 0; step < steps; ++step) {
    const auto all = GatherTimes(transport, times[step], execution.clocks);
    if (transport.rank() != 0) continue;
    auto& kept = step < options.warm_ups ? execution.warm_ups : execution.repeats;
    kept.push_back(MakeMeasuredTimeline(execution.schedule, all));
  }
  return execution;
}

}  // namespace rehearse
