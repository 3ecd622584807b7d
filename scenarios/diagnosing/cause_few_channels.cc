// The library runs on few channels, and so on few multiprocessors.
#include <fmt/format.h>

#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause FewChannelsRow() {
  return {"few-channels",
          "NCCL runs on few channels",
          "NCCL_DEBUG=INFO: the number of \"Channel\" lines, coll channels; NCCL_MAX_NCHANNELS, "
          "NCCL_MAX_CTAS",
          {1, 2, 4, 8},
          false,
          [](double channels) { return fmt::format("at most {:.0f}", channels); },
          [](const CollectiveRun& run, double channels) -> std::optional<CollectiveRun> {
            if (run.trials.front().channels > 0) return std::nullopt;
            CollectiveRun changed = run;
            for (Trial& trial : changed.trials) trial.channels = static_cast<uint32_t>(channels);
            return changed;
          }};
}

}  // namespace rehearse
