// The transfer network: which flows move bytes now, at what rate, and when each will be done.
//
// Model: a flow that moves progresses at speed s, the max-min fair rate of all that move at the
// moment (sim/engine/max_min.h) times its own factor. What is left of its bytes is accounted for
// when its speed changes,
//   left -= s_old · (now - since),    end = now + round(left / s_new),
// and only then: a flow whose speed comes out the same, to the last bit, keeps its end. So its end
// does not depend on what happens elsewhere. Half picoseconds are rounded up, even when rounding
// errors have put them below by up to kRelativeSlack of the flow's bytes.
//
// Three things keep the work to what an event can have changed: links that hold nobody back are
// left out, flows that come and go together are solved once, and where others move already, rates
// are brought up to date from the first level that the event has changed. sim/engine/README.md
// explains them on an example, with the words that are used here; the rates are those of max_min.h,
// to the last bit.
//
// Use: Begin, End, SetFactor and SetCapacity as the events of one instant say, then Settle once.
// Invariant after Settle, checked in debug builds: no link carries more than its capacity, and each
// flow is held back by a full link on which none is faster. The flows of an intact component either
// all move or all rest, and share no link that counts with others. Not thread-safe; refers to the
// program.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/clock.h"
#include "sim/engine/level_queue.h"
#include "sim/engine/link_relevance.h"
#include "sim/engine/load_recorder.h"
#include "sim/engine/load_sum.h"
#include "sim/engine/max_min.h"
#include "sim/engine/program.h"
#include "sim/engine/timeline.h"

namespace rehearse {

class TransferNetwork {
 public:
  // Flows are named by their position in Program::flows.
  struct FlowEnd {
    uint32_t flow = 0;
    Time end;  // kNever: it stands still on a failed link
  };
  struct Recording {
    bool loads = false;
    bool bottlenecks = false;
  };
  // What the future of a flow depends on while it moves and nobody's rate changes.
  struct Motion {
    double speed = 0;
    double left = 0;  // bytes at `since`
    Time since;
    uint32_t use_set = 0;

    friend bool operator==(const Motion&, const Motion&) = default;
  };

  static constexpr double kRelativeSlack = 0x1p-48;
  static constexpr Time kNever = Time(std::numeric_limits<int64_t>::max());

  TransferNetwork(const Program& program, const Recording& recording);
  explicit TransferNetwork(const Program& program) : TransferNetwork(program, Recording()) {}

  // The flow starts to move its bytes (more than zero, over at least one link); it must not be
  // moving.
  void Begin(uint32_t flow);
  // The flow has moved its bytes: the end that Settle last gave is now.
  void End(uint32_t flow, Time now);
  // The flow moves at `factor` (more than 0) times its rate from now on, also in later steps.
  void SetFactor(uint32_t flow, double factor);
  // From now on; 0: the link has failed.
  void SetCapacity(uint32_t link, double capacity);
  double CapacityOf(uint32_t link) const { return capacity_[link]; }  // bytes per second, now
  // Solves what the calls since the last Settle have changed. Returns every flow whose end is new
  // or has moved, in a deterministic order; valid until the next call.
  std::span<const FlowEnd> Settle(Time now);

  // Between Settles. Jump says that the flow has done so many more steps over its present links in
  // that time and is where it was in its step (sim/engine/step_periods.h).
  Motion MotionOf(uint32_t flow) const;
  void Jump(uint32_t flow, Time by, uint64_t steps);

  // The links on which the flow's speed can depend now, and on which it can change that of others.
  std::span<const LinkUse> RelevantUses(uint32_t flow) const {
    return relevance_.All(flows_[flow].use_set);
  }
  const LinkRelevance& relevance() const { return relevance_; }
  // The failed link on which the flow stands still; unset when it does not.
  LinkId StuckOn(uint32_t flow) const;
  // How many of its bytes the flow has moved over its alternative.
  double BytesOnAlternative(uint32_t flow) const {
    return on_alternative_.empty() ? 0.0 : on_alternative_[flow];
  }

