// Tensor, sequence, context and data parallelism and its sharded forms in one strategy, as
// Megatron-LM and torchtitan compose them.
//
// A mesh of the axes below, without those of one rank. Rows are split over shard, replicas and
// data, inside these over context, and with sequence parallelism inside that over tensor; weights
// over tensor as in Megatron-LM, in shares over shard and context as ZeRO's stage says. With k·n
// elements of a weight, t tensor ranks, f ranks that share:
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
// Data parallelism, ZeRO, FSDP and Megatron-LM's strategy are this one with values of their own
// (workloads/strategies/strategy_presets.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/value_names.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

// In the order in which ranks nest by default, the first innermost: Megatron-LM's tp-cp-dp, or
// torchtitan's mesh from its last dimension on.
enum class CombinedAxis : uint8_t { kTensor, kContext, kShard, kReplicas, kData };
inline constexpr size_t kCombinedAxes = 5;
// As scenarios call them.
inline constexpr ValueName<CombinedAxis> kCombinedAxisNames[kCombinedAxes] = {
    {"tensor", CombinedAxis::kTensor},
    {"context", CombinedAxis::kContext},
    {"shard", CombinedAxis::kShard},
    {"replicas", CombinedAxis::kReplicas},
    {"data", CombinedAxis::kData}};
inline constexpr ValueName<SplitProducts> kSplitProductsNames[] = {
    {"none", SplitProducts::kNone},
    {"user-buffers", SplitProducts::kUserBuffers},
    {"async-tp", SplitProducts::kAsyncTp},
    {"tiles", SplitProducts::kTiles}};
inline constexpr ValueName<ContextKind> kContextKindNames[] = {
    {"ring", ContextKind::kRing},
    {"all-gather", ContextKind::kAllGather},
    {"ulysses", ContextKind::kUlysses}};

// What is kept in shares, and how stage 3 gathers parameters and reduces gradients: see
// ShardPolicy in workloads/strategies/strategy.h.
struct ZeroOptions {
  uint32_t shard = 1;
  uint32_t replicas = 1;
  uint32_t stage = 3;
  bool by_layer = false;                // stage 3: collectives of whole layers, not of products
  uint32_t prefetch = 1;                // products (layers) ahead, stage 3
  bool reshard_after_forward = true;    // stage 3
  bool until_last_micro_batch = false;  // stage 3
  uint32_t backward_within =
      0;  // stage 3: ranks from whose shares the backward pass gathers; 0: all
  ShardCopies copies = ShardCopies::kNone;  // stage 3, and the next six
  bool gathers_behind_backward = false;     // with by_layer
  bool within_layer = false;                // gathers and sums do not cross a layer
  bool reduces_in_fp32 = false;
  uint64_t prefetch_elements = 0;
  uint64_t most_gathered = 0;
  uint64_t reduce_elements = 0;
  bool overlap_reduce_scatter = true;  // stages 2, 3: awaited only at the end of backward
  bool overlap_all_reduce = false;     // of gradients, beside the last backward pass
};

struct CombinedOptions {
  uint32_t tensor = 1;
  uint32_t context = 1;
  uint32_t data = 1;
  ZeroOptions zero = {};
  ContextKind context_kind = ContextKind::kRing;
  bool balances_context = true;  // ring and all-gather
  // From the innermost rank outwards; axes that are not named follow in default order.
  std::vector<CombinedAxis> order = {};
  bool sequence_parallel = false;  // norms, dropout and residuals on 1/t of the rows each
  bool keeps_gathered = false;     // X gathered over tensor is kept for dW (PyTorch)
  bool overlap_all_reduce = true;  // collectives of dX beside the dW product
  SplitProducts split_products = SplitProducts::kNone;  // with sequence parallelism
  // Stages 0 and 1: elements of a bucket of gradients, at least a million for each rank among which
  // the batch is split; 0: each matrix on its own.
  uint64_t bucket_elements = 0;
  bool overlap_parameter_gathers = false;  // stage 1: updated shares beside the next forward pass
  uint32_t expert = 1;                     // ranks over which experts are spread
  uint32_t expert_tensor = 1;              // ranks that share each of them
  bool overlap_shared_expert = false;
  bool narrow_dispatch = false;
  uint32_t expert_pieces = 1;  // in which tokens travel
  bool expert_tiles = false;   // their products are parts of one kernel

  // What only presets say. The mesh has these axes even if they have one rank.
  std::vector<CombinedAxis> kept_axes = {};
  bool shares_over_data = false;  // Megatron-LM's shares lie along data, not along shard
  std::string (*name)(const CombinedOptions& options) = nullptr;  // else by its axes
};

// Throws Error at `place` if the mesh of experts does not fit into the other mesh.
Strategy MakeCombined(const CombinedOptions& options, const Network& network,
                      const Place& place = {});

}  // namespace rehearse
