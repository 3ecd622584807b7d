#include "sim/engine/simulate.h"

#include <algorithm>
#include <vector>

#include "sim/engine/player.h"

namespace rehearse {
namespace {

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

}  // namespace

Player::Player(const Program& program, const SimulationOptions& options)
    : program_(program),
      options_(options),
      link_change_task_(static_cast<uint32_t>(program.tasks.size())),
      queue_(program.tasks.size() + 1),
      network_(program,
               {.loads = options.record_link_loads, .bottlenecks = options.record_bottlenecks}),
      flows_(RunsOf(program)),
      periods_(program, flows_, network_, queue_,
               options.jump && !options.record_link_loads && !options.record_bottlenecks &&
                   options.packets == nullptr),
      tasks_(program.tasks.size()),
      recurrence_(program, options.copies_left_out) {
  CHECK(options.copies_left_out == 0 ||
        (program.link_changes.empty() && !options.record_link_loads &&
         !options.record_bottlenecks && !options.record_tasks));
  if (options.packets != nullptr) {
    CHECK_EQ(options.packets->set_of_flow.size(), program.flows.size());
    CHECK(options.copies_left_out == 0 && program.link_changes.empty());
    packets_.emplace(*options.packets, options.watch_packets);
  }
  for (const CopiedTasks& of_rank : program.copies) first_unended_.push_back(of_rank.tasks.begin);
  for (uint32_t task = 0; task < program.tasks.size(); ++task) {
    tasks_[task].waiting_for = program.predecessor_count[task];
  }
  if (!program.processors.empty()) interference_.emplace(program);
}

Simulation Player::Play(uint32_t ranks) {
  for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
    if (tasks_[task].waiting_for == 0) agenda_.push_back(task);
  }
  ChangeLinks();
  constexpr uint32_t kBetweenReports = 1024;  // instants
  uint32_t until_report = kBetweenReports;
  if (options_.observer != nullptr)
    options_.observer->Begin(kSimulating, "", program_.tasks.size());
  for (;;) {
    WorkOffAgenda();
    Settle();
    while (recurrence_.IsLooking() && HasEnded(recurrence_.marker())) LookForRecurrence();
    if (options_.copies_left_out > 0 && !recurrence_.IsLooking() && !recurrence_.found()) return {};
    if (--until_report == 0) {
      until_report = kBetweenReports;
      if (options_.observer != nullptr) options_.observer->Done(static_cast<double>(tasks_done_));
    }
    if (tasks_done_ == program_.tasks.size()) break;
    const bool travels = packets_ && packets_->IsUnderWay();
    if (queue_.IsEmpty() && periods_.queue().IsEmpty() && !travels) break;
    PopBatch();
    if (now_ >= kBeyondTime) FailBeyondTime();
    stats_.events += batch_.size();
    for (const uint32_t task : batch_) HandleEvent(task);
  }
  CheckAllDone();
  CheckCausality();
  stats_.solves = network_.solves();
  stats_.jumped = periods_.jumped_transfers();
  if (options_.copies_left_out > 0) stats_.jumped += TransfersLeftOut();
  stats_.transfers += stats_.jumped;
  std::vector<TaskTime> times = TaskTimes();
  return {.timeline = MakeTimeline(ranks),
          .stats = stats_,
          .tasks = std::move(times),
          .bottlenecks = Bottlenecks(),
          .recurrence = recurrence_.found(),
          .packets = packets_ ? std::optional(packets_->Report()) : std::nullopt};
}

// Takes all events of the earliest time, including those set aside.
void Player::PopBatch() {
  batch_.clear();
  if (packets_ && PopPackets()) return;
  if (periods_.queue().IsEmpty()) {
    now_ = queue_.PopBatch(&batch_);
    return;
  }
  now_ = periods_.queue().NextTime();
  if (!queue_.IsEmpty()) now_ = std::min(now_, queue_.NextTime());
  if (periods_.queue().NextTime() == now_) periods_.queue().AppendBatch(&batch_);
  if (!queue_.IsEmpty() && queue_.NextTime() == now_) queue_.AppendBatch(&batch_);
}

