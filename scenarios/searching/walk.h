// Ways to walk a space of choices towards a small cost by looking at only a part of it.
//
//   exhaustive   every point
//   random       points with equal probability, none twice
//   descent      from each start: one axis after the other takes its best choice, until none of
//                them changes anything (AutoDDL's coordinate descent, arXiv 2301.06813, section 4)
//   metropolis   from each start: another choice of one axis, taken if it is better, or with
//                probability exp(-(c'/c - 1) / temperature) if it is worse
//   annealing    the same, while the temperature falls to a hundredth
//
// Starts are random possible points, or what is known to be good. Each walks independently, so that
// the result is the same for any number of threads; they share `evaluations` equally, and a start
// that returns to a point does not count it again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "scenarios/evaluating/shard.h"
#include "scenarios/readers/search_options.h"
#include "scenarios/searching/search_space.h"

namespace rehearse {

// Which of the points of exhaustive and random walks, which are known in advance, are looked at.
struct WalkShare {
  Leases* leases = nullptr;  // of the shard, only those that it gets
  Shard shard = {};
};

inline constexpr double kMostExhaustivePoints = 2'000'000;

// The cost of a point as start number `start` sees it, positive unless more is better; nothing if
// the point is impossible. Called from several threads, perhaps more than once for a point.
using CostOfPoint = std::function<std::optional<double>(const SpacePoint& point, uint32_t start)>;

// Whether the space's conditions let a point be looked at; quick.
using AllowsPoint = std::function<bool(const SpacePoint& point)>;
inline bool AllowEvery(const SpacePoint& /*point*/) { return true; }

// CHECKs that the method can have a shard, and that an exhaustive walk has at most
// kMostExhaustivePoints. Other walks take only points that `is_allowed`, and count no others. Each
// start begins with one of the first points in `from` that are, if there are so many. `is_stopped`
// ends it.
void Walk(const SearchSpace& space, const WalkOptions& options, unsigned threads,
          const CostOfPoint& cost, const std::function<bool()>& is_stopped,
          const WalkShare& share = {}, const AllowsPoint& is_allowed = AllowEvery,
          const std::vector<SpacePoint>& from = {});

}  // namespace rehearse
