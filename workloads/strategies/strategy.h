// What a strategy decides about a network; the planner (workloads/planner/planner.h)
// derives the rest.
//
// A strategy chooses a mesh, how the two operands of every matrix product lie on it, how its result
// rests until the next product, how parameters, gradients and optimizer state are sharded, and what
// runs asynchronously. Every collective of the step follows from these choices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedule/alike.h"
#include "workloads/layouts/layout.h"
#include "workloads/layouts/mesh.h"
#include "workloads/layouts/redistribution.h"
#include "workloads/networks/network.h"

namespace rehearse {

// Products by SUMMA instead of a local one: X, W and Y as blocks, rows on one axis and columns on
// another one of the same size (workloads/planner/summa_rules.cc).
struct SummaAxes {
  uint32_t row_axis = 0;
  uint32_t column_axis = 0;
  bool prefetch = false;  // the next round's panels travel during this round's product

  friend bool operator==(const SummaAxes&, const SummaAxes&) = default;
};

// X(m×k)·W(k×n) on the mesh: placements by axis, S(0) for rows and S(1) for columns. An embedding
// is the product of one-hot rows and its V×h table.
struct ProductLayouts {
  Layout x;
  Layout w;
  // Where the result rests, and the other work on it is done. Nodes that are not products leave
  // layouts alone.
  Layout rest;
  // Layouts that the result passes through on its way to `rest`, if that should not be the cheapest
  // way.
  std::vector<Layout> by_way_of = {};
  std::optional<SummaAxes> summa = std::nullopt;

  friend bool operator==(const ProductLayouts&, const ProductLayouts&) = default;
};

// What is copied on the device around gathers and reduce-scatters.
enum class ShardCopies : uint8_t {
  kNone,
  // PyTorch's FSDP with flat parameters: shares are cast from fp32 before a gather; gradients of
  // the parameters, which are views of one array, are joined, and cast if they are reduced in fp32.
  kFlat,
  // fully_shard (FSDP2): shares are cast and copied into a buffer for the gather, what is gathered
  // is copied out into the parameters, and gradients into the array that is reduce-scattered.
  kPerParameter,
  // DeepSpeed's ZeRO-3: what is gathered is joined from its partitions; gradients are copied into a
  // bucket, then into the order of the partitions.
  kBuckets,
};

// Parameters and what belongs to them in equal shares along axes that split the batch, as ZeRO
// counts its stages: 1 optimizer state, 2 gradients too, 3 parameters too, which are gathered
// before use (FSDP, the depth axis of 4D). Biases and norms (0.01 % of a model) are not sharded.
struct ShardPolicy {
  std::vector<uint32_t> axes;
  uint32_t stage = 3;
  // All matrices of a layer are gathered, and their gradients reduce-scattered, in one group; those
  // outside the layers go on their own. `prefetch` then counts layers, and earlier layers are
  // prefetched during a recomputation as well.
  bool by_layer = false;
  uint32_t prefetch = 0;  // products (layers) ahead of their use, stage 3
  // Stage 3: of these axes, the innermost ones. The forward pass leaves each rank a share of what
  // it gathered that is cut over these alone, from which the backward pass gathers (ZeRO++'s hpZ,
  // arXiv 2306.10209). Empty: it gathers as the forward pass does.
  std::vector<uint32_t> backward_axes = {};
  // Layers: on the way back the next one is gathered after the kernels of this one and before its
  // reduce-scatter (FSDP's BACKWARD_POST), not beside them.
  bool gathers_behind_backward = false;
  // Stage 3: gathers begin, and sums of gradients end, in the pass through the layer that needs
  // them: a loop over layers whose body is scheduled by itself (XLA without double buffering).
  bool within_layer = false;
  uint32_t cached_layers = 0;  // the first so many layers keep theirs until their backward is done
  // What is gathered is dropped after the forward pass, and gathered once more for the backward
  // pass; layers that are recomputed as a whole drop theirs in any case if the second one says so.
  bool reshard_after_forward = false;
  bool reshards_recomputed = true;
  // Where several micro-batches share a step: what the backward pass of one has used stays gathered
  // for the next, and gradients are summed whole, in the type that they are reduced in, until the
  // last one reduces them (PyTorch's pipelines over FSDP, torch/distributed/pipelining/stage.py:
  // set_reshard_after_backward and set_requires_gradient_sync are false but for the last).
  bool until_last_micro_batch = false;
  ShardCopies copies = ShardCopies::kNone;
  // Gradients are summed over the ranks that share them in fp32; else in the step's precision.
  bool reduces_in_fp32 = false;
  // DeepSpeed counts elements. What comes next is gathered ahead until so many are under way, while
  // fewer than `most_gathered` are held; and gradients wait until there are so many of them. 0: as
  // `prefetch` and `by_layer` say, without a limit.
  uint64_t prefetch_elements = 0;
  uint64_t most_gathered = 0;
  uint64_t reduce_elements = 0;

