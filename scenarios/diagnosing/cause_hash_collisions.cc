// Flows that a switch hashes onto the same cable.
#include <algorithm>

#include <fmt/format.h>

#include "scenarios/diagnosing/cause_rows.h"
#include "topology/fabrics/fabric.h"
#include "topology/fabrics/structure.h"

namespace rehearse {

CollectiveCause HashCollisionsRow() {
  return {
      "hash-collisions",
      "switches hash several flows onto one cable while others are idle (too few queue pairs)",
      "NCCL_IB_QPS_PER_CONNECTION=4 (and NCCL_IB_SPLIT_DATA_ON_QPS=1): faster if so; counters of "
      "the leaf switches' uplinks; adaptive routing",
      {0, 1, 2, 3},
      false,
      [](double seed) { return fmt::format("as with seed {:.0f} of ECMP", seed); },
      [](const CollectiveRun& run, double seed) -> std::optional<CollectiveRun> {
        if (!HasEqualWays(run)) return std::nullopt;
        const FabricChoices choices = ChoicesOf(*FabricOf(*run.cluster));
        if (std::find(choices.choices.begin(), choices.choices.end(), RouteChoice::kEcmp) ==
            choices.choices.end())
          return std::nullopt;
        CollectiveRun changed = run;
        for (Trial& trial : changed.trials)
          trial.routing = {RouteChoice::kEcmp, 1, static_cast<uint64_t>(seed)};
        return changed;
      }};
}

}  // namespace rehearse
