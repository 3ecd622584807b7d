// Strategies of the presets of the combined one (workloads/strategies/strategy_presets.h), by the
// options that each has.
#pragma once

#include <cstdint>

#include "workloads/strategies/strategy_presets.h"

namespace rehearse {

inline Strategy MakeDataParallel(uint32_t data, bool overlap_all_reduce, const Network& network) {
  CombinedOptions options = DataParallelPreset();
  options.data = data;
  options.zero.overlap_all_reduce = overlap_all_reduce;
  return MakeCombined(options, network);
}

inline Strategy MakeZero(const ZeroOptions& zero, const Network& network) {
  CombinedOptions options = ZeroPreset(zero.stage);
  options.zero = zero;
  return MakeCombined(options, network);
}

struct MegatronOptions {
  uint32_t tensor = 1;
  uint32_t data = 1;
  bool sequence_parallel = false;
  bool overlap_all_reduce = true;
  bool overlap_gradients = false;
  bool distributed_optimizer = false;
  uint64_t bucket_elements = 0;
  bool overlap_parameter_gathers = false;
  SplitProducts split_products = SplitProducts::kNone;
};

inline Strategy MakeMegatron(const MegatronOptions& megatron, const Network& network) {
  CombinedOptions options = MegatronPreset();
  options.tensor = megatron.tensor;
  options.data = megatron.data;
  options.sequence_parallel = megatron.sequence_parallel;
  options.overlap_all_reduce = megatron.overlap_all_reduce;
  options.zero.overlap_all_reduce = megatron.overlap_gradients;
  options.shares_over_data = megatron.distributed_optimizer;
  options.bucket_elements = megatron.bucket_elements;
  options.overlap_parameter_gathers = megatron.overlap_parameter_gathers;
  options.split_products = megatron.split_products;
  return MakeCombined(options, network);
}

}  // namespace rehearse
