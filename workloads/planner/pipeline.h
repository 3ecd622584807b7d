// A pipeline over any strategy: which stages there are, on which ranks, in which order they work,
// and how messages travel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/schedule/alike.h"
#include "sim/schedule/kernel.h"
#include "workloads/networks/network.h"
#include "workloads/planner/actions.h"
#include "workloads/planner/pair_order.h"
#include "workloads/planner/pipeline_orders.h"

namespace rehearse {

struct StagePipeline {
  StagePlaces places;
  std::vector<uint32_t> units_of_stage;  // of one copy of the model
  std::vector<Action> actions;
  // Messages travel beside the work on other micro-batches. Otherwise the next kernel waits for
  // what is sent, and a receive is posted by the action that needs it (Megatron-LM's 1F1B).
  bool overlaps_messages = true;
  // Axes of the mesh along which ranks hold the same values: each sends its part, and the receivers
  // gather them (Megatron-LM's scatter/gather, Narayanan et al. 2021, section 4.1).
  std::vector<uint32_t> scattered_axes = {};
  // Receives are posted ahead, but kernels wait for what has been sent before them: sends and the
  // receives of the next action go as one batch (Megatron-LM's interleaved 1F1B without
  // --overlap-p2p-communication).
  bool batches_messages = false;
  // Memory of a stage for what it receives of every micro-batch, values and gradients, is there the
  // whole step, and so is what it makes of them: logits too, on the last one. So has PyTorch's
  // pipelining it (pytorch/pytorch, torch/distributed/pipelining/stage.py: _prepare_forward_infra
  // and _create_grad_recv_info make a buffer for each chunk, forward_one_chunk appends to
  // output_chunks, which clear_runtime_states empties when the next step begins).
  bool keeps_messages = false;
  // A forward pass and the backward pass of another micro-batch right after it take turns: where
  // one has sent tokens to experts or got them back, the other goes on, so that what travels does
  // so beside the other's kernels (DualPipe; Megatron-LM's --overlap-moe-expert-parallel-comm).
  bool pairs_passes = false;
  PairOrder pair_order = {};  // instead of turns: the order of the pairs' parts
  // Ranks update with the gradient norm of the ranks up to theirs, and put the update right if the
  // whole norm says so, which they get while they begin their next step (Qi et al. 2023, section 4,
  // arXiv 2401.10241). Otherwise all of them wait for the whole norm.
  AdamAgain validation = kAdamOnce;
};

// Stages cut the layers apart.
inline Alike AlikeUnder(const StagePipeline&) { return {.layers = false}; }

enum class PipelineSchedule : uint8_t {
  kGPipe,
  kOneForwardOneBackward,
  kInterleaved,
  kBreadthFirst,
  kZeroBubbleH1,
  kZeroBubbleH2,
  kZeroBubble1p,
  kZeroBubble2p,
  kZeroBubbleV,
  kDualPipe,
  kDualPipeV,
};
struct PipelineScheduleFacts {
  PipelineSchedule schedule;
  const char* name;     // "1f1b"
  const char* summary;  // one line
  const char* source;
  uint32_t fewest_stages_a_rank;  // of one copy
  uint32_t most_stages_a_rank;    // 0: any
};
const std::vector<PipelineScheduleFacts>& PipelineSchedules();

// Places and actions of `ranks` with `a_rank` stages each. Throws Error at `place` if the order
// does not work with so many ranks, stages or micro-batches. If passes go in pairs, ranks of 1F1B
// and of interleaved 1F1B take one more forward pass before the first pair, so that the two of each
// pair are independent (NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py,
// combined_1f1b.py).
struct PipelineOrder {
  StagePlaces places;
  std::vector<Action> actions;
};
PipelineOrder OrderOf(PipelineSchedule schedule, uint32_t ranks, uint32_t a_rank,
                      uint32_t micro_batches, const StageTimes& times, const Place& place = {},
                      bool pairs_passes = false);

// F, B and W of one stage in flops, with `stages` equal ones: the times that an order by times uses
// if none are given. A recomputed layer adds its forward pass to B.
StageTimes TimesByFlops(const Network& network, const Training& training);
// What an unfused attention core stores of its scores is not needed for weight gradients; 1 if it
// is fused, or if anything is recomputed.
double KeptForWeights(const Network& network, const Training& training);

}  // namespace rehearse
