// Launching a collective takes long.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause SlowLaunchRow() {
  return {
      "slow-launch",
      "launching takes long: a busy or slow host, or one process that launches for several GPUs",
      "a process for each GPU (-g 1 under mpirun); cpupower frequency-info, and what else runs on "
      "the cores; nccl-tests -G 1 (CUDA graphs)",
      Geometric(15e-6, 3e-3, 9),
      true,
      AdditionWords,
      [](const CollectiveRun& run, double seconds) -> std::optional<CollectiveRun> {
        Figures figures = run.cluster->figures();
        figures.collective_overhead += Seconds(seconds);
        CollectiveRun changed = run;
        changed.cluster = std::make_shared<const Cluster>(run.cluster->With(std::move(figures)));
        return changed;
      },
      "more"};
}

}  // namespace rehearse
