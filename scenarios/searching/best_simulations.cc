#include "scenarios/searching/best_simulations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "scenarios/evaluating/shard.h"
#include "sim/base/threads.h"

namespace rehearse {
namespace {

// Whether one axis has another choice, in which at most two numbers differ: a factor has moved from
// one axis of a mesh to another.
bool AreNeighbours(const SearchSpace& space, const SpacePoint& a, const SpacePoint& b) {
  size_t axes = 0;
  size_t values = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    ++axes;
    const Changes& one = space.axes[i].choices[a[i]].changes;
    const Changes& other = space.axes[i].choices[b[i]].changes;
    for (size_t k = 0; k < std::min(one.size(), other.size()); ++k)
      values += one[k] == other[k] ? 0 : 1;
  }
  return axes == 1 && values <= 2;
}

// How many of the points were possible.
size_t SimulateAll(const std::vector<SpacePoint>& points, const SearchRun& run,
                   PointEvaluator* evaluator, Leases* leases = nullptr) {
  std::vector<char> is_possible(points.size());
  ForLeased(points.size(), run.threads, leases, [&](size_t i) {
    if (evaluator->is_over()()) return;
    is_possible[i] = evaluator->Simulate(points[i]).has_value() ? 1 : 0;
    if (is_possible[i] != 0) evaluator->EndOne();
  });
  return static_cast<size_t>(std::count(is_possible.begin(), is_possible.end(), 1));
}

// Formulas know no overlap: the neighbours of the best point so far are tried too, until none of
// them is better.
void SimulateNeighbours(const Search& search, const SearchRun& run,
                        const std::vector<std::pair<double, SpacePoint>>& order,
                        PointEvaluator* evaluator) {
  std::optional<SpacePoint> before;
  while (!evaluator->is_over()()) {
    const std::optional<SpacePoint> best = evaluator->Best();
    if (!best || best == before) return;
    before = best;
    std::vector<SpacePoint> neighbours;
    for (const auto& [formula, point] : order)
      if (AreNeighbours(search.space, *best, point) && !evaluator->IsSimulated(point))
        neighbours.push_back(point);
    SimulateAll(neighbours, run, evaluator);
  }
}

// Simulations tell by how much a formula that is put together errs for each family of
// configurations. The best by numbers that are corrected so come next, a few at a time, until one
// more cannot be expected to be better: then the rest are left out.
class CorrectedOrder {
 public:
  CorrectedOrder(const std::vector<std::pair<double, SpacePoint>>& order, ComposedSteps* composed) {
    double before = -std::numeric_limits<double>::infinity();
    for (const auto& [formula, point] : order) {
      // Those that hardly fit begin where the order falls.
      has_all_that_fit_ = has_all_that_fit_ || formula < before;
      before = formula;
      (has_all_that_fit_ ? tight_ : points_)
          .push_back({formula, composed->At(point).family, &point});
    }
  }

  struct Choice {
    double least = std::numeric_limits<double>::infinity();  // as the luckiest of its family
    const SpacePoint* point = nullptr;                       // null if there is no more
  };
  Choice Next() {
    double least = std::numeric_limits<double>::infinity();
    size_t best = points_.size();
    for (size_t i = 0; i < points_.size(); ++i) {
      if (points_[i].point == nullptr) continue;
      const double corrected = Corrected(points_[i]);
      if (corrected >= least) continue;
      least = corrected;
      best = i;
    }
    if (best == points_.size() && !tight_.empty()) {
      points_ = std::exchange(tight_, {});
      return Next();
    }
    if (best == points_.size()) return {};
    const Point& one = points_[best];
    const auto known = factors_.find(one.family);
    if (known != factors_.end())
      for (const double factor : known->second) least = std::min(least, one.formula * factor);
    return {least, std::exchange(points_[best].point, nullptr)};
  }

  // Numbers are positive, or all negative: then more of an objective is better.
  void Learn(double formula, uint32_t family, double simulated) {
    if (formula != 0) factors_[family].push_back(simulated / formula);
  }

 private:
  struct Point {
    double formula;
    uint32_t family;
    const SpacePoint* point;  // null once it is taken
  };

  // What the point is expected to cost. One or two simulations do not tell how a family errs: then
  // it may err as the luckiest of the others does.
  double Corrected(const Point& point) const {
    constexpr size_t kEnough = 3;
    const auto known = factors_.find(point.family);
    std::optional<double> least;
    if (known != factors_.end()) least = point.formula * Median(known->second);
    if (known != factors_.end() && known->second.size() >= kEnough) return *least;
    for (const auto& [other, factors] : factors_) {
      const double cost = point.formula * Median(factors);
      if (!least || cost < *least) least = cost;
    }
    return least.value_or(point.formula);
  }
  static double Median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
  }

  bool has_all_that_fit_ = false;
  std::vector<Point> points_;
  std::vector<Point> tight_;  // for when there is nothing else
  std::map<uint32_t, std::vector<double>> factors_;
};

