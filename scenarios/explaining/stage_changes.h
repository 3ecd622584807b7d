// What would other stages give? The step of a pipeline is planned and simulated again with fewer
// stages, more micro-batches, more stages per rank, and weight gradients put off.
//
// The devices and the batch stay. Fewer stages leave more replicas: the pipeline gets shorter by
// its smallest prime factor, and the strategy's data axis (or its replicas) longer by as much, so
// that each pipeline gets so many fewer micro-batches of the same size.
#pragma once

#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/base/quantity.h"

namespace rehearse {

struct StageChange {
  std::string what;     // "4 stages instead of 8"
  std::string refused;  // why it cannot be; then the rest is zero
  Seconds step;
  double idle = 0;  // share of the step, mean over ranks: mostly the pipeline's bubble
  Bytes memory;     // of the fullest rank
};

// The changes in the order above; none unless the scenario is one step with a pipeline. If it is
// stopped, `left_out` gets the names of those that were not simulated.
std::vector<StageChange> TryStageChanges(const Scenario& scenario, ProgressObserver& observer,
                                         std::vector<std::string>* left_out);

}  // namespace rehearse
