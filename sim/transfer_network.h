// The transfer network: which flows move bytes now, at what rate, and when each will be done.
//
// Model (fluid, DESIGN section 3): a flow that moves progresses at the max-min fair rate r of all
// that move at the moment (sim/max_min.h). What is left of its bytes is accounted for when its rate
// changes,
//   left -= r_old · (now - since),    end = now + round(left / r_new),
// and only then: a flow whose rate comes out the same, to the last bit, keeps its end. So its end
// does not depend on what happens elsewhere. Halves of a picosecond are rounded up, also when
// rounding errors have put them up to kRelativeSlack of the flow's bytes below.
//
// Flows are connected when they share a link; only components whose set of moving flows has changed
// are solved again. Components are found by walking from the changed flows over links to the flows
// on them. A component all of whose flows have stopped lies dormant: when the same flows move again
// together, as in the next step of a ring, its rates still hold and nothing is walked or solved.
//
// Use: Begin and End as the events of one instant say, then Settle once. Invariant after Settle:
// every moving flow is in an intact component, whose rates are those of the moving flows; the flows
// of an intact component either all move or all rest. Not thread-safe; refers to the program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/clock.h"
#include "sim/max_min.h"
#include "sim/program.h"
#include "sim/timeline.h"

namespace rehearse {

class TransferNetwork {
 public:
  // Flows are named by their position in Program::flows.
  struct FlowEnd {
    uint32_t flow;
    Time end;
  };

  static constexpr double kRelativeSlack = 0x1p-48;

  TransferNetwork(const Program& program, bool record_loads);

  // The flow starts to move its bytes (more than zero, over at least one link); it must not be
  // moving.
  void Begin(uint32_t flow);
  // The flow has moved all its bytes: the end that Settle told last is now.
  void End(uint32_t flow);
  // Solves what the calls since the last Settle have changed. Returns every flow whose end is new
  // or has moved, in a deterministic order; valid until the next call.
  std::span<const FlowEnd> Settle(Time now);

  uint64_t solves() const { return solves_; }  // of components
  // The load of a link over time; empty unless recorded.
  std::vector<LinkLoad> TakeLoads(uint32_t link);

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  struct FlowState {
    double rate = 0;  // valid while moving, and in an intact component while dormant
    double left = 0;  // bytes at `since`
    Time since;
    Time full_duration;          // of all its bytes at `rate`
    uint32_t component = kNone;  // kNone: not in the lists of its links
    uint32_t listing = 0;        // counts how often it has left those lists
    uint32_t visit = 0;          // the last Settle that walked over it
    bool moving = false;
    bool fresh = false;    // moving since this instant
    bool changed = false;  // is in changed_
  };
  // On the list of a link; void when the flow's `listing` has moved on.
  struct Listed {
    uint32_t flow;
    uint32_t listing;
  };
  struct LinkState {
    std::vector<Listed> listed;
    uint32_t visit = 0;
    uint32_t local = 0;  // position in the problem being solved
  };
  struct Component {
    uint32_t flows = 0;
    uint32_t moving = 0;  // counted while intact
    bool intact = false;  // the rates of its flows are those of all of them moving
  };

  std::span<const LinkUse> UsesOf(uint32_t flow) const;
  bool IsIntact(uint32_t component) const;

  void MarkChanged(uint32_t flow);
  void Enlist(uint32_t flow);
  void CollectSeeds();
  void Prune(uint32_t link);
  void LeaveComponent(uint32_t flow);
  void Visit(uint32_t flow);
  void SolveComponentOf(uint32_t flow, Time now);
  void ApplyRate(uint32_t flow, double rate, Time now);
  Time Duration(uint32_t flow, double left, double rate) const;
  void Restart(uint32_t flow, Time now);
  void RecordRest(uint32_t flow, Time now);
  void Record(uint32_t link, Time now, double load);

  const Program& program_;
  std::vector<double> capacity_;  // per link
  std::vector<FlowState> flows_;
  std::vector<LinkState> links_;
  std::vector<Component> components_;
  std::vector<uint32_t> free_components_;

  std::vector<uint32_t> changed_;  // flows begun or ended since the last Settle
  std::vector<uint32_t> seeds_;    // those of them from which to walk
  std::vector<FlowEnd> ends_;
  uint32_t visit_ = 0;
  uint64_t solves_ = 0;

  // The component being solved, with links numbered as they are met.
  std::vector<uint32_t> members_;
  std::vector<uint32_t> member_links_;
  std::vector<double> capacities_;
  std::vector<uint32_t> use_begin_;
  std::vector<LinkUse> uses_;
  std::vector<double> rates_;
  MaxMinSolver solver_;

  bool record_loads_;
  std::vector<double> solved_load_;           // per link, of the last solution; when recorded
  std::vector<std::vector<LinkLoad>> loads_;  // per link; when recorded
};

}  // namespace rehearse
