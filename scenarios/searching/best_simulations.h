// Which points a search simulates once a formula has put them in order: the best, then what they
// teach. Neighbours of the best are tried where the formula is a paper's; where it is composed
// (composed_step.h), simulations tell by how much it errs for each family of configurations, and
// the best by numbers corrected so come next.
#pragma once

#include <optional>

#include "scenarios/searching/evaluator.h"
#include "scenarios/searching/search.h"

namespace rehearse {

// The formula's best points are simulated until enough of them were possible. Returns the formula's
// number of the last one.
std::optional<double> SimulateBest(const Search& search, const SearchRun& run,
                                   PointEvaluator* evaluator);

}  // namespace rehearse
