// Another release of NCCL, with other rules and constants.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause OldLibraryRow() {
  return {"old-library",
          "an old NCCL runs, which chooses as 2.18 does",
          "NCCL_DEBUG=VERSION; ldd of the program: a library of the system before the one of the "
          "container or of PyTorch",
          {1},
          false,
          [](double) { return std::string(); },
          [](const CollectiveRun& run, double) -> std::optional<CollectiveRun> {
            if (run.trials.front().nccl.version == NcclVersion::kRelease218) return std::nullopt;
            CollectiveRun changed = run;
            for (Trial& trial : changed.trials) trial.nccl.version = NcclVersion::kRelease218;
            return changed;
          }};
}

}  // namespace rehearse
