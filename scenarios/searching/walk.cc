#include "scenarios/searching/walk.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/threads.h"

namespace rehearse {
namespace {

// Where conditions are narrow, most points are refused.
constexpr uint64_t kMostRefused = 10'000'000;

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  uint32_t Below(size_t count) { return static_cast<uint32_t>(engine_() % count); }
  double Unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

struct HashOfPoint {
  size_t operator()(const SpacePoint& point) const {
    Fnv1a hash;
    for (const uint32_t choice : point) hash.Add(uint64_t{choice});
    return hash.hash();
  }
};

SpacePoint RandomPoint(const SearchSpace& space, Dice& dice) {
  SpacePoint point(space.axes.size());
  for (size_t i = 0; i < point.size(); ++i) point[i] = dice.Below(space.axes[i].choices.size());
  return point;
}

// The walk from one start.
class Walker {
 public:
  Walker(const SearchSpace& space, const WalkOptions& options, uint32_t start, uint64_t evaluations,
         const CostOfPoint& cost, const std::function<bool()>& is_stopped,
         const AllowsPoint& is_allowed, const SpacePoint* from)
      : space_(space),
        options_(options),
        start_(start),
        evaluations_(evaluations),
        cost_(cost),
        is_stopped_(is_stopped),
        is_allowed_(is_allowed),
        from_(from),
        dice_(options.seed * 1'000'003 + start) {
    for (size_t i = 0; i < space.axes.size(); ++i)
      if (space.axes[i].choices.size() > 1) open_.push_back(i);
  }

  void Go() {
    if (!FindStart() || open_.empty()) return;
    options_.method == WalkMethod::kDescent ? Descend() : Wander();
  }

 private:
  bool IsOver() const { return seen_.size() >= evaluations_ || is_stopped_(); }

  std::optional<double> Cost(const SpacePoint& point) {
    const auto seen = seen_.find(point);
    if (seen != seen_.end()) return seen->second;
    return seen_[point] = cost_(point, start_);
  }

  bool FindStart() {
    while (!IsOver()) {
      const SpacePoint* const given = std::exchange(from_, nullptr);
      at_ = given != nullptr ? *given : RandomPoint(space_, dice_);
      if (!is_allowed_(at_)) {
        if (++refused_ > kMostRefused) return false;
        continue;
      }
      // In a small space, the same points come up again and again.
      if (++drawn_ > 1000 + 100 * evaluations_) return false;
      if (const auto cost = Cost(at_)) {
        cost_here_ = *cost;
        return true;
      }
    }
    return false;
  }

  void Descend() {
    // When it gets stuck, it begins again elsewhere, as long as evaluations are left.
    do {
      size_t unchanged = 0;
      for (size_t turn = 0; unchanged < open_.size() && !IsOver(); ++turn) {
        unchanged = TakeBestChoice(open_[turn % open_.size()]) ? 0 : unchanged + 1;
      }
    } while (FindStart());
  }

  bool TakeBestChoice(size_t axis) {
    SpacePoint best = at_;
    double least = cost_here_;
    for (uint32_t choice = 0; choice < space_.axes[axis].choices.size() && !IsOver(); ++choice) {
      SpacePoint other = at_;
      other[axis] = choice;
      if (!is_allowed_(other)) continue;
      const std::optional<double> cost = Cost(other);
      if (!cost || *cost >= least) continue;
      least = *cost;
      best = other;
    }
    const bool has_changed = best != at_;
    at_ = best;
    cost_here_ = least;
    return has_changed;
  }

  void Wander() {
    // A step may find a point that is known and costs nothing: the number of steps is limited too.
    const uint64_t most_steps = 20 * evaluations_;
    for (uint64_t step = 0; step < most_steps && !IsOver(); ++step) {
      const size_t axis = open_[dice_.Below(open_.size())];
      SpacePoint other = at_;
      other[axis] = dice_.Below(space_.axes[axis].choices.size() - 1);
      if (other[axis] >= at_[axis]) ++other[axis];
      const double chance = dice_.Unit();
      if (!is_allowed_(other)) continue;
      const std::optional<double> cost = Cost(other);
      if (!cost) continue;
      const double worse = (*cost - cost_here_) / std::abs(cost_here_);
      if (worse > 0 && chance >= std::exp(-worse / Temperature())) continue;
      at_ = other;
      cost_here_ = *cost;
    }
  }

