// When each rank of a timeline computes and communicates, added up over ranks, roles and axes.
//
// An op is active from begin to end; one on a communicator of one rank, or that takes no time,
// counts as nothing. A moment of a rank counts as compute if any kernel runs, and as exposed
// communication if only transfers are active.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/report/result.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// 64 bits hold 106 days of picoseconds: enough for one rank, not for the sum over 100,000 of them.
__extension__ using WideTime = __int128;

constexpr uint32_t kComputeLane = Id<CommunicatorTag>::kNone;

// Times summed over ranks, in picoseconds.
class ActivitySums {
 public:
  // From `at` on, one op more (or less) is active on `lane`: an axis, or kComputeLane.
  struct Edge {
    int64_t at;
    uint32_t lane;
    int32_t change;
  };
  // A piece of a rank's time that stands for several.
  struct Window {
    int64_t begin = 0;
    int64_t end = 0;
    uint32_t times = 1;
  };

  explicit ActivitySums(size_t axes)
      : active_(axes, 0), communication_on_(axes, 0), exposed_on_(axes * (axes + 1), 0) {}

  // Adds one rank, `weight` times. `edges` are ordered by time; they end up as they began, with
  // nothing active. Windows are disjoint and in order.
  void AddRank(const std::vector<Edge>& edges, uint32_t weight, const std::vector<Window>& windows);

  WideTime compute() const { return compute_; }
  WideTime communication() const { return communication_; }
  WideTime exposed() const { return exposed_; }
  WideTime communication_on(size_t axis) const { return communication_on_[axis]; }

  // The axis's share of the exposed time. What was exposed together with n-1 others is kept apart
  // for each n, so that nothing is rounded before this division.
  double exposed_on(size_t axis) const;

 private:
  void AddInterval(WideTime length, bool computing, size_t axes_active);

  uint32_t weight_ = 1;          // of the rank that is being added
  std::vector<int32_t> active_;  // ops active on each axis
  WideTime compute_ = 0;
  WideTime communication_ = 0;
  WideTime exposed_ = 0;
  std::vector<WideTime> communication_on_;
  std::vector<WideTime> exposed_on_;  // [axis][axes active at the same time]
};

// Times of one role's ranks.
struct RoleSums {
  uint32_t ranks = 0;
  WideTime compute = 0;
  WideTime exposed = 0;
};

// Goes through the spans of a timeline once, rank by rank.
class StepActivity {
 public:
  // `last_ops` are, by role, the last ops that count; empty: all do. All must outlive this.
  StepActivity(const Schedule& schedule, const Timeline& timeline, const SummaryOptions& options,
               const std::vector<uint32_t>& last_ops);

  // Adds those of all ranks that are there; called once.
  void AddRanks(const SpansByRank& spans);

  const ActivitySums& sums() const { return sums_; }
  const std::vector<RoleSums>& of_role() const { return of_role_; }
  // How often the op, as its role keeps it, runs on an axis, over all ranks; 0 if it computes.
  uint64_t RunsOnAxis(size_t role, size_t op) const {
    return lanes_[role][op].lane == kComputeLane ? 0 : runs_[role][op];
  }
  uint32_t AxisOf(size_t role, size_t op) const { return lanes_[role][op].lane; }

 private:
  // What each op of each role does to the sums: the lane it is active on, or nothing when it cannot
  // be active at all (a communicator of one rank).
  struct OpLane {
    bool counts = false;
    uint32_t lane = kComputeLane;
  };
  // What a span of a role shows: an op as the role keeps it, so many times.
  struct Shown {
    uint32_t op = 0;
    uint32_t times = 1;
  };

  static std::vector<std::vector<OpLane>> LanesOf(const Schedule& schedule);
  void AddRank(uint32_t role_index, std::span<const Span> spans, uint32_t weight);
  void ShowRole(uint32_t role_index);
  void FindWindows(uint32_t role_index, std::span<const Span> spans);
  void FindEdges(uint32_t role_index, std::span<const Span> spans, uint32_t weight);

  const Schedule& schedule_;
  const Timeline& timeline_;
  const std::vector<std::vector<Time>>& periods_;  // empty: repeated ops are shown each time
  const std::vector<uint32_t>& last_ops_;
  const std::vector<std::vector<OpLane>> lanes_;  // by role and op
  std::vector<std::vector<uint64_t>> runs_;       // by role and op, over all ranks
  ActivitySums sums_;
  std::vector<RoleSums> of_role_;

  // Of the rank that is being added.
  uint32_t role_ = 0xffffffffu;
  std::vector<Shown> shown_;  // by position of a span in a rank of that role
  std::vector<std::vector<ActivitySums::Edge>> streams_;
  std::vector<ActivitySums::Window> windows_;
};

}  // namespace rehearse
