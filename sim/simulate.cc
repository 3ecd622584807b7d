#include "sim/simulate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/error.h"
#include "sim/event_queue.h"
#include "sim/flow_run.h"
#include "sim/interference.h"
#include "sim/step_periods.h"
#include "sim/transfer_network.h"

namespace rehearse {
namespace {

// Plays one program. What an event sets free at once (a task whose predecessors have ended, the
// next step of a flow) goes on the agenda, which is worked off before the rates are settled: joins,
// empty delays and empty steps cascade within their instant, without recursion.
class Player {
 public:
  Player(const Program& program, const SimulationOptions& options);

  Simulation Play(uint32_t ranks);

 private:
  static constexpr uint32_t kNone = FlowRun::kNone;

  void PopBatch();
  void HandleEvent(uint32_t task);
  void ChangeLinks();
  void WorkOffAgenda();
  void StartTask(uint32_t task);
  void StartDelay(uint32_t task);
  void StartFlow(uint32_t flow);
  void EndTask(uint32_t task);
  void BeginStep(uint32_t flow);
  void MoveBytes(uint32_t flow);
  void EndStep(uint32_t flow);
  void Settle();
  void ScheduleFlow(uint32_t flow, Time time);

  void CheckAllDone() const;
  void CheckCausality() const;
  void CheckBytes(uint32_t flow) const;
  std::string Describe(uint32_t task) const;
  std::string SpanOf(uint32_t task) const;
  Timeline MakeTimeline(uint32_t ranks);
  std::vector<double> BytesByLink() const;
  std::vector<TaskTime> TaskTimes() const;
  std::vector<Bottleneck> Bottlenecks() const;

