#include "scenarios/searching/search_exchange.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scenarios/searching/evaluator.h"

namespace rehearse {
namespace {

// The best of a choice, before anything was tried elsewhere.
struct Best {
  SpacePoint point;
  double cost = 0;                // simulated
  std::optional<double> formula;  // in the same unit
};

std::vector<std::optional<Best>> BestsOf(const Search& search, const FoundPoints& found) {
  std::vector<std::optional<Best>> bests(found.groups.size());
  for (const FoundPoint& point : found.points) {
    std::optional<Best>& best = bests[point.point[*search.per_axis]];
    if (best || !point.simulated) continue;
    const double cost = search.objectives.front().CostOf(point.simulated->values.front());
    best = Best{point.point, cost, point.formula};
  }
  return bests;
}

void Merge(FoundPoint point, uint32_t choice, FoundPoints* found) {
  ++found->simulated;
  ++found->groups[choice].simulated;
  const auto known =
      std::find_if(found->points.begin(), found->points.end(),
                   [&](const FoundPoint& other) { return other.point == point.point; });
  if (known != found->points.end()) {
    *known = std::move(point);
    return;
  }
  ++found->looked_at;
  ++found->groups[choice].looked_at;
  found->points.push_back(std::move(point));
}

}  // namespace

Search OfChoice(const Search& search, uint32_t choice) {
  Search one = search;
  SpaceAxis& axis = one.space.axes[*search.per_axis];
  axis.choices = {axis.choices[choice]};
  axis.is_always_named = true;
  return one;
}

void TryBestsElsewhere(const Search& search, const SearchRun& run, FoundPoints* found) {
  constexpr double kWorthIt = 0.01;
  if (search.decide != Decision::kBoth || run.IsPart() || found->was_too_slow) return;
  const size_t axis = *search.per_axis;
  const std::vector<std::optional<Best>> bests = BestsOf(search, *found);
  for (uint32_t choice = 0; choice < bests.size() && !run.is_stopped(); ++choice) {
    const Search one = OfChoice(search, choice);
    std::unique_ptr<PointEvaluator> evaluator;
    for (uint32_t other = 0; other < bests.size(); ++other) {
      const std::optional<Best>& best = bests[other];
      if (other == choice || !best || !best->formula || *best->formula == 0) continue;
      SpacePoint here = best->point;
      here[axis] = choice;
      const bool is_known = std::any_of(
          found->points.begin(), found->points.end(),
          [&](const FoundPoint& point) { return point.simulated && point.point == here; });
      if (is_known) continue;
      here[axis] = 0;
      if (!evaluator) evaluator = std::make_unique<PointEvaluator>(one, run);
      if (!evaluator->IsPlausible(here)) continue;
      const std::optional<double> formula = evaluator->Formula(here);
      if (!formula) continue;
      const double expected = *formula * best->cost / *best->formula;
      const std::optional<Best>& own = bests[choice];
      if (!own || expected < own->cost + kWorthIt * std::abs(own->cost)) evaluator->Simulate(here);
    }
    if (!evaluator) continue;
    for (FoundPoint& point : evaluator->Found().points) {
      if (!point.simulated) continue;
      point.point[axis] = choice;
      Merge(std::move(point), choice, found);
    }
  }
}

}  // namespace rehearse
