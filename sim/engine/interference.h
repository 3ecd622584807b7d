// What compute and communication cost each other on a processor, and ranks on a host (the model is
// in sim/engine/program.h): how fast each delay runs and when it ends, and by what factor flows are
// slowed.
//
// As with a flow (sim/engine/transfer_network.h), what is left of a delay is updated when its speed
// changes, and only then:
//   left -= speed_old · (now - since),    end = now + round(left / speed_new).
//
// Use: Begin and End as the events of one instant say, then Settle once. Work is done only for the
// processors and hosts that these calls concern. Not thread-safe; refers to the program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/clock.h"
#include "sim/engine/program.h"

namespace rehearse {

class Interference {
 public:
  struct DelayEnd {
    uint32_t delay = 0;
    Time end;
  };
  struct FlowFactor {
    uint32_t flow = 0;
    double factor = 1;
  };

  explicit Interference(const Program& program);

  // Whether the delay (or flow) takes part; otherwise it must not be named below.
  bool OwnsDelay(uint32_t delay) const {
    return !program_.delay_owners.empty() &&
           program_.delay_owners[delay].processor != Program::kNone;
  }
  bool HasParties(uint32_t flow) const {
    return !program_.party_sets.empty() && program_.party_sets[flow] != Program::kNone;
  }

  void BeginDelay(uint32_t delay);
  void EndDelay(uint32_t delay);
  void BeginFlow(uint32_t flow);  // its task, not its bytes
  void EndFlow(uint32_t flow);

  void Settle(Time now);
  // What the last Settle found: delays whose end is new or has moved, and flows whose factor has
  // changed (it is 1 at first), in a deterministic order.
  std::span<const DelayEnd> delay_ends() const { return delay_ends_; }
  std::span<const FlowFactor> flow_factors() const { return flow_factors_; }

 private:
  struct DelayState {
    double left = 0;   // picoseconds at full speed, at `since`
    double speed = 0;  // 0: begun since the last Settle
    Time since;
  };
  struct ProcessorState {
    std::vector<uint32_t> delays;  // that run
    std::vector<uint32_t> flows;   // under way; a party named twice counts twice
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
  void SettleDelays(uint32_t processor, Time now);
  void SettleFlow(uint32_t flow);

  const Program& program_;
  std::vector<DelayState> delays_;
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