  const Program& program_;
  const SimulationOptions options_;
  const uint32_t link_change_task_;  // stands for the next link change in the queue
  EventQueue queue_;
  TransferNetwork network_;
  std::optional<Interference> interference_;  // only if the program has processors
  std::vector<FlowRun> flows_;
  StepPeriods periods_;
  std::vector<uint32_t> waiting_for_;    // per task: predecessors that have not ended
  std::vector<Time> start_;              // per task
  std::vector<Time> end_;                // per task
  std::vector<uint8_t> done_;            // per task
  std::vector<uint32_t> task_of_delay_;  // when there is interference
  std::vector<uint32_t> agenda_;         // tasks
  std::vector<uint32_t> batch_;
  size_t next_link_change_ = 0;
  Time now_;
  size_t tasks_done_ = 0;
  SimulationStats stats_;
};

std::vector<FlowRun> RunsOf(const Program& program) {
  std::vector<FlowRun> runs(program.flows.size());
  const auto flow_of = [&program](TaskId task) {
    return task.IsSet() ? program.tasks[task.index()].payload : FlowRun::kNone;
  };
  for (uint32_t task = 0; task < program.tasks.size(); ++task) {
    if (program.tasks[task].kind == TaskKind::kFlow) {
      runs[program.tasks[task].payload].task = task;
    }
  }
  for (size_t flow = 0; flow < runs.size(); ++flow) {
    runs[flow].upstream = flow_of(program.flows[flow].upstream);
    runs[flow].downstream = flow_of(program.flows[flow].downstream);
  }
  return runs;
}

Player::Player(const Program& program, const SimulationOptions& options)
    : program_(program),
      options_(options),
      link_change_task_(static_cast<uint32_t>(program.tasks.size())),
      queue_(program.tasks.size() + 1),
      network_(program,
               {.loads = options.record_link_loads, .bottlenecks = options.record_bottlenecks}),
      flows_(RunsOf(program)),
      periods_(program, flows_, network_, queue_,
               options.jump && !options.record_link_loads && !options.record_bottlenecks),
      waiting_for_(program.predecessor_count),
      start_(program.tasks.size()),
      end_(program.tasks.size()),
      done_(program.tasks.size(), 0) {
  if (program.processors.empty()) return;
  interference_.emplace(program);
  task_of_delay_.resize(program.delays.size());
  for (uint32_t task = 0; task < program.tasks.size(); ++task) {
    if (program.tasks[task].kind == TaskKind::kDelay) {
      task_of_delay_[program.tasks[task].payload] = task;
    }
  }
}

Simulation Player::Play(uint32_t ranks) {
  for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
    if (waiting_for_[task] == 0) agenda_.push_back(task);
  }
  ChangeLinks();
  for (;;) {
    WorkOffAgenda();
    Settle();
    if (tasks_done_ == program_.tasks.size()) break;
    if (queue_.IsEmpty() && periods_.queue().IsEmpty()) break;
    PopBatch();
    stats_.events += batch_.size();
    for (const uint32_t task : batch_) HandleEvent(task);
  }
  CheckAllDone();
  CheckCausality();
  stats_.solves = network_.solves();
  stats_.jumped = periods_.jumped_transfers();
  stats_.transfers += stats_.jumped;
  return {.timeline = MakeTimeline(ranks),
          .stats = stats_,
          .tasks = TaskTimes(),
          .bottlenecks = Bottlenecks()};
}

// Takes everything of the earliest time, also of what is set aside.
void Player::PopBatch() {
  batch_.clear();
  if (periods_.queue().IsEmpty()) {
    now_ = queue_.PopBatch(&batch_);
    return;
  }
  now_ = periods_.queue().NextTime();
  if (!queue_.IsEmpty()) now_ = std::min(now_, queue_.NextTime());
  if (periods_.queue().NextTime() == now_) periods_.queue().AppendBatch(&batch_);
  if (!queue_.IsEmpty() && queue_.NextTime() == now_) queue_.AppendBatch(&batch_);
}

void Player::HandleEvent(uint32_t task) {
  if (task == link_change_task_) {
    ChangeLinks();
    return;
  }
  const uint32_t payload = program_.tasks[task].payload;
  if (program_.tasks[task].kind == TaskKind::kDelay) {
    if (interference_ && interference_->OwnsDelay(payload)) interference_->EndDelay(payload);
    EndTask(task);
  } else if (flows_[payload].phase == FlowPhase::kLatency) {
    MoveBytes(payload);
  } else {
    CheckBytes(payload);
    network_.End(payload, now_);
    if (periods_.HasGroups()) periods_.Notice(payload, now_);
    EndStep(payload);
  }
}

// Applies the changes of now and waits for the next.
void Player::ChangeLinks() {
  const std::vector<LinkChange>& changes = program_.link_changes;
  for (; next_link_change_ < changes.size() && changes[next_link_change_].time == now_;
       ++next_link_change_) {
    const LinkChange& change = changes[next_link_change_];
    const uint32_t link = change.link.index();
    network_.SetCapacity(link, change.factor * program_.links[link].capacity.value());
    if (periods_.HasGroups()) periods_.TouchAll(now_);
  }
  if (next_link_change_ < changes.size()) {
    queue_.Schedule(link_change_task_, changes[next_link_change_].time);
  }
}

void Player::WorkOffAgenda() {
  for (size_t i = 0; i < agenda_.size(); ++i) {
    const uint32_t task = agenda_[i];
    const bool continues = program_.tasks[task].kind == TaskKind::kFlow &&
                           flows_[program_.tasks[task].payload].phase == FlowPhase::kReady;
    if (continues) {
      BeginStep(program_.tasks[task].payload);
    } else {
      StartTask(task);
    }
  }
  agenda_.clear();
}

void Player::StartTask(uint32_t task) {
  start_[task] = now_;
  switch (program_.tasks[task].kind) {
    case TaskKind::kJoin:
      EndTask(task);
      break;
    case TaskKind::kDelay:
      StartDelay(task);
      break;
    case TaskKind::kFlow:
      StartFlow(program_.tasks[task].payload);
      break;
  }
}

void Player::StartDelay(uint32_t task) {
  const uint32_t delay = program_.tasks[task].payload;
  if (program_.delays[delay] == Time()) {
    EndTask(task);
  } else if (interference_ && interference_->OwnsDelay(delay)) {
    interference_->BeginDelay(delay);
  } else {
    queue_.Schedule(task, now_ + program_.delays[delay]);
  }
}

void Player::StartFlow(uint32_t flow) {
  if (interference_ && interference_->HasParties(flow)) interference_->BeginFlow(flow);
  periods_.Start(flow, now_);
  BeginStep(flow);
}

void Player::EndTask(uint32_t task) {
  end_[task] = now_;
  done_[task] = 1;
  ++tasks_done_;
  for (uint32_t i = program_.successor_begin[task]; i < program_.successor_begin[task + 1]; ++i) {
    const uint32_t successor = program_.successors[i].index();
    if (--waiting_for_[successor] == 0) agenda_.push_back(successor);
  }
}

void Player::BeginStep(uint32_t flow) {
  FlowRun& run = flows_[flow];
  if (run.steps_done > 0 && run.upstream != kNone &&
      flows_[run.upstream].steps_done < run.steps_done) {
    run.phase = FlowPhase::kBlocked;
    return;
  }
  const Time latency = program_.flows[flow].latency;
  if (latency == Time()) {
    MoveBytes(flow);
  } else {
    run.phase = FlowPhase::kLatency;
    ScheduleFlow(flow, now_ + latency);
  }
}

void Player::MoveBytes(uint32_t flow) {
  const Flow& what = program_.flows[flow];
  if (what.bytes > 0) ++stats_.transfers;
  const bool uses_links =
      program_.use_set_begin[what.use_set] != program_.use_set_begin[what.use_set + 1];
  if (what.bytes > 0 && uses_links) {
    flows_[flow].phase = FlowPhase::kMoving;
    network_.Begin(flow);
  } else {
    EndStep(flow);
  }
}

void Player::EndStep(uint32_t flow) {
  FlowRun& run = flows_[flow];
  ++run.steps_done;
  if (run.downstream != kNone && flows_[run.downstream].phase == FlowPhase::kBlocked) {
    flows_[run.downstream].phase = FlowPhase::kReady;
    agenda_.push_back(flows_[run.downstream].task);
  }
  if (run.watched || periods_.HasGroups()) periods_.EndStep(flow, now_);
  if (run.steps_done < program_.flows[flow].steps) {
    run.phase = FlowPhase::kReady;
    agenda_.push_back(run.task);
  } else {
    run.phase = FlowPhase::kDone;
    if (interference_ && interference_->HasParties(flow)) interference_->EndFlow(flow);
    EndTask(run.task);
  }
}

// The agenda is empty: what goes on from now on, and until when?
void Player::Settle() {
  if (interference_) {
    interference_->Settle(now_);
    for (const auto [delay, end] : interference_->delay_ends()) {
      queue_.Schedule(task_of_delay_[delay], end);
    }
    for (const auto [flow, factor] : interference_->flow_factors()) {
      network_.SetFactor(flow, factor);
      if (periods_.HasGroups()) periods_.Touch(flow, now_);
    }
  }
  for (const auto [flow, end] : network_.Settle(now_)) {
    if (periods_.HasGroups()) periods_.Notice(flow, now_);
    ScheduleFlow(flow, end);
  }
  periods_.EndInstant(now_);
}

void Player::ScheduleFlow(uint32_t flow, Time time) {
  const FlowRun& run = flows_[flow];
  EventQueue& queue = run.set_aside ? periods_.queue() : queue_;
  if (time != TransferNetwork::kNever) {
    queue.Schedule(run.task, time);
  } else if (queue.Has(run.task)) {
    queue.Cancel(run.task);
  }
}

void Player::CheckAllDone() const {
  if (tasks_done_ == program_.tasks.size()) return;
  for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
    const LinkId link = network_.StuckOn(flow);
    if (!link.IsSet()) continue;
    throw Error(
        fmt::format("a transfer ({}) is stuck for ever: link {} has failed and does not "
                    "recover, and there is no other way",
                    SpanOf(flows_[flow].task), program_.links[link.index()].name));
  }
  const auto first = std::find(done_.begin(), done_.end(), 0);
  throw InternalError(fmt::format("{} of {} tasks can never end; the first is {}",
                                  program_.tasks.size() - tasks_done_, program_.tasks.size(),
                                  Describe(static_cast<uint32_t>(first - done_.begin()))));
}

