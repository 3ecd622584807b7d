// The switches do not add: NVLS is switched off or not there.
#include <algorithm>

#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause NvlsOffRow() {
  return {
      "nvls-off",
      "NVLink SHARP (NVLS) is not used",
      "NCCL_DEBUG=INFO: \"NVLS multicast support is not available\"; NCCL_NVLS_ENABLE, driver and "
      "fabric manager",
      {1},
      false,
      [](double) { return std::string(); },
      [](const CollectiveRun& run, double) -> std::optional<CollectiveRun> {
        if (!run.trials.front().nccl.nvls) return std::nullopt;
        CollectiveRun changed = run;
        for (Trial& trial : changed.trials) trial.nccl.nvls = false;
        return changed;
      }};
}

}  // namespace rehearse
