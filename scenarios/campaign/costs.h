// What a step costs, and weeks of them, by the prices of the scenario's "costs"
// (scenarios/readers/cost_options.h).
//
//   money an hour   prices over the hours of `years`, or GPUs by the hour, and electricity
//   power           GPUs: idle + (full − idle)·(share of the step in which they compute or
//                   communicate), those without a rank idle; hosts, switches, optics as given; all
//                   of it times the building's PUE
//   of a run        the median time, in which GPUs are idle but for training
//
// All of the cluster is paid for: GPUs of a rack that no rank is on, and the whole network. If
// fewer or more GPUs are bought than the cluster has, hosts, NICs, cables and switches are counted
// in proportion.
#pragma once

#include <string>

#include "scenarios/campaign/campaign.h"
#include "scenarios/readers/scenario.h"
#include "sim/report/cost_outcome.h"
#include "sim/report/result.h"

namespace rehearse {

// The scenario has "costs". `run` may be null. Throws Error if a GPU's power is not known.
CostOutcome CostsOf(const Scenario& scenario, const Result& result, const RunOutcome* run);

// A sentence that says what it comes to, and the numbers. Begins with an empty line.
std::string ToText(const CostOutcome& outcome, bool color);

}  // namespace rehearse
