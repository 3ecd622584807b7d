#include "workloads/layouts/redistribution.h"

#include <algorithm>
#include <map>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr Seconds kLaunch{20e-6};  // of a collective, including what waits for it

using Steps = std::vector<RedistributionStep>;

double LocalBytes(const Layout& layout, const MatrixShape& shape,
                  const std::vector<uint32_t>& sizes) {
  return static_cast<double>(shape.rows) / static_cast<double>(Pieces(layout, sizes, 0)) *
         static_cast<double>(shape.columns) / static_cast<double>(Pieces(layout, sizes, 1)) *
         shape.element;
}

class Search {
 public:
  Search(const Layout& from, const Layout& to, const MatrixShape& shape,
         const std::vector<uint32_t>& sizes, const std::vector<AxisCost>& costs)
      : from_(from),
        to_(to),
        shape_(shape),
        sizes_(sizes),
        costs_(costs),
        free_(from.size(), true) {
    for (size_t axis = 0; axis < from.size(); ++axis) {
      if (!IsSplit(from[axis])) free_[axis] = from[axis] != to[axis];
    }
    for (const uint8_t dimension : {uint8_t{0}, uint8_t{1}}) {
      const AxesOfLayout a = SplitAxes(from, dimension);
      const AxesOfLayout b = SplitAxes(to, dimension);
      for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) free_[a[i]] = false;
    }
  }

  // This is Dijkstra's algorithm. Open layouts are searched in the order in which they were found
  // instead of being kept in a heap, because there are few of them.
  std::optional<Steps> Run() {
    Reach(from_, {}, Seconds(0), kNobody);
    const uint64_t goal = CodeOf(to_);
    while (true) {
      size_t best = kNobody;
      for (size_t i = 0; i < found_.size(); ++i) {
        if (found_[i].closed) continue;
        if (best == kNobody || found_[i].cost < found_[best].cost) best = i;
      }
      if (best == kNobody) return std::nullopt;
      found_[best].closed = true;
      if (CodeOf(found_[best].layout) == goal) return PathTo(best);
      Expand(best);
    }
  }

 private:
  static constexpr size_t kNobody = static_cast<size_t>(-1);

  struct Found {
    Layout layout;
    RedistributionStep step;  // that led here
    Seconds cost;
    size_t before = kNobody;
    bool closed = false;
  };

  Steps PathTo(size_t at) const {
    Steps steps;
    for (; found_[at].before != kNobody; at = found_[at].before) steps.push_back(found_[at].step);
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  void Reach(const Layout& layout, RedistributionStep step, Seconds cost, size_t before) {
    const auto [it, is_new] = index_.emplace(CodeOf(layout), found_.size());
    if (is_new) {
      found_.push_back({layout, std::move(step), cost, before, false});
    } else if (Found& known = found_[it->second]; !known.closed && cost < known.cost) {
      known.step = std::move(step);
      known.cost = cost;
      known.before = before;
    }
  }

  bool Divides(const Layout& layout) const {
    return shape_.rows % Pieces(layout, sizes_, 0) == 0 &&
           shape_.columns % Pieces(layout, sizes_, 1) == 0;
  }

  // Reaches the step's layout if it divides the matrix, at the cost of the way so far and the step.
  void Try(size_t at, RedistributionStep step) {
    if (!Divides(step.after)) return;
    const Seconds cost = found_[at].cost + CostOf(step, found_[at].layout, shape_, sizes_, costs_);
    const Layout after = step.after;
    Reach(after, std::move(step), cost, at);
  }

  static void Push(Layout* layout, uint8_t dimension, const std::vector<uint32_t>& axes) {
    auto level = static_cast<uint8_t>(SplitAxes(*layout, dimension).size());
    for (const uint32_t axis : axes) (*layout)[axis] = S(dimension, level++);
  }

  // Partial sums and copies of `state` that become splits of `dimension` next: each axis alone, and
  // the runs of axes that the goal wants there.
  std::vector<std::vector<uint32_t>> Runs(const Layout& layout, Placement state,
                                          uint8_t dimension) const {
    std::vector<std::vector<uint32_t>> runs;
    for (uint32_t axis = 0; axis < layout.size(); ++axis) {
      if (free_[axis] && layout[axis] == state) runs.push_back({axis});
    }
    const AxesOfLayout now = SplitAxes(layout, dimension);
    const AxesOfLayout goal = SplitAxes(to_, dimension);
    if (now.size() > goal.size() || !std::equal(now.begin(), now.end(), goal.begin())) return runs;
    std::vector<uint32_t> run;
    for (size_t i = now.size(); i < goal.size() && layout[goal[i]] == state; ++i) {
      run.push_back(goal[i]);
      if (run.size() > 1) runs.push_back(run);
    }
    return runs;
  }

  void Expand(size_t at) {
    const Layout layout = found_[at].layout;
    AddUp(at, layout);
    for (const uint8_t dimension : {uint8_t{0}, uint8_t{1}}) {
      for (const Placement& state : {P(), B()}) {
        const Move move = state == P() ? Move::kReduceScatter : Move::kSlice;
        for (std::vector<uint32_t>& run : Runs(layout, state, dimension)) {
          Layout after = layout;
          Push(&after, dimension, run);
          Try(at, {move, std::move(run), dimension, dimension, after});
        }
      }
      Pop(at, layout, dimension);
    }
  }

  // Tries all-reduces of every set of free axes with partial sums.
  void AddUp(size_t at, const Layout& layout) {
    std::vector<uint32_t> partial;
    for (const uint32_t axis : PartialAxes(layout)) {
      if (free_[axis]) partial.push_back(axis);
    }
    for (uint32_t set = (1u << partial.size()) - 1; set > 0; --set) {
      RedistributionStep step{Move::kAllReduce, {}, 0, 0, layout};
      for (size_t i = 0; i < partial.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        step.axes.push_back(partial[i]);
        step.after[partial[i]] = B();
      }
      Try(at, std::move(step));
    }
  }

  // Tries all-gathers of the innermost axes of a dimension, and exchanges of them with the other
  // one.
  void Pop(size_t at, const Layout& layout, uint8_t dimension) {
    const AxesOfLayout axes = SplitAxes(layout, dimension);
    const auto other = static_cast<uint8_t>(1 - dimension);
    for (size_t first = axes.size(); first-- > 0 && free_[axes[first]];) {
      const std::vector<uint32_t> run(axes.begin() + static_cast<std::ptrdiff_t>(first),
                                      axes.end());
      Layout gathered = layout;
      for (const uint32_t axis : run) gathered[axis] = B();
      Layout exchanged = gathered;
      Push(&exchanged, other, run);
      Try(at, {Move::kAllGather, run, dimension, dimension, gathered});
      Try(at, {Move::kAllToAll, run, dimension, other, exchanged});
    }
  }

  const Layout& from_;
  const Layout& to_;
  const MatrixShape& shape_;
  const std::vector<uint32_t>& sizes_;
  const std::vector<AxisCost>& costs_;
  std::vector<bool> free_;  // by axis: may change
  std::vector<Found> found_;
  std::map<uint64_t, size_t> index_;  // by code of the layout
};

}  // namespace

