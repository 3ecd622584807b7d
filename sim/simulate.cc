#include "sim/simulate.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/error.h"
#include "sim/event_queue.h"
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
  static constexpr uint32_t kNone = 0xffffffffu;

  enum class Phase : uint8_t {
    kNotStarted,
    kReady,    // on the agenda: the next step may begin
    kLatency,  // an event is pending
    kMoving,   // an event is pending
    kBlocked,  // for the upstream's step
    kDone,
  };
  struct FlowRun {
    uint32_t task = kNone;
    uint32_t upstream = kNone;  // flows
    uint32_t downstream = kNone;
    uint32_t steps_done = 0;
    Phase phase = Phase::kNotStarted;
  };

  void HandleEvent(uint32_t task);
  void WorkOffAgenda();
  void StartTask(uint32_t task);
  void EndTask(uint32_t task);
  void BeginStep(uint32_t flow);
  void MoveBytes(uint32_t flow);
  void EndStep(uint32_t flow);

  void CheckAllDone() const;
  std::string Describe(uint32_t task) const;
  Timeline MakeTimeline(uint32_t ranks);
  std::vector<double> BytesByLink() const;

  const Program& program_;
  EventQueue queue_;
  TransferNetwork network_;
  std::vector<FlowRun> flows_;
  std::vector<uint32_t> waiting_for_;  // per task: predecessors that have not ended
  std::vector<Time> start_;            // per task
  std::vector<Time> end_;              // per task
  std::vector<uint8_t> done_;          // per task
  std::vector<uint32_t> agenda_;       // tasks
  Time now_;
  size_t tasks_done_ = 0;
  SimulationStats stats_;
};

Player::Player(const Program& program, const SimulationOptions& options)
    : program_(program),
      queue_(program.tasks.size()),
      network_(program, options.record_link_loads),
      flows_(program.flows.size()),
      waiting_for_(program.predecessor_count),
      start_(program.tasks.size()),
      end_(program.tasks.size()),
      done_(program.tasks.size(), 0) {
  for (uint32_t task = 0; task < program.tasks.size(); ++task) {
    if (program.tasks[task].kind == TaskKind::kFlow)
      flows_[program.tasks[task].payload].task = task;
  }
  const auto flow_of = [&program](TaskId task) {
    return task.IsSet() ? program.tasks[task.index()].payload : kNone;
  };
  for (size_t flow = 0; flow < flows_.size(); ++flow) {
    flows_[flow].upstream = flow_of(program.flows[flow].upstream);
    flows_[flow].downstream = flow_of(program.flows[flow].downstream);
  }
}

Simulation Player::Play(uint32_t ranks) {
  for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
    if (waiting_for_[task] == 0) agenda_.push_back(task);
  }
  std::vector<uint32_t> batch;
  for (;;) {
    WorkOffAgenda();
    for (const auto [flow, end] : network_.Settle(now_)) queue_.Schedule(flows_[flow].task, end);
    if (queue_.IsEmpty()) break;
    now_ = queue_.PopBatch(&batch);
    stats_.events += batch.size();
    for (const uint32_t task : batch) HandleEvent(task);
  }
  CheckAllDone();
  stats_.solves = network_.solves();
  return {.timeline = MakeTimeline(ranks), .stats = stats_};
}

void Player::HandleEvent(uint32_t task) {
  if (program_.tasks[task].kind == TaskKind::kDelay) {
    EndTask(task);
    return;
  }
  const uint32_t flow = program_.tasks[task].payload;
  if (flows_[flow].phase == Phase::kLatency) {
    MoveBytes(flow);
  } else {
    network_.End(flow);
    EndStep(flow);
  }
}

void Player::WorkOffAgenda() {
  for (size_t i = 0; i < agenda_.size(); ++i) {
    const uint32_t task = agenda_[i];
    const bool continues = program_.tasks[task].kind == TaskKind::kFlow &&
                           flows_[program_.tasks[task].payload].phase == Phase::kReady;
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
  const Task& what = program_.tasks[task];
  switch (what.kind) {
    case TaskKind::kJoin:
      EndTask(task);
      break;
    case TaskKind::kDelay:
      if (program_.delays[what.payload] == Time()) {
        EndTask(task);
      } else {
        queue_.Schedule(task, now_ + program_.delays[what.payload]);
      }
      break;
    case TaskKind::kFlow:
      BeginStep(what.payload);
      break;
  }
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
    run.phase = Phase::kBlocked;
    return;
  }
  const Time latency = program_.flows[flow].latency;
  if (latency == Time()) {
    MoveBytes(flow);
  } else {
    run.phase = Phase::kLatency;
    queue_.Schedule(run.task, now_ + latency);
  }
}

void Player::MoveBytes(uint32_t flow) {
  const Flow& what = program_.flows[flow];
  if (what.bytes > 0) ++stats_.transfers;
  const bool uses_links =
      program_.use_set_begin[what.use_set] != program_.use_set_begin[what.use_set + 1];
  if (what.bytes > 0 && uses_links) {
    flows_[flow].phase = Phase::kMoving;
    network_.Begin(flow);
  } else {
    EndStep(flow);
  }
}

void Player::EndStep(uint32_t flow) {
  FlowRun& run = flows_[flow];
  ++run.steps_done;
  if (run.downstream != kNone && flows_[run.downstream].phase == Phase::kBlocked) {
    flows_[run.downstream].phase = Phase::kReady;
    agenda_.push_back(flows_[run.downstream].task);
  }
  if (run.steps_done < program_.flows[flow].steps) {
    run.phase = Phase::kReady;
    agenda_.push_back(run.task);
  } else {
    run.phase = Phase::kDone;
    EndTask(run.task);
  }
}

void Player::CheckAllDone() const {
  if (tasks_done_ == program_.tasks.size()) return;
  const auto first = std::find(done_.begin(), done_.end(), 0);
  throw InternalError(fmt::format("{} of {} tasks can never end; the first is {}",
                                  program_.tasks.size() - tasks_done_, program_.tasks.size(),
                                  Describe(static_cast<uint32_t>(first - done_.begin()))));
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
  for (const Flow& flow : program_.flows) {
    const double moved = flow.bytes * flow.steps;
    for (uint32_t i = program_.use_set_begin[flow.use_set];
         i < program_.use_set_begin[flow.use_set + 1]; ++i) {
      bytes[program_.uses[i].link.index()] += moved * program_.uses[i].multiplicity;
    }
  }
  return bytes;
}

}  // namespace

Simulation Simulate(const Program& program, uint32_t ranks, const SimulationOptions& options) {
  return Player(program, options).Play(ranks);
}

}  // namespace rehearse
