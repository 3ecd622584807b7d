// NCCL_ALGO, or a tuner, sets an algorithm that the library would not choose.
#include <array>

#include "collectives/algorithms/algorithm.h"
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {
namespace {

constexpr std::array kPinnedAlgorithms = {AlgorithmId::kRing, AlgorithmId::kTree,
                                          AlgorithmId::kNvls, AlgorithmId::kNvlsTree};

}  // namespace

CollectiveCause AlgorithmPinnedRow() {
  return {
      "algorithm-pinned",
      "an algorithm is pinned that NCCL would not choose",
      "env | grep NCCL_ALGO, and /etc/nccl.conf; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING: what is "
      "chosen at each size",
      {0, 1, 2, 3},
      false,
      [](double which) { return std::string(Name(kPinnedAlgorithms[static_cast<size_t>(which)])); },
      [](const CollectiveRun& run, double which) -> std::optional<CollectiveRun> {
        CollectiveRun changed = run;
        const AlgorithmId pinned = kPinnedAlgorithms[static_cast<size_t>(which)];
        bool is_any = false;
        for (Trial& trial : changed.trials) {
          if (trial.algorithm != AlgorithmId::kAuto || !FindAlgorithm(pinned).kinds.Has(trial.kind))
            continue;
          trial.algorithm = pinned;
          is_any = true;
        }
        if (!is_any) return std::nullopt;
        return changed;
      }};
}

}  // namespace rehearse
