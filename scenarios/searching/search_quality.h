// How well a formula orders the points of a search (`rehearse search --quality`). Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "scenarios/searching/search.h"

namespace rehearse {

// How good the formula is, for points that have both numbers.
struct SearchQuality {
  size_t points = 0;
  // AxoNN's section V: a point is efficient if it is within 10 % of the best or among the best
  // five. This is the mean, over the efficient ones among the formula's first five, of the share of
  // efficient ones up to there; 0 if none is.
  double average_precision_at_5 = 0;
  double kendall_tau = 0;   // tau-b, of formula and simulation
  double regret = 0;        // of the formula's first choice: its value over the best, less 1
  size_t rank_of_best = 0;  // the best point's place in the formula's order, from 1
};
SearchQuality ComputeQuality(const Search& search, const FoundPoints& found);

inline constexpr size_t kFirstOfFormula = 5;
// The highest cost of an efficient point; there is one cost at least, and the best come first.
double MostEfficientCost(const std::vector<double>& costs);

}  // namespace rehearse