  bool IsAlong(uint32_t axis) const {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }
};

// Ranks along an axis share each sequence (context parallelism): what depends on a single token is
// done where the token is. Around attention cores, with s tokens over c ranks,
//
//   ring        each rank's keys and values go round in c-1 steps beside attention to those
//               already there; backward they go round again, with their gradients one step behind
//   all-gather  keys and values are gathered before attention, forward and backward, and their
//               gradients reduce-scattered
//   ulysses     all-to-all: a rank has s/c tokens of all heads outside the core, all tokens of 1/c
//               of the heads inside
//
// (Liu et al. 2023; Llama 3, 2024; Jacobs et al. 2023; NVIDIA/TransformerEngine has all three).
enum class ContextKind : uint8_t { kRing, kAllGather, kUlysses };
struct ContextPolicy {
  uint32_t axis = 0;
  ContextKind kind = ContextKind::kRing;
  bool balanced = true;  // ring and all-gather: for a causal mask (sim/schedule/sequence_order.h)
};

// Experts are spread over ranks (expert parallelism): each rank has a share of the experts, and
// all-to-alls send it the tokens that choose them. If several ranks share each expert, they gather
// their tokens before it and reduce-scatter what their parts of it give. Without a policy, every
// rank has all experts.
struct ExpertPolicy {
  std::vector<uint32_t> axes;         // over which experts are spread, outermost first
  std::vector<uint32_t> tensor_axes;  // over which each is shared, outermost first
  bool overlaps_shared = false;       // tokens travel beside the shared expert
  // What goes to the experts is cast to 8 bits, with a scale in fp32 for 128 elements, and widened
  // where it arrives; results come back as they are (DeepSeek-V3, section 3.3.2, arXiv 2412.19437).
  bool narrow_dispatch = false;
  // Tokens travel in so many pieces, each beside the products of another: the first products of a
  // piece begin when it is there, and its results leave when its second ones are done (Tutel's
  // a2a_ffn_overlap_degree, FasterMoE). Ranks do not share experts then.
  uint32_t pieces = 1;
  // Products of pieces are parts of one kernel, tile by tile, as in COMET (arXiv 2502.19811).
  bool tiles = false;
};

// Whether products of tensor parallelism are cut into pieces, so that what they gather by rows, or
// what is reduce-scattered of them, travels beside them (workloads/planner/split_products.h):
//
//   user-buffers  gathered rows come round a ring beside the products of what is there; a product
//                 that is summed is cut into 4 (Transformer Engine's user buffers with their usual
//                 methods: ring_exchange, pipeline, and bulk for what travels beside dX and dW;
//                 Megatron-LM's --tp-comm-overlap)
//   async-tp      a product that is summed is cut into the rows of each rank; the own rows are
//                 copied to where others read them (PyTorch's symmetric memory,
//                 fused_all_gather_matmul and fused_matmul_reduce_scatter; torchtitan's async TP).
//                 Sums of several products, as Llama's dX are, are left whole there too
//                 (pytorch/pytorch, torch/_inductor/fx_passes/micro_pipeline_tp.py)
//   tiles         the same without that copy, and pieces are parts of one kernel that waits for
//                 rows, or passes sums on, tile by tile: a piece takes its share of the kernel's
//                 time (FLUX, arXiv 2406.06858)
enum class SplitProducts : uint8_t { kNone, kUserBuffers, kAsyncTp, kTiles };

struct Strategy {
  std::string name;
  DeviceMesh mesh;
  std::vector<ProductLayouts> products = {};  // of the network's matrices, in their order
  std::optional<ShardPolicy> shard = std::nullopt;
  std::optional<ContextPolicy> context = std::nullopt;
  std::optional<ExpertPolicy> experts = std::nullopt;
  bool asynchronous_input_gradient = false;  // collectives of dX beside the dW product
  // Reduce-scatters of dW beside backward, their results awaited at its end; or, with the next
  // switch, by the sums of those results.
  bool asynchronous_weight_gradient = false;
  bool asynchronous_data_gradient = false;  // sums of dW over the data axes beside backward
  // Gradients are summed over the data axes in buckets of at least so many elements, and updated
  // shares gathered in the same ones (Megatron-Core's bucket_size); 0: each matrix on its own.
  uint64_t bucket_elements = 0;
  // Shares that the previous step has updated are gathered beside this one's forward pass, those of
  // each bucket awaited by its first use (Megatron-Core's overlap_param_gather); else at the end of
  // the step.
  bool gathers_beside_forward = false;
  SplitProducts split_products = SplitProducts::kNone;
  bool gathers_inputs_again = false;  // X is gathered once more for dW rather than kept
  // Each micro-batch is cut into so many chunks that take turns block by block: the collectives
  // of one run beside the work on another (ATP, section 4.1).
  uint32_t chunks = 1;
  // Beside the work on another in the backward pass, too; else what a chunk communicates there is
  // awaited before anything else runs but its own dW product (ATP, section 4.2).
  bool chunks_overlap_backward = true;
  std::vector<AxisCost> costs = {};  // of redistributions, by axis; empty for the defaults
};

// Not where some layers are treated by their number, or elements are counted across layers.
Alike AlikeUnder(const Strategy& strategy);

// Most strategies treat matrices by their role; these are the layouts of each role. Stem and tail
// follow from where second products rest.
struct RoleLayouts {
  ProductLayouts table;
  ProductLayouts qkv;
  ProductLayouts first;
  ProductLayouts second;
  ProductLayouts head;
};
std::vector<ProductLayouts> LayoutsByRole(const Network& network, const RoleLayouts& layouts);

}  // namespace rehearse