// Lets packets travel until the next event; if a flow arrives before, or just then, that comes
// first.
bool Player::PopPackets() {
  if (!packets_->Run(queue_.IsEmpty() ? kBeyondTime : queue_.NextTime())) return false;
  now_ = packets_->now();
  for (const uint32_t flow : packets_->arrived()) batch_.push_back(flows_[flow].task);
  return true;
}

void Player::HandleEvent(uint32_t task) {
  if (task == link_change_task_) {
    ChangeLinks();
    return;
  }
  const uint32_t payload = program_.tasks[task].payload;
  if (program_.tasks[task].kind != TaskKind::kFlow) {
    const uint32_t processor = interference_ ? SeriesOf(task).processor : kNone;
    const bool goes_on = processor != kNone &&
                         !interference_->EndDelay(task, processor, now_, &tasks_[task].kept_ends);
    if (!goes_on) EndTask(task);
  } else if (flows_[payload].phase == FlowPhase::kLatency) {
    MoveBytes(payload);
  } else if (IsOfPackets(payload)) {
    EndStep(payload);
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
  tasks_[task].start = now_;
  switch (program_.tasks[task].kind) {
    case TaskKind::kJoin:
      EndTask(task);
      break;
    case TaskKind::kDelay:
    case TaskKind::kSeries:
      StartDelays(task);
      break;
    case TaskKind::kFlow:
      StartFlow(program_.tasks[task].payload);
      break;
  }
}

// A lone delay is a series of one.
Series Player::SeriesOf(uint32_t task) const {
  const auto [kind, payload] = program_.tasks[task];
  if (kind == TaskKind::kSeries) return program_.series[payload];
  const uint32_t processor =
      program_.delay_owners.empty() ? kNone : program_.delay_owners[payload].processor;
  return {payload, payload, program_.delays[payload], processor};
}

void Player::StartDelays(uint32_t task) {
  const Series series = SeriesOf(task);
  if (series.duration == Time()) {
    EndTask(task);
  } else if (interference_ && series.processor != kNone) {
    interference_->BeginDelays(task, series, now_);
  } else {
    ScheduleDelays(task);
  }
}

// If only the next delay waits for a delay's end, and for nothing else (any more), that end needs
// no event: when the next one starts is known now.
void Player::ScheduleDelays(uint32_t task) {
  Time end = now_ + SeriesOf(task).duration;
  for (;;) {
    const uint32_t first = program_.successor_begin[task];
    if (program_.successor_begin[task + 1] != first + 1) break;
    const uint32_t next = program_.successors[first].index();
    const TaskKind kind = program_.tasks[next].kind;
    if (kind == TaskKind::kJoin || kind == TaskKind::kFlow || tasks_[next].waiting_for != 1) break;
    const Series series = SeriesOf(next);
    if (interference_ && series.processor != kNone) break;
    tasks_[task].end = end;
    ++tasks_done_;
    tasks_[next].start = end;
    tasks_[next].waiting_for = 0;
    end += series.duration;
    task = next;
  }
  queue_.Schedule(task, end);
}

void Player::StartFlow(uint32_t flow) {
  if (interference_ && interference_->HasParties(flow)) interference_->BeginFlow(flow);
  periods_.Start(flow, now_);
  BeginStep(flow);
}

void Player::EndTask(uint32_t task) {
  tasks_[task].end = now_;
  ++tasks_done_;
  for (uint32_t i = program_.successor_begin[task]; i < program_.successor_begin[task + 1]; ++i) {
    const uint32_t successor = program_.successors[i].index();
    if (--tasks_[successor].waiting_for == 0) agenda_.push_back(successor);
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
    if (IsOfPackets(flow))
      packets_->Begin(flow, what.bytes, now_);
    else
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

// The agenda is empty: works out what goes on from now on, and until when.
void Player::Settle() {
  if (interference_) {
    interference_->Settle(now_);
    for (const auto [task, end] : interference_->delay_ends()) queue_.Schedule(task, end);
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

Simulation Simulate(const Program& program, uint32_t ranks, const SimulationOptions& options) {
  return Player(program, options).Play(ranks);
}

}  // namespace rehearse