// No task starts before its predecessors have ended. In debug builds only, as is the next.
void Player::CheckCausality() const {
#ifndef NDEBUG
  for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
    CHECK_LE(start_[task].picoseconds(), end_[task].picoseconds());
    for (uint32_t i = program_.successor_begin[task]; i < program_.successor_begin[task + 1]; ++i) {
      CHECK_LE(end_[task].picoseconds(), start_[program_.successors[i].index()].picoseconds());
    }
  }
#endif
}

// A flow that ends has moved its bytes, but for what rounding its end to the clock makes of it.
void Player::CheckBytes([[maybe_unused]] uint32_t flow) const {
#ifndef NDEBUG
  const TransferNetwork::Motion motion = network_.MotionOf(flow);
  const double missing = motion.left - motion.speed * ToSeconds(now_ - motion.since).value();
  const double rounding = 16 * TransferNetwork::kRelativeSlack * program_.flows[flow].bytes;
  CHECK_LE(std::abs(missing), 0.6e-12 * motion.speed + rounding);
#endif
}

// The op that a task belongs to, as far as the spans know.
std::string Player::SpanOf(uint32_t task) const {
  for (const SpanSpec& span : program_.spans) {
    if (span.begin.index() == task || span.end.index() == task) {
      return fmt::format("task {}, op {} of rank {}", task, span.op, span.rank);
    }
  }
  return fmt::format("task {}", task);
}

