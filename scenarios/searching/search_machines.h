// What a search found, machine by machine, for people who decide: the first screen of a page
// (scenarios/reporting/report_page.h).
//
// A machine is a choice of the axis that "per" means; without "per" there is one. Its step has a
// range: from the simulated step, or the quickest of ten typical clusters
// (scenarios/playing/typical_step.h) if that is less, to the slowest of ten, or the simulated one
// if that is more; both widened by the mean error e of predictions of the published steps most like
// it (scenarios/playing/validated_steps.h), to low / (1 + e) and high / (1 - e). A GPU of which no
// step is published counts as the one that is predicted worst. What is proportional to the step, or
// to its reciprocal, has the same range; so have the days, money and energy of a run, whose seeds
// differ by far less ("weeks" has their range). A ratio of two machines goes from low / high to
// high / low: as if their errors had nothing in common.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/searching/search.h"

namespace rehearse {

struct RangedNumber {
  double value = 0;
  double low = 0;
  double high = 0;

  RangedNumber Over(const RangedNumber& other) const;
  RangedNumber Inverse() const;
};

// What the step may be, as a multiple of the simulated one.
RangedNumber RangeOf(const SimulatedPoint& point);

// One sentence: which machine is the fastest and which the cheapest, by how much, and whether the
// ranges tell them apart.
std::string MachinesSentence(const Search& search, const FoundPoints& found);

// {"title", "facts": [...], "sentence", "of": "cluster",
//  "measures": [{"key", "title", "unit", "more": more is better, "ranged"}],
//  "machines": [{"name", "point": of its best, "devices", "configuration", "binds",
//                "capacity": GiB, "trust", "weeks": with a "run", as GroupRunJson() has it
//                (scenarios/searching/search_runs.h), or instead of these "why_none"}],
//  "points": {"machine": [...], "name": [...], "low": [...], "high": [...],   factors of the step
//             "values": {"step": [...], ...}}}                      of those that were simulated
// Values are in the measures' units.
nlohmann::ordered_json MachinesJson(const Search& search, const FoundPoints& found);

}  // namespace rehearse
