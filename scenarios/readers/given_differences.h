// How two scenarios differ, as they were given: what distinguishes two what-ifs with the same name,
// and whether they are steps of the same work.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/comparison.h"

namespace rehearse {

// Value by value, in the order of paths ("cluster", "strategy.depth", "edits.0.bandwidth"), without
// names and descriptions. Lists of different lengths, and what only one has, differ as a whole.
std::vector<GivenDifference> DifferencesOf(const nlohmann::json& a, const nlohmann::json& b);

// The differences in how much a step has to compute: in model, jobs or schedule, batch and
// sequence. Other values say how it is done, which is what a comparison is about.
std::vector<GivenDifference> DifferencesOfWork(const std::vector<GivenDifference>& differences);

}  // namespace rehearse