  double Temperature() const {
    if (options_.method != WalkMethod::kAnnealing) return options_.temperature;
    const double spent = static_cast<double>(seen_.size()) / static_cast<double>(evaluations_);
    return options_.temperature * std::pow(0.01, spent);
  }

  const SearchSpace& space_;
  const WalkOptions& options_;
  const uint32_t start_;
  const uint64_t evaluations_;
  const CostOfPoint& cost_;
  const std::function<bool()>& is_stopped_;
  const AllowsPoint& is_allowed_;
  const SpacePoint* from_;  // null once it was taken
  Dice dice_;
  std::vector<size_t> open_;  // axes with more than one choice
  std::unordered_map<SpacePoint, std::optional<double>, HashOfPoint> seen_;
  uint64_t drawn_ = 0;
  uint64_t refused_ = 0;
  SpacePoint at_;
  double cost_here_ = 0;
};

std::vector<SpacePoint> RandomPoints(const SearchSpace& space, const WalkOptions& options,
                                     const AllowsPoint& is_allowed) {
  Dice dice(options.seed);
  std::unordered_set<SpacePoint, HashOfPoint> drawn;
  std::vector<SpacePoint> points;
  const auto most =
      static_cast<uint64_t>(std::min(space.Size(), static_cast<double>(options.evaluations)));
  const uint64_t most_draws = 1000 + 50 * most;
  uint64_t refused = 0;
  uint64_t draws = 0;
  while (draws < most_draws && points.size() < most && refused < kMostRefused) {
    SpacePoint point = RandomPoint(space, dice);
    if (!is_allowed(point)) {
      ++refused;
      continue;
    }
    ++draws;
    if (drawn.insert(point).second) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

void Walk(const SearchSpace& space, const WalkOptions& options, unsigned threads,
          const CostOfPoint& cost, const std::function<bool()>& is_stopped, const WalkShare& share,
          const AllowsPoint& is_allowed, const std::vector<SpacePoint>& from) {
  const auto look = [&](const SpacePoint& point) {
    if (!is_stopped()) cost(point, 0);
  };
  switch (options.method) {
    case WalkMethod::kExhaustive: {
      CHECK(space.Size() <= kMostExhaustivePoints);
      const auto size = static_cast<size_t>(space.Size());
      const std::vector<bool> is_own = share.shard.Own(size);
      ForLeased(size, threads, share.leases, [&](size_t index) {
        if (is_own[index]) look(space.PointAt(index));
      });
      return;
    }
    case WalkMethod::kRandom: {
      const std::vector<SpacePoint> points = RandomPoints(space, options, is_allowed);
      const std::vector<bool> is_own = share.shard.Own(points.size());
      ForLeased(points.size(), threads, share.leases, [&](size_t index) {
        if (is_own[index]) look(points[index]);
      });
      return;
    }
    case WalkMethod::kDescent:
    case WalkMethod::kMetropolis:
    case WalkMethod::kAnnealing: {
      CHECK(share.shard.IsWhole() && share.leases == nullptr);
      const auto starts =
          static_cast<uint32_t>(std::min<uint64_t>(options.starts, options.evaluations));
      std::vector<const SpacePoint*> firsts;
      for (const SpacePoint& point : from)
        if (firsts.size() < starts && is_allowed(point)) firsts.push_back(&point);
      firsts.resize(starts, nullptr);
      InParallel(starts, threads, [&](size_t start) {
        const uint64_t evaluations =
            options.evaluations / starts + (start < options.evaluations % starts ? 1 : 0);
        Walker(space, options, static_cast<uint32_t>(start), evaluations, cost, is_stopped,
               is_allowed, firsts[start])
            .Go();
      });
      return;
    }
  }
}

}  // namespace rehearse
