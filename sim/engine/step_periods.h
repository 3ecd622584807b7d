// Jumps over the steady state of chains of steps: when the same flows do the same things at the
// same distances in time again and again, and nothing else happens to them, a million steps cost no
// more than two.
//
// A group is a set of flows under way that is closed under chain neighbours and shared links (also
// those of their alternatives): what happens to it until one of its flows ends, or something from
// outside touches it, depends on its own state alone. The state of a flow is its phase, how long
// until its event, how fast it moves, what is left of its bytes and since when. If the state of the
// whole group recurs, shifted by a period P in time and by some steps d_v for each flow v (the same
// for neighbours in a chain), it recurs every P from then on, to the last bit, until a flow nears
// its last step:
//   after k periods,   steps_done_v += k·d_v,   every time += k·P.
// The group is "steady" then. Its events are set aside in a queue of their own, so that the horizon
// (the first event that is not a steady group's, or the first time at which a steady group may come
// to the end of a flow) is known at once, and the group jumps over all periods that end before the
// horizon. Nothing can touch it before the horizon; what touches it afterwards dissolves it.
//
// The period is looked for as in Brent's cycle detection: the state is kept at steps 1, 2, 4, ...
// of a leader, the first flow of a chain, and compared after each of its steps.
//
// Use: the simulator says what happens to flows, as below, and calls EndInstant when rates are
// settled and events scheduled. Not thread-safe; refers to everything it is given.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/flow_run.h"
#include "sim/engine/program.h"
#include "sim/engine/transfer_network.h"

namespace rehearse {

class StepPeriods {
 public:
  // Chains of fewer steps are not looked at.
  static constexpr uint32_t kFewestSteps = 32;

  // Marks the leaders in `flows` as watched, unless not `enabled`.
  StepPeriods(const Program& program, std::vector<FlowRun>& flows, TransferNetwork& network,
              EventQueue& queue, bool enabled);

  // While there are no groups, the functions below need not be called.
  bool HasGroups() const { return group_count_ > 0; }

  // The task of the flow starts.
  void Start(uint32_t flow, Time now);
  // The flow has done a step; a last step dissolves its group.
  void EndStep(uint32_t flow, Time now);
  // A flow begins or stops moving bytes, or its end has moved: this concerns the groups on its
  // links, unless it is a member and only does what its group does.
  void Notice(uint32_t flow, Time now) {
    if (group_of_flow_[flow] == kNone) TouchLinks(flow, now);
  }
  // Something outside the group affects the flow.
  void Touch(uint32_t flow, Time now);
  void TouchAll(Time now);

  void EndInstant(Time now);

  // The events of flows that are set aside.
  EventQueue& queue() { return steady_queue_; }
  uint64_t jumped_transfers() const { return jumped_transfers_; }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  struct Snapshot {
    FlowPhase phase = FlowPhase::kNotStarted;
    uint32_t steps_done = 0;
    Time due_in;                     // negative when no event is pending
    TransferNetwork::Motion motion;  // while moving; `since` counts back from now
  };
  struct Group {
    uint32_t leader = kNone;
    std::vector<uint32_t> members;
    std::vector<uint32_t> links;
    std::vector<Snapshot> kept;  // of the members
    Time kept_at;
    uint32_t patience = 1;  // steps of the leader until the state is kept anew
    size_t suspect = 0;     // the member that differed last time
    bool steady = false;
    Time period;                  // steady:
    std::vector<uint32_t> steps;  // of the members, in a period
    Time limit;                   // no flow ends before it
    Time jumped_to;
  };

  void MarkLeaders();
  template <typename Visit>
  void ForEachLink(uint32_t flow, const Visit& visit) const;
  void Look(uint32_t leader, Time now);
  void MakeGroup(uint32_t leader, Time now);
  void Join(Group& group, uint32_t id, uint32_t flow, Time now);
  void JoinLink(Group& group, uint32_t id, uint32_t link, Time now);
  void Dissolve(uint32_t id, Time now);
  void TouchLinks(uint32_t flow, Time now);

  void KeepState(Group& group, Time now);
  Snapshot StateOf(uint32_t flow, Time now) const;
  bool IsBack(Group& group, Time now) const;
  void MakeSteady(Group& group, Time now);
  void FindEarliestLimit();
  uint64_t PeriodsLeft(const Group& group) const;
  void Jump(Group& group, Time now);

  const Program& program_;
  std::vector<FlowRun>& flows_;
  TransferNetwork& network_;
  EventQueue& queue_;
  EventQueue steady_queue_;

  std::vector<uint32_t> group_of_flow_;
  std::vector<uint32_t> group_of_link_;
  std::vector<std::vector<uint32_t>> under_way_;  // per link: flows of watched chains, also done
  std::vector<uint32_t> look_at_step_;            // per flow, for leaders
  std::vector<uint8_t> failures_;  // per flow, for leaders: groups that came to nothing
  std::vector<Group> groups_;
  std::vector<uint32_t> free_groups_;
  size_t group_count_ = 0;
  Time earliest_limit_ = TransferNetwork::kNever;  // of steady groups
  std::vector<uint32_t> stepped_;                  // leaders, in this instant
  uint64_t jumped_transfers_ = 0;
};

}  // namespace rehearse
