#include "scenarios/playing/alike_parts.h"

#include <variant>

#include "scenarios/playing/calibrated.h"
#include "scenarios/playing/expert_draws.h"

namespace rehearse {

Alike AlikeUnder(const Scenario& scenario) {
  Alike alike = AlikeUnder(scenario.lowering.perturbation) & AlikeUnder(*scenario.cluster) &
                AlikeUnder(scenario.lowering.fidelity);
  for (const JobRequest& request : scenario.jobs) {
    const auto* workload = std::get_if<Workload>(&request.work);
    if (workload == nullptr) continue;
    alike = alike & AlikeUnder(*workload->network) & AlikeUnder(workload->training) &
            AlikeUnder(workload->strategy);
    if (workload->pipeline) alike = alike & AlikeUnder(*workload->pipeline);
  }
  return alike;
}

}  // namespace rehearse
