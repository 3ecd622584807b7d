// What a Player reports: checks, errors and results.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/engine/ops_of_tasks.h"
#include "sim/engine/player.h"

namespace rehearse {

StepTooLong::StepTooLong(uint32_t rank, uint32_t op, std::string why)
    : Error(fmt::format("the step exceeds {}, the most that the clock can hold", kClockRange)),
      rank_(rank),
      op_(op),
      why_(std::move(why)) {}

// Names the first task in the program that is under way and will not end in time.
void Player::FailBeyondTime() const {
  const OpsOfTasks ops(program_);
  std::vector<bool> ends_now(program_.tasks.size());
  for (const uint32_t task : batch_) ends_now[task] = true;
  for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
    const TaskState& state = tasks_[task];
    const bool is_under_way = state.waiting_for == 0 && state.start < kBeyondTime &&
                              (state.end == kNotDone || state.end >= kBeyondTime);
    const bool is_late = state.end >= kBeyondTime || ends_now[task];
    const auto spans = ops.Of(TaskId(task));
    if (!is_under_way || !is_late || spans.empty()) continue;
    const SpanSpec& span = program_.spans[spans.front()];
    throw StepTooLong(span.rank, span.op + LateDelayOf(task), SlownessOf(task));
  }
  throw StepTooLong(Program::kNone, Program::kNone, "");
}

// Which delay of the series will not end in time, from 0; 0 for other tasks.
uint32_t Player::LateDelayOf(uint32_t task) const {
  if (program_.tasks[task].kind != TaskKind::kSeries) return 0;
  const Series series = SeriesOf(task);
  if (interference_ && series.processor != kNone)
    return interference_->LateDelay(task, series.processor) - series.first;
  Time end = tasks_[task].start;
  for (uint32_t delay = series.first; delay < series.last; ++delay) {
    end += program_.delays[delay];
    if (end >= kBeyondTime) return delay - series.first;
  }
  return series.size() - 1;
}

std::string Player::SlownessOf(uint32_t task) const {
  if (program_.tasks[task].kind != TaskKind::kFlow) return "";
  const Flow& flow = program_.flows[program_.tasks[task].payload];
  const auto first = program_.uses.begin() + program_.use_set_begin[flow.use_set];
  const auto last = program_.uses.begin() + program_.use_set_begin[flow.use_set + 1];
  const auto rate = [this](const LinkUse& use) {
    return network_.CapacityOf(use.link.index()) / use.multiplicity;
  };
  const auto slowest = std::min_element(
      first, last, [&](const LinkUse& a, const LinkUse& b) { return rate(a) < rate(b); });
  if (slowest == last) return "";
  const ProgramLink& link = program_.links[slowest->link.index()];
  return fmt::format("{} over link {} of {}", Print(Bytes(flow.bytes * flow.steps)), link.name,
                     Print(BytesPerSecond(network_.CapacityOf(slowest->link.index()))));
}

void Player::CheckAllDone() const {
  if (tasks_done_ == program_.tasks.size()) return;
  for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
    const LinkId link = network_.StuckOn(flow);
    if (!link.IsSet()) continue;
    throw Error(
        fmt::format("a transfer ({}) is stuck forever: link {} has failed and does not recover, "
                    "and there is no other route",
                    SpanOf(flows_[flow].task), program_.links[link.index()].name));
  }
  const auto first = std::find_if(tasks_.begin(), tasks_.end(),
                                  [](const TaskState& task) { return task.end == kNotDone; });
  throw InternalError(fmt::format("{} of {} tasks can never end; the first is {}",
                                  program_.tasks.size() - tasks_done_, program_.tasks.size(),
                                  Describe(static_cast<uint32_t>(first - tasks_.begin()))));
}

// No task starts before its predecessors have ended. Only in debug builds, like the next.
void Player::CheckCausality() const {
#ifndef NDEBUG
  for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
    CHECK_LE(tasks_[task].start.picoseconds(), tasks_[task].end.picoseconds());
    for (uint32_t i = program_.successor_begin[task]; i < program_.successor_begin[task + 1]; ++i) {
      CHECK_LE(tasks_[task].end.picoseconds(),
               tasks_[program_.successors[i].index()].start.picoseconds());
    }
  }
#endif
}

// A flow that ends has moved its bytes, up to the rounding of its end to the clock.
void Player::CheckBytes([[maybe_unused]] uint32_t flow) const {
#ifndef NDEBUG
  const TransferNetwork::Motion motion = network_.MotionOf(flow);
  const double missing = motion.left - motion.speed * ToSeconds(now_ - motion.since).value();
  const double rounding = 16 * TransferNetwork::kRelativeSlack * program_.flows[flow].bytes;
  CHECK_LE(std::abs(missing), 0.6e-12 * motion.speed + rounding);
#endif
}