  // Components solved, and times that rates were brought up to date.
  uint64_t solves() const { return solves_; }
  // The load of a link over time; empty unless recorded.
  std::vector<LinkLoad> TakeLoads(uint32_t link);
  // Null unless recorded.
  const BottleneckRecorder* bottlenecks() const {
    return records_.bottlenecks ? &*records_.bottlenecks : nullptr;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr Time kUnknown = Time(-1);

  struct FlowState {
    double rate = 0;   // valid while moving, and in an intact component while dormant
    double speed = 0;  // since `since`: rate · factor
    double left = 0;   // bytes at `since`
    Time since;
    Time full_duration = kUnknown;  // of all its bytes at `speed`
    uint32_t use_set = 0;
    uint32_t component = kNone;
    uint32_t listing = 0;  // counts how often it has left the lists of its links
    uint32_t visit = 0;    // the last walk that came by
    bool moving = false;
    bool listed = false;   // in the lists of its links
    bool fresh = false;    // moving since this instant
    bool ended = false;    // was moving until this instant
    bool changed = false;  // is in Pending::flows
    bool stuck = false;    // would move, but its links have failed
  };
  // On the list of a link; void when the flow's `listing` has moved on.
  struct Listed {
    uint32_t flow;
    uint32_t listing;
    uint32_t multiplicity;
  };
  struct LinkState {
    std::vector<Listed> listed;
    uint32_t visit = 0;
    uint32_t local = 0;        // position in the walk or in the replay that came by last
    bool left_out = false;     // lazy, and not overloaded
    bool watched = false;      // lazy, and in LazyLoads::watched
    uint16_t slack = 0;        // what it has cost since it was last full
    uint32_t tidy_length = 8;  // of `listed`, when void entries were last removed
  };
  struct Component {
    uint32_t flows = 0;
    uint32_t moving = 0;  // counted while intact
    bool intact = false;  // the rates of its flows are those of all of them moving
  };
  // A component is there as long as a flow has its number, and then the number is free.
  class Components {
   public:
    Component& operator[](uint32_t id) { return components_[id]; }
    bool IsIntact(uint32_t id) const { return id != kNone && components_[id].intact; }
    // An intact one of so many flows, all of which move.
    uint32_t Make(uint32_t flows) {
      if (free_.empty()) {
        free_.push_back(static_cast<uint32_t>(components_.size()));
        components_.emplace_back();
      }
      const uint32_t id = free_.back();
      free_.pop_back();
      components_[id] = {.flows = flows, .moving = flows, .intact = true};
      return id;
    }
    // A flow leaves it: what it knows of the others is no longer all of them.
    void Leave(uint32_t id) {
      components_[id].intact = false;
      if (--components_[id].flows == 0) free_.push_back(id);
    }

   private:
    std::vector<Component> components_;
    std::vector<uint32_t> free_;
  };

  // What the calls since the last Settle have changed; Settle leaves it empty.
  struct Pending {
    std::vector<uint32_t> flows;    // begun or ended
    std::vector<uint32_t> factors;  // of these flows
    std::vector<uint32_t> links;    // whose flows have to be solved again
    bool routes = false;            // a link has failed or recovered

    bool IsEmpty() const { return flows.empty() && factors.empty() && links.empty() && !routes; }
  };
  // What one Settle finds out, until the next.
  struct Instant {
    std::vector<uint32_t> begun;   // of Pending::flows: those that move at an unknown rate
    std::vector<uint32_t> left;    // of Pending::flows: those that have left others behind
    std::vector<uint32_t> solved;  // flows with a new solution
    std::vector<FlowEnd> ends;
  };
  // Walks and replays are numbered; flows and links note the last one that came by.
  struct Visits {
    uint32_t last = 0;
    uint32_t first = 0;  // of this Settle
  };
  // A component while it is found and solved: a problem of max_min.h, with links numbered as they
  // are met.
  struct Walk {
    std::vector<uint32_t> flows;
    std::vector<uint32_t> links;
    std::vector<double> capacities;
    std::vector<uint32_t> use_begin;
    std::vector<LinkUse> uses;
    std::vector<double> rates;
    MaxMinSolver solver;
  };
  // A link whose filling is being replayed.
  struct Filling {
    uint32_t link = 0;
    uint32_t count = 0;
    Listed* flows = nullptr;  // those that grow or freeze later, first in the list of the link
    uint64_t unfrozen = 0;    // sum of their multiplicities
    double load = 0;          // of the others
    double first_level = LevelQueue::kNever;  // where it would be full if none froze before
    double level = LevelQueue::kNever;        // where it will be full, never more than that
    double old_full = 0;                      // where it was full; 0: nowhere
    bool few = false;    // flows: `level` is exact while their rates are what they are
    bool moved = false;  // is in Replay::moved, or need not be
  };
  struct OldRate {
    uint32_t flow;
    double rate;
  };
  // The links that a change reaches, while their fillings are replayed.
  struct Replay {
    std::vector<Filling> fillings;  // the first `count`
    uint32_t count = 0;
    LevelQueue halts;                // per filling: where it has to be looked at next
    std::vector<uint32_t> moved;     // fillings some of whose flows have another rate now
    std::vector<uint32_t> set_free;  // fillings of links that are no longer full at this level
    std::vector<OldRate> old_rates;  // of the flows whose rates have changed
    std::vector<std::pair<double, uint32_t>> freezing;  // rate, multiplicity
  };
  // Of programs with lazy links: the load of each that is left out is the sum over its flows of
  // what is booked for them, at full rates.
  struct LazyLoads {
    std::vector<LoadSum> load;      // per link
    std::vector<double> rate;       // per flow: what is booked
    std::vector<uint32_t> watched;  // links whose load has changed, or that were solved
  };
  // What is recorded, if it is asked for.
  struct Records {
    std::optional<LoadRecorder> loads;
    std::optional<BottleneckRecorder> bottlenecks;
    std::vector<LinkId> holder;  // per flow, with bottlenecks: by the last solution
  };

  void MarkChanged(uint32_t flow);

  // Routes: only in programs with link changes.
  std::span<const LinkUse> UsesOf(uint32_t use_set) const;
  LinkId FailedLinkOf(uint32_t use_set) const;
  void ChooseRoutes(Time now);
  void ChooseRoute(uint32_t flow, Time now);
  void LeaveRoute(uint32_t flow, Time now);
  void CreditAlternative(uint32_t flow, double bytes);

  // Lists and components.
  void CollectSeeds();
  void Enlist(uint32_t flow);
  void Tidy(LinkState& link);
  void Prune(uint32_t link);
  void Delist(uint32_t flow);
  void LeaveComponent(uint32_t flow);
  bool Visit(uint32_t flow);

  // Rates of components.
  void SolveComponents();
  void SolveComponent();
  bool WalkFrom(uint32_t flow, size_t most);
  bool AddUse(const LinkUse& use, size_t most);
  void SolveMembers();
  void MakeComponent();
  void NoteHolder(uint32_t flow);
  void CheckShares() const;  // does nothing in release builds

  // Rates brought up to date, in transfer_rates.cc.
  void UpdateRates();
  void FillAgain();
  void Halt(uint32_t index, double level);
  void HaltNext(uint32_t index, double level);
  void Refill(uint32_t link);
  void HaltWhereMoved(double level);
  double FullLevel(const Filling& filling) const;
  void Freeze(Filling& filling, double below);
  void SlowDown(uint32_t index, double level);
  void SetFree(uint32_t index, double level);
  void SetRate(uint32_t flow, double rate);
  void KeepNewRates();

  // Lazy links.
  void Book(uint32_t flow, double rate);
  double ShareOf(uint32_t link, uint32_t multiplicity) const;
  void Watch(uint32_t link);
  void TakeInOverloadedLinks();
  void LeaveOutSlackLinks();

  // What the rates mean.
  void AccountFor(uint32_t flow, Time now);
  void ApplySpeed(uint32_t flow, Time now);
  Time Duration(uint32_t flow, double left, double speed) const;
  double FactorOf(uint32_t flow) const { return factor_.empty() ? 1.0 : factor_[flow]; }
  void Record(Time now);

  // What is given. Capacities are those of now.
  const Program& program_;
  const LinkRelevance relevance_;
  std::vector<double> capacity_;        // per link
  std::vector<double> factor_;          // per flow; empty: 1
  std::vector<double> on_alternative_;  // per flow: bytes; empty: no alternatives

  // The solution, which holds between Settles.
  std::vector<FlowState> flows_;
  std::vector<LinkState> links_;
  std::vector<double> full_;  // per link: the rate of those that it holds back, 0: it holds none
  Components components_;
  LazyLoads lazy_;
  size_t moving_ = 0;  // flows

  // How it is brought up to date.
  Pending pending_;
  Instant instant_;
  Visits visits_;
  Walk walk_;
  Replay replay_;
  uint64_t solves_ = 0;

  Records records_;
};

}  // namespace rehearse