// Simulates what is expected to be best until `wanted` more were possible and nothing else can be
// expected to be better than the best.
void SimulateCorrected(const Search& search, const SearchRun& run, size_t wanted,
                       PointEvaluator* evaluator) {
  constexpr size_t kTogether = 2;  // whatever the number of threads, so that all find the same
  constexpr double kWorthIt = 1.01;
  constexpr size_t kMostImpossible = 60;
  const Objective& objective = search.objectives.front();
  std::vector<std::pair<double, SpacePoint>> order = evaluator->ByFormula();
  std::map<SpacePoint, double> formulas;
  for (const auto& [formula, point] : order) formulas.emplace(point, formula);
  std::vector<SpacePoint> known;
  std::erase_if(order, [&](const auto& one) {
    if (!evaluator->IsSimulated(one.second)) return false;
    known.push_back(one.second);
    return true;
  });
  CorrectedOrder corrected(order, evaluator->composed());
  std::optional<double> best;
  const auto learn = [&](const SpacePoint& point) {
    const auto values = evaluator->Simulate(point);  // as it is known
    if (!values) return;
    const double cost = objective.CostOf(values->front());
    corrected.Learn(formulas[point], evaluator->composed()->At(point).family, cost);
    if (!best || cost < *best) best = cost;
  };
  for (const SpacePoint& point : known) learn(point);
  size_t possible = 0;
  for (size_t tried = 0; tried < wanted + kMostImpossible || !best;) {
    if (evaluator->is_over()()) return;
    std::vector<SpacePoint> points;
    bool is_worth_it = false;
    while (points.size() < kTogether) {
      const auto [least, point] = corrected.Next();
      if (point == nullptr) break;
      is_worth_it = is_worth_it || !best || least < *best + (kWorthIt - 1) * std::abs(*best);
      points.push_back(*point);
    }
    if (points.empty() || (possible >= wanted && !is_worth_it)) return;
    tried += points.size();
    possible += SimulateAll(points, run, evaluator);
    for (const SpacePoint& point : points) learn(point);
  }
}

// Puts the formula to all points that differ from this one in two axes at most, one of which has
// the most choices: the mesh.
void LookAround(const Search& search, const SearchRun& run, const SpacePoint& from,
                PointEvaluator* evaluator) {
  const std::vector<SpaceAxis>& axes = search.space.axes;
  size_t widest = 0;
  for (size_t i = 1; i < axes.size(); ++i)
    if (axes[i].choices.size() > axes[widest].choices.size()) widest = i;
  std::vector<SpacePoint> points;
  for (uint32_t mesh = 0; mesh < axes[widest].choices.size(); ++mesh) {
    for (size_t other = 0; other < axes.size(); ++other) {
      for (uint32_t choice = 0; choice < axes[other].choices.size(); ++choice) {
        SpacePoint point = from;
        point[widest] = mesh;
        if (other != widest) point[other] = choice;
        if (evaluator->IsPlausible(point)) points.push_back(std::move(point));
      }
    }
  }
  ForLeased(points.size(), run.threads, nullptr, [&](size_t i) {
    if (!evaluator->is_over()()) evaluator->Formula(points[i]);
  });
}

// Descents may have passed by what is better: the best so far shows where else to look.
void SimulateComposed(const Search& search, const SearchRun& run, size_t wanted,
                      PointEvaluator* evaluator) {
  constexpr size_t kRounds = 3;
  constexpr size_t kMore = 2;
  SimulateCorrected(search, run, wanted, evaluator);
  std::optional<SpacePoint> before;
  for (size_t round = 0; round < kRounds && !evaluator->is_over()(); ++round) {
    const std::optional<SpacePoint> best = evaluator->Best();
    if (search.walk.method == WalkMethod::kExhaustive || !best || best == before) return;
    before = best;
    LookAround(search, run, *best, evaluator);
    SimulateCorrected(search, run, kMore, evaluator);
  }
}

}  // namespace

std::optional<double> SimulateBest(const Search& search, const SearchRun& run,
                                   PointEvaluator* evaluator) {
  const std::vector<std::pair<double, SpacePoint>> order = evaluator->ByFormula();
  const auto share =
      static_cast<size_t>(std::ceil(search.keep * static_cast<double>(order.size())));
  const size_t wanted = std::min(order.size(), std::max<size_t>(share, search.keep_at_least));
  if (run.IsPart()) {
    std::vector<SpacePoint> own;
    const std::vector<bool> is_own = run.shard.Own(wanted);
    for (size_t i = 0; i < wanted; ++i)
      if (is_own[i]) own.push_back(order[i].second);
    evaluator->BeginSimulations(own.size());
    SimulateAll(own, run, evaluator, run.leases);
    return wanted > 0 ? std::optional(order[wanted - 1].first) : std::nullopt;
  }
  evaluator->BeginSimulations(wanted);
  if (evaluator->composed() != nullptr && search.objectives.size() == 1) {
    SimulateComposed(search, run, wanted, evaluator);
    return std::nullopt;
  }
  size_t next = 0;
  size_t possible = 0;
  while (possible < wanted && next < order.size() && !evaluator->is_over()()) {
    std::vector<SpacePoint> points;
    for (; points.size() < wanted - possible && next < order.size(); ++next)
      points.push_back(order[next].second);
    possible += SimulateAll(points, run, evaluator);
  }
  if (search.objectives.size() == 1) SimulateNeighbours(search, run, order, evaluator);
  return next > 0 ? std::optional(order[next - 1].first) : std::nullopt;
}

}  // namespace rehearse
