// How two scenarios differ, as they were given: what tells two what-ifs of one name apart, and
// whether they are steps of the same work.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/comparison.h"

namespace rehearse {

// Value by value, in the order of paths ("cluster", "strategy.depth", "edits.0.bandwidth"), but for
// names and descriptions. Lists of different lengths, and what only one has, differ as a whole.
std::vector<GivenDifference> DifferencesOf(const nlohmann::json& a, const nlohmann::json& b);

// Of these, the values that say how much a step has to compute: of model, jobs or schedule, batch
// and sequence. Other values say how it is done, which is what a comparison is about.
std::vector<GivenDifference> DifferencesOfWork(const std::vector<GivenDifference>& differences);

}  // namespace rehearse
