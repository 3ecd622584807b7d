// What compute and communication cost each other on a processor, and ranks on a host (the model is
// in sim/engine/program.h): how fast each delay runs and when it ends, and by what factor flows are
// slowed.
//
// As with a flow (sim/engine/transfer_network.h), what is left of a delay is updated when its speed
// changes, and only then:
//   left -= speed_old · (now - since),    end = now + round(left / speed_new).
// While nothing slows its processor, the delays of a series follow one another at their own pace,
// and only the end of the last one needs an event: which of them runs is worked out when something
// begins to slow it.
//
// Use: Begin and End as the events of one instant say, then Settle once. Work is done only for the
// processors and hosts that these calls concern. Not thread-safe; refers to the program.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/clock.h"
#include "sim/engine/program.h"

namespace rehearse {

class Interference {
 public:
  // When the delay that the task has come to will have ended, or the whole series.
  struct DelayEnd {
    uint32_t task = 0;
    Time end;
  };
  struct FlowFactor {
    uint32_t flow = 0;
    double factor = 1;
  };

  explicit Interference(const Program& program);

  // Whether the flow takes part; otherwise it must not be named below, nor may delays without a
  // processor.
  bool HasParties(uint32_t flow) const {
    return !program_.party_sets.empty() && program_.party_sets[flow] != Program::kNone;
  }

  // The task is of this series; not all of its delays are empty.
  void BeginDelays(uint32_t task, const Series& series, Time now);
  // The end that Settle last gave is now. Returns whether the last delay has ended; if not, the
  // task goes on. `kept` then says where the ends of its delays are to be found, if any but the
  // last has been slowed.
  bool EndDelay(uint32_t task, uint32_t processor, Time now, uint32_t* kept);
  // The ends that are kept, once everything has ended.
  std::vector<Time> TakeEnds() { return std::move(ends_); }
  // How far the task is: what its future depends on, beside the time and what is under way.
  struct Progress {
    uint32_t delay = 0;
    bool undisturbed = false;
    double left = 0;
    double speed = 0;
    Time since;
    Time end;
  };
  Progress ProgressOf(uint32_t task, uint32_t processor) const;
  // Which of the task's delays goes on beyond the clock's range.
  uint32_t LateDelay(uint32_t task, uint32_t processor) const;
  void BeginFlow(uint32_t flow);  // its task, not its bytes
  void EndFlow(uint32_t flow);

  void Settle(Time now);
  // What the last Settle found: delays whose end is new or has moved, and flows whose factor has
  // changed (it is 1 at first), in a deterministic order.
  std::span<const DelayEnd> delay_ends() const { return delay_ends_; }
  std::span<const FlowFactor> flow_factors() const { return flow_factors_; }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  // A task's delays, and how far the one is that runs.
  struct Running {
    uint32_t task = 0;
    uint32_t first = 0;
    uint32_t last = 0;
    uint32_t delay = 0;
    uint32_t kept = kNone;     // from there on in ends_: when they ended, once one was slowed
    bool undisturbed = false;  // the event is the end of the last one
    double left = 0;           // of the one that runs: picoseconds at full speed, at `since`
    double speed = 0;          // 0: begun since the last Settle
    Time since;
    Time end;    // of the one that runs, at this speed
    Time begin;  // of the first
  };
  struct ProcessorState {
    std::vector<Running> running;
    std::vector<uint32_t> flows;  // under way; a party named twice counts twice
    bool touched = false;
  };
  struct HostState {
    std::vector<uint32_t> processors;
    uint64_t active = 0;
    double share = 1;  // of a core that each active task gets
    bool touched = false;
  };

  std::span<const uint32_t> PartiesOf(uint32_t flow) const;
  void Touch(uint32_t processor);
  void ChangeActive(uint32_t processor, int change);
  void TouchProcessorsOfHosts();
  double ShareOf(uint32_t processor) const;
  size_t PlaceOf(uint32_t task, uint32_t processor) const;
  void Enter(Running& running, uint32_t delay) const;
  void Pass(Running& running, Time now);
  void PassAllUntil(Running& running, Time now);
  void KeepEnds(Running& running);
  Time DurationAfter(const Running& running) const;
  void SettleDelays(uint32_t processor, Time now);
  void SettleFlow(uint32_t flow);

  const Program& program_;
  std::vector<Time> ends_;
  std::vector<double> factors_;  // per flow
  std::vector<uint8_t> flow_touched_;
  std::vector<ProcessorState> processors_;
  std::vector<HostState> hosts_;
  bool slows_flows_ = false;  // hosts or slowdowns of processors exist

  std::vector<uint32_t> touched_;
  std::vector<uint32_t> touched_hosts_;
  std::vector<uint32_t> touched_flows_;
  std::vector<DelayEnd> delay_ends_;
  std::vector<FlowFactor> flow_factors_;
};

}  // namespace rehearse
