// NCCL_ALGO, or a tuner, sets an algorithm that the library would not choose.
#include <array>

#include "collectives/algorithms/algorithm.h"
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {
namespace {

constexpr std::array kPinnedAlgorithms = {"ring", "tree", "nvls", "nvls-tree"};

}  // namespace

CollectiveCause AlgorithmPinnedRow() {
  return {
      "algorithm-pinned",
      "an algorithm is pinned that NCCL would not choose",
      "env | grep NCCL_ALGO, and /etc/nccl.conf; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING: what is "
      "chosen at each size",
      {0, 1, 2, 3},
      false,
      [](double which) { return std::string(kPinnedAlgorithms[static_cast<size_t>(which)]); },
      [](const CollectiveRun& run, double which) -> std::optional<CollectiveRun> {
        CollectiveRun changed = run;
        const char* const name = kPinnedAlgorithms[static_cast<size_t>(which)];
        bool is_any = false;
        for (Trial& trial : changed.trials) {
          if (trial.algorithm != "auto" || !FindAlgorithm(name).kinds.Has(trial.kind)) continue;
          trial.algorithm = name;
          is_any = true;
        }
        if (!is_any) return std::nullopt;
        return changed;
      }};
}

}  // namespace rehearse
