// The inside of Simulate(): state and events of one run. simulate.cc plays, player_report.cc
// reports what has happened. Not thread-safe; refers to the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/flow_run.h"
#include "sim/engine/interference.h"
#include "sim/engine/program.h"
#include "sim/engine/recurrence.h"
#include "sim/engine/simulate.h"
#include "sim/engine/step_periods.h"
#include "sim/engine/task_spans.h"
#include "sim/engine/transfer_network.h"
#include "sim/packets/packet_play.h"

namespace rehearse {

// Plays one program. Whatever an event sets free at once (a task whose predecessors have ended, the
// next step of a flow) goes on the agenda, which is emptied before the rates are settled: joins,
// empty delays and empty steps cascade within their instant, without recursion.
class Player {
 public:
  Player(const Program& program, const SimulationOptions& options);

  Simulation Play(uint32_t ranks);

 private:
  static constexpr uint32_t kNone = FlowRun::kNone;
  static constexpr Time kNotDone = TaskState::kNotDone;

  void PopBatch();
  bool PopPackets();
  bool IsOfPackets(uint32_t flow) const { return packets_ && packets_->Plays(flow); }
  void HandleEvent(uint32_t task);
  void ChangeLinks();
  void WorkOffAgenda();
  void StartTask(uint32_t task);
  void StartDelays(uint32_t task);
  void ScheduleDelays(uint32_t task);
  void StartFlow(uint32_t flow);
  void EndTask(uint32_t task);
  void BeginStep(uint32_t flow);
  void MoveBytes(uint32_t flow);
  void EndStep(uint32_t flow);
  void Settle();
  void ScheduleFlow(uint32_t flow, Time time);

  // In player_recurrence.cc.
  bool HasEnded(uint32_t task) const {
    return tasks_[task].end != kNotDone && tasks_[task].end <= now_;
  }
  void LookForRecurrence();
  std::optional<std::vector<uint64_t>> State();
  bool AddState(size_t rank, std::vector<uint64_t>* state);
  void AddStateOf(uint32_t task, std::vector<uint64_t>* state) const;
  bool AreCopies(uint32_t copies, Time since) const;
  bool IsCopy(uint32_t task, uint32_t before, uint32_t copies) const;
  bool IsCopyOfFlow(const Flow& flow, const Flow& before, uint32_t copies) const;
  bool IsCopyOfTask(TaskId task, TaskId before, uint32_t copies) const;
  bool HaveSameDelays(const Series& a, const Series& b) const;
  uint64_t TransfersLeftOut() const;

  [[noreturn]] void FailBeyondTime() const;
  Series SeriesOf(uint32_t task) const;
  uint32_t LateDelayOf(uint32_t task) const;
  std::string SlownessOf(uint32_t task) const;
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
  std::optional<PacketPlay> packets_;         // only if flows travel as packets
  std::optional<Interference> interference_;  // only if the program has processors
  std::vector<FlowRun> flows_;
  StepPeriods periods_;
  std::vector<TaskState> tasks_;
  RecurrenceSearch recurrence_;
  std::vector<uint32_t> first_unended_;  // by Program::copies, as far as is known
  std::vector<uint32_t> agenda_;         // tasks
  std::vector<uint32_t> batch_;
  size_t next_link_change_ = 0;
  Time now_;
  size_t tasks_done_ = 0;
  SimulationStats stats_;
};

}  // namespace rehearse