// A task that is stuck.
std::string Player::Describe(uint32_t task) const {
  static constexpr const char* kNames[] = {"join", "delay", "flow"};
  const Task& what = program_.tasks[task];
  const std::string name = fmt::format("task {} (a {})", task, kNames[static_cast<int>(what.kind)]);
  if (waiting_for_[task] > 0) {
    return fmt::format("{}, which waits for {} of its {} predecessors", name, waiting_for_[task],
                       program_.predecessor_count[task]);
  }
  const FlowRun& run = flows_[what.payload];
  return fmt::format("{}, which has done {} of its {} steps and waits for its upstream, task {}",
                     name, run.steps_done, program_.flows[what.payload].steps,
                     flows_[run.upstream].task);
}

Timeline Player::MakeTimeline(uint32_t ranks) {
  Timeline timeline;
  timeline.provenance = Provenance::kSimulated;
  timeline.ranks = ranks;
  timeline.spans.reserve(program_.spans.size());
  for (const SpanSpec& spec : program_.spans) {
    const Time begin = start_[spec.begin.index()];
    const bool ready_at_begin = !spec.ready.IsSet() || spec.ready == spec.begin;
    timeline.spans.push_back({.rank = spec.rank,
                              .op = spec.op,
                              .ready = ready_at_begin ? begin : end_[spec.ready.index()],
                              .begin = begin,
                              .end = end_[spec.end.index()]});
    timeline.step = std::max(timeline.step, timeline.spans.back().end);
  }
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

// All flows have run all their steps, so this is what the program says, whatever the rates were.
std::vector<double> Player::BytesByLink() const {
  std::vector<double> bytes(program_.links.size(), 0.0);
  const auto credit = [&](uint32_t set, double moved) {
    for (uint32_t i = program_.use_set_begin[set]; i < program_.use_set_begin[set + 1]; ++i) {
      bytes[program_.uses[i].link.index()] += moved * program_.uses[i].multiplicity;
    }
  };
  for (uint32_t i = 0; i < program_.flows.size(); ++i) {
    const Flow& flow = program_.flows[i];
    const double elsewhere = network_.BytesOnAlternative(i);
    credit(flow.use_set, flow.bytes * flow.steps - elsewhere);
    if (elsewhere > 0) credit(program_.alternatives[i], elsewhere);
  }
  return bytes;
}

std::vector<TaskTime> Player::TaskTimes() const {
  std::vector<TaskTime> times;
  if (!options_.record_tasks) return times;
  for (uint32_t task = 0; task < start_.size(); ++task) {
    times.push_back({start_[task], end_[task]});
  }
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

}  // namespace

Simulation Simulate(const Program& program, uint32_t ranks, const SimulationOptions& options) {
  return Player(program, options).Play(ranks);
}

}  // namespace rehearse