Seconds CostOf(const RedistributionStep& step, const Layout& before, const MatrixShape& shape,
               const std::vector<uint32_t>& axis_sizes, const std::vector<AxisCost>& costs) {
  if (step.move == Move::kNone || step.move == Move::kSlice) return Seconds(0);
  double ranks = 1;
  AxisCost cost{Seconds(0), 0};
  for (const uint32_t axis : step.axes) {
    const AxisCost own = costs.empty() ? AxisCost() : costs[axis];
    ranks *= axis_sizes[axis];
    cost.alpha = std::max(cost.alpha, own.alpha);
    cost.beta = std::max(cost.beta, own.beta);
  }
  const bool gathers = step.move == Move::kAllGather;
  const double bytes = LocalBytes(gathers ? step.after : before, shape, axis_sizes);
  const double rounds = step.move == Move::kAllReduce ? 2 : 1;
  return kLaunch +
         rounds * ((ranks - 1) * cost.alpha + Seconds((ranks - 1) / ranks * bytes * cost.beta));
}

std::optional<std::vector<RedistributionStep>> ShortestPath(const Layout& from, const Layout& to,
                                                            const MatrixShape& shape,
                                                            const std::vector<uint32_t>& axis_sizes,
                                                            const std::vector<AxisCost>& costs) {
  CHECK_EQ(from.size(), axis_sizes.size());
  CHECK_EQ(to.size(), axis_sizes.size());
  if (from == to) return Steps{};
  return Search(from, to, shape, axis_sizes, costs).Run();
}

}  // namespace rehearse
