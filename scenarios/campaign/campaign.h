// Weeks of training: the "run" of a scenario (scenarios/readers/run_options.h), whose step was
// simulated. What may fail is counted from the cluster, what a checkpoint takes follows from the
// plan, and runs are simulated with many seeds (scenarios/campaign/long_run.h).
#pragma once

#include <string>
#include <vector>

#include "scenarios/campaign/long_run.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/report/run_outcome.h"

namespace rehearse {

struct Campaign {
  RunOutcome outcome;
  RunModel model;     // with the interval that is used
  RunRecord typical;  // of the seed whose time is the median, with marks
};

// The scenario has a "run". Throws Error for a checkpoint that does not fit the storage, a model
// that counts no tokens, a run that does not get ahead, and the like.
Campaign PlayCampaign(const Scenario& scenario, const Rehearsal& rehearsal,
                      ProgressObserver& observer = NoObserver());
// The same where only the step's result is at hand, and the schedule as it is planned.
Campaign PlayCampaign(const Scenario& scenario, const Schedule& schedule, const Result& result,
                      ProgressObserver& observer = NoObserver());

// A sentence that says what it comes to, and the numbers. Begins with an empty line.
std::string ToText(const RunOutcome& outcome, bool color);

}  // namespace rehearse
