// Weeks of a point's step: what the scenario's "run" comes to, and what all of it costs where there
// are "costs" (scenarios/campaign/).
//
// Formulas count a run without failures and checkpoints. On one cluster, points then come in the
// same order: what fails depends on the machine, and a checkpoint's bytes on the model, and not on
// how the model is divided, which only changes how much a restart reads. What differs by less than
// that is for simulations to tell.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/report/result.h"
#include "sim/report/run_outcome.h"

namespace rehearse {

// Over the seeds of a "run". Money and energy are those of a run of median, short and long time.
struct PointRun {
  double tokens = 0;
  std::string token_name;
  uint32_t seeds = 0;
  Seconds step;  // that all of it is counted with: the simulated or the typical one
  RunSpread seconds;
  RunSpread effective;             // training over all the time
  std::optional<RunSpread> money;  // with "costs"
  std::optional<RunSpread> kilowatt_hours;
};

// The scenario has a "run", and `result` is of its step. The schedule is planned once more, as
// results are kept without one. Throws Error as PlayCampaign() does.
PointRun PlayPointRun(const Scenario& scenario, const Result& result,
                      ProgressObserver& observer = NoObserver());

// The same if nothing failed and nothing was kept, which takes no simulation and no plan. Of the
// scenario, only its cluster and costs count.
PointRun PointRunWithoutFailures(const Scenario& scenario, double tokens, const Result& result);

// {"seconds": {"median", "low", "high"}, "effective", "money", "kilowatt_hours"}
nlohmann::ordered_json ToJson(const PointRun& run);

}  // namespace rehearse
