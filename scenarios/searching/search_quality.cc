#include "scenarios/searching/search_quality.h"

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"

namespace rehearse {

double MostEfficientCost(const std::vector<double>& costs) {
  CHECK(!costs.empty());
  constexpr size_t kBest = 5;
  const double best = costs.front();
  return std::max(best + 0.1 * std::abs(best), costs[std::min(kBest, costs.size()) - 1]);
}

SearchQuality ComputeQuality(const Search& search, const FoundPoints& found) {
  struct Pair {
    double formula;
    double cost;
    double value;
  };
  std::vector<Pair> pairs;
  for (const FoundPoint& point : found.points) {
    if (!point.formula || !point.simulated) continue;
    const double value = point.simulated->values.front();
    pairs.push_back({*point.formula, search.objectives.front().CostOf(value), value});
  }
  SearchQuality quality;
  quality.points = pairs.size();
  if (pairs.empty()) return quality;
  // Points were sorted by cost, best first.
  const double best = pairs.front().cost;
  std::vector<double> costs;
  for (const Pair& pair : pairs) costs.push_back(pair.cost);
  const double most = MostEfficientCost(costs);
  std::vector<size_t> order(pairs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pairs[a].formula < pairs[b].formula; });
  double efficient = 0;
  double precision = 0;
  for (size_t i = 0; i < std::min(kFirstOfFormula, order.size()); ++i) {
    if (pairs[order[i]].cost > most) continue;
    ++efficient;
    precision += efficient / static_cast<double>(i + 1);
  }
  if (efficient > 0) quality.average_precision_at_5 = precision / efficient;
  quality.regret = std::abs(pairs[order.front()].value / pairs.front().value - 1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (pairs[order[i]].cost > best) continue;
    quality.rank_of_best = i + 1;
    break;
  }
  double concordant = 0;
  double ties_of_formula = 0;
  double ties_of_cost = 0;
  double all = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double f = pairs[i].formula - pairs[j].formula;
      const double c = pairs[i].cost - pairs[j].cost;
      ++all;
      if (f == 0) ++ties_of_formula;
      if (c == 0) ++ties_of_cost;
      if (f != 0 && c != 0) concordant += (f > 0) == (c > 0) ? 1 : -1;
    }
  }
  const double norm = std::sqrt((all - ties_of_formula) * (all - ties_of_cost));
  if (norm > 0) quality.kendall_tau = concordant / norm;
  return quality;
}

}  // namespace rehearse
