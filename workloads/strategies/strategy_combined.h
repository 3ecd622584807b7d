// Tensor, sequence, context and data parallelism and its sharded forms in one strategy, as
// Megatron-LM and torchtitan compose them.
//
// A mesh of the axes below, without those of one rank. Rows are split over shard, replicas and
// data, inside these over context, and with sequence parallelism inside that over tensor; weights
// over tensor as in Megatron-LM (workloads/strategies/strategy_megatron.h), in shares over shard
// and context as ZeRO's stage says (workloads/strategies/strategy_zero.h). With k·n elements of a
// weight, t tensor ranks, f ranks that share:
//
//   | op                                  | axis                | elements                      |
//   | around products: Megatron-LM's      | tensor              | of the rows of a tensor group |
//   | stage 3, before them: all-gather W  | shard, context      | kn/t                          |
//   | stages 2, 3: reduce-scatter dW      | shard, context      | kn/t                          |
//   | stage 1, after backward: reduce-scatter dW, all-gather W | shard, context | kn/t          |
//   | after backward: all-reduce dW       | the other data axes | kn/(t·f); stages 0, 1: kn/t   |
//   | around attention cores: see ContextPolicy in workloads/strategies/strategy.h | context     |
//   | around experts: see workloads/planner/expert_rules.cc | expert, expert tensor |             |
//
// Experts have a mesh of their own over the same ranks: from the innermost rank outwards,
// expert_tensor ranks share an expert, expert ranks each have a part of all experts, and the rest
// are replicas of these, over which their gradients are summed (and their shares lie):
// Megatron-Core's etp-ep-edp (parallel_state.py) and torchtitan's mesh. An axis that ends inside
// one of the others cuts it in two.
//
// Megatron-LM's strategy, data parallelism, ZeRO and FSDP are this one with the other axes at 1.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/error.h"
#include "workloads/strategies/strategy.h"
#include "workloads/strategies/strategy_zero.h"

namespace rehearse {

// In the order in which ranks nest by default, the first innermost: Megatron-LM's tp-cp-dp, or
// torchtitan's mesh from its last dimension on.
enum class CombinedAxis : uint8_t { kTensor, kContext, kShard, kReplicas, kData };
inline constexpr size_t kCombinedAxes = 5;
const char* Name(CombinedAxis axis);  // "tensor", as scenarios call it

struct CombinedOptions {
  uint32_t tensor = 1;
  uint32_t context = 1;
  uint32_t data = 1;
  // Shard, replicas, stage, and how shares are gathered and reduced.
  ZeroOptions zero;
  ContextKind context_kind = ContextKind::kRing;
  bool balances_context = true;  // ring and all-gather
  // From the innermost rank outwards; axes that are not named follow in default order.
  std::vector<CombinedAxis> order = {};
  bool sequence_parallel = false;  // norms, dropout and residuals on 1/t of the rows each
  bool keeps_gathered = false;     // X gathered over tensor is kept for dW (PyTorch)
  bool overlap_all_reduce = true;  // collectives of dX beside the dW product
  // Stages 0 and 1, as in MegatronOptions, with any axes that split the batch in place of data.
  uint64_t bucket_elements = 0;
  bool overlap_parameter_gathers = false;
  uint32_t expert = 1;         // ranks over which experts are spread
  uint32_t expert_tensor = 1;  // ranks that share each of them
  bool overlap_shared_expert = false;
  bool narrow_dispatch = false;
};

// Throws Error at `place` if the mesh of experts does not fit into the other mesh.
Strategy MakeCombined(const CombinedOptions& options, const Network& network,
                      const Place& place = {});

}  // namespace rehearse
