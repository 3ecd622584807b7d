#include "workloads/strategies/strategy_presets.h"

#include <fmt/format.h>

namespace rehearse {

CombinedOptions DataParallelPreset() {
  CombinedOptions preset;
  preset.zero.stage = 0;
  preset.zero.overlap_reduce_scatter = false;
  preset.overlap_all_reduce = false;
  preset.kept_axes = {CombinedAxis::kData};
  preset.name = [](const CombinedOptions& options) {
    return fmt::format("data parallel, {}", options.data);
  };
  return preset;
}

CombinedOptions ZeroPreset(uint32_t stage) {
  CombinedOptions preset;
  preset.zero.stage = stage;
  preset.overlap_all_reduce = false;
  preset.kept_axes = {CombinedAxis::kShard, CombinedAxis::kReplicas};
  preset.name = [](const CombinedOptions& options) {
    return fmt::format("ZeRO-{}, {} shards, {} replicas", options.zero.stage, options.zero.shard,
                       options.zero.replicas);
  };
  return preset;
}

CombinedOptions MegatronPreset() {
  CombinedOptions preset;
  preset.zero.stage = 1;  // of what is in shares, if anything is
  preset.zero.prefetch = 0;
  preset.zero.reshard_after_forward = false;
  preset.zero.overlap_reduce_scatter = false;
  preset.kept_axes = {CombinedAxis::kTensor, CombinedAxis::kData};
  preset.name = [](const CombinedOptions& options) {
    return fmt::format("Megatron-LM, tensor {}{}, data {}", options.tensor,
                       options.sequence_parallel ? " with sequence parallelism" : "", options.data);
  };
  return preset;
}

}  // namespace rehearse