// The op that a task works for, as far as the spans tell.
std::string Player::SpanOf(uint32_t task) const {
  const OpsOfTasks ops(program_);
  const auto spans = ops.Of(TaskId(task));
  if (spans.empty()) return fmt::format("task {}", task);
  const SpanSpec& span = program_.spans[spans.front()];
  return fmt::format("task {}, op {} of rank {}", task, span.op, span.rank);
}

// A task that is stuck.
std::string Player::Describe(uint32_t task) const {
  static constexpr const char* kNames[] = {"join", "delay", "series", "flow"};
  const Task& what = program_.tasks[task];
  const std::string name = fmt::format("task {} (a {})", task, kNames[static_cast<int>(what.kind)]);
  if (tasks_[task].waiting_for > 0) {
    return fmt::format("{}, which waits for {} of its {} predecessors", name,
                       tasks_[task].waiting_for, program_.predecessor_count[task]);
  }
  const FlowRun& run = flows_[what.payload];
  return fmt::format("{}, which has done {} of its {} steps and waits for its upstream, task {}",
                     name, run.steps_done, program_.flows[what.payload].steps,
                     flows_[run.upstream].task);
}

// Nothing needs the tasks' states afterwards.
Timeline Player::MakeTimeline(uint32_t ranks) {
  Timeline timeline;
  timeline.provenance = Provenance::kSimulated;
  timeline.ranks = ranks;
  auto spans = std::make_shared<const TaskSpans>(
      program_, std::move(tasks_), interference_ ? interference_->TakeEnds() : std::vector<Time>());
  timeline.step = spans->Step();
  if (options_.keep_spans)
    timeline.spans = spans->All();
  else
    timeline.played = std::move(spans);
  const std::vector<double> bytes = BytesByLink();
  timeline.links.reserve(program_.links.size());
  for (uint32_t i = 0; i < program_.links.size(); ++i) {
    const ProgramLink& link = program_.links[i];
    timeline.links.push_back({.name = link.name,
                              .kind = link.kind,
                              .capacity = link.capacity,
                              .bytes = Bytes(bytes[i]),
                              .loads = network_.TakeLoads(i)});
  }
  return timeline;
}

// All flows have run all their steps, so the program says how much that is, whatever the rates
// were.
std::vector<double> Player::BytesByLink() const {
  std::vector<double> bytes(program_.links.size(), 0.0);
  const auto credit = [&](uint32_t set, double moved) {
    for (uint32_t i = program_.use_set_begin[set]; i < program_.use_set_begin[set + 1]; ++i) {
      bytes[program_.uses[i].link.index()] += moved * program_.uses[i].multiplicity;
    }
  };
  const auto add = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      const Flow& flow = program_.flows[i];
      const double elsewhere = network_.BytesOnAlternative(i);
      credit(flow.use_set, flow.bytes * flow.steps - elsewhere);
      if (elsewhere > 0) credit(program_.alternatives[i], elsewhere);
    }
  };
  if (options_.copies_left_out == 0) {
    add(0, static_cast<uint32_t>(program_.flows.size()));
    return bytes;
  }
  // In the order of the whole program, since sums of floating-point numbers depend on it.
  for (const CopiedTasks& of_rank : program_.copies) {
    add(of_rank.flows.begin, of_rank.FlowEnd());
    for (uint32_t copy = 0; copy < options_.copies_left_out; ++copy)
      add(of_rank.FlowEnd() - of_rank.flows.size, of_rank.FlowEnd());
    add(of_rank.FlowEnd(), of_rank.flows.end);
  }
  return bytes;
}

std::vector<TaskTime> Player::TaskTimes() const {
  std::vector<TaskTime> times;
  if (!options_.record_tasks) return times;
  times.reserve(tasks_.size());
  for (const TaskState& task : tasks_) times.push_back({task.start, task.end});
  return times;
}

std::vector<Bottleneck> Player::Bottlenecks() const {
  std::vector<Bottleneck> bottlenecks;
  if (network_.bottlenecks() == nullptr) return bottlenecks;
  for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
    Bottleneck bottleneck;
    Time longest;
    Time all;
    for (const auto& [link, time] : network_.bottlenecks()->HeldBy(flow)) {
      all += time;
      if (time <= longest) continue;
      longest = time;
      bottleneck.link = link;
    }
    if (all > Time()) bottleneck.share = ToSeconds(longest).value() / ToSeconds(all).value();
    bottlenecks.push_back(bottleneck);
  }
  return bottlenecks;
}

}  // namespace rehearse
