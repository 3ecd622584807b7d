// Weeks of what a search found: the run of the best, or of the best of each choice of "per" beside
// that of the first choice.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/searching/search.h"

namespace rehearse {

// Days, goodput, money and energy with what they are in 10 % to 90 % of the seeds, and with "per"
// as multiples of the first ones. "" if nothing simulated has a run.
std::string RunsText(const Search& search, const FoundPoints& found);

// The run of a group's best, as ToJson(PointRun) has it, and under "ratios" its medians beside
// those of the first choice with a run; null if it has none.
nlohmann::ordered_json GroupRunJson(const FoundPoints& found, const FoundGroup& group);

}  // namespace rehearse
