// What every rank of a pipeline does in one training step, in order: the list from which the
// planner plans.
//
// An action takes one micro-batch through one stage. A stage is on one rank of the pipeline, a rank
// has one stage or several. The order of a list counts within each rank; between ranks it follows
// from what they pass on: a forward pass needs that of the previous stage, a gradient that of the
// next stage, and a rank takes values (and gradients) from another one in the order in which they
// are sent. One stage is a pipeline too. Generators are in workloads/planner/pipeline_orders.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace rehearse {

enum class ActionKind : uint8_t {
  kForward,
  // Computes all layers of the stage once more, from its input on. If training recomputes and the
  // list has none of these, the backward pass computes each layer again right before its gradients.
  kRecompute,
  // Both gradients: each product's dW beside the collectives of its dX.
  kBackward,
  // The gradient that the previous stage waits for. With it come the gradients of biases and norms,
  // which the same kernels make.
  kInputGradient,
  // The gradients of matrices, put off until now; what they need is kept until then.
  kWeightGradient,
  kSynchronize,  // gradients of all stages of the rank are summed with those of other ranks
  kUpdate,       // of all stages of the rank
};
inline constexpr size_t kActionKinds = 7;
const char* Name(ActionKind kind);  // "forward", "input gradient", ...
// Whether it makes the gradient that the previous stage waits for.
inline bool GoesBack(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kInputGradient;
}

struct Action {
  uint32_t stage = 0;
  uint32_t micro_batch = 0;  // zero for actions that end the step
  ActionKind kind = ActionKind::kForward;
  bool is_alone = false;  // a forward pass that begins no pair, though a gradient follows

  friend bool operator==(const Action&, const Action&) = default;
};
std::string Describe(const Action& action);  // "weight gradient of micro-batch 3 on stage 1"

// Which rank of a pipeline each stage is on.
struct StagePlaces {
  uint32_t ranks = 1;
  // Copies of the whole model. If there are two (DualPipe), stages of the second come after those
  // of the first, and take the second half of the micro-batches.
  uint32_t copies = 1;
  std::vector<uint32_t> rank_of = {0};  // by stage

  uint32_t stages() const { return static_cast<uint32_t>(rank_of.size()); }
  uint32_t stages_of_copy() const { return stages() / copies; }
  uint32_t CopyOf(uint32_t stage) const { return stage / stages_of_copy(); }
  uint32_t CopyOfMicroBatch(uint32_t micro_batch, uint32_t micro_batches) const {
    return copies == 1 || micro_batch < micro_batches / 2 ? 0 : 1;
  }
  bool IsFirstOfCopy(uint32_t stage) const { return stage % stages_of_copy() == 0; }
  bool IsLastOfCopy(uint32_t stage) const { return (stage + 1) % stages_of_copy() == 0; }
  // The stages of a rank, lowest first.
  std::vector<uint32_t> StagesOf(uint32_t rank) const;
  bool HasSeveralOnARank() const { return stages() > ranks; }
  bool IsLooped() const;  // as Looped() makes it, with several stages per rank
};
// Stage s on rank s.
StagePlaces OneStageARank(uint32_t stages);
// Stage s on rank s mod p, `a_rank` stages each (Narayanan et al. 2021, section 2.2).
StagePlaces Looped(uint32_t ranks, uint32_t a_rank);
// Two stages per rank: down to the last rank and back up (Qi et al. 2024, arXiv 2405.15362).
StagePlaces VShaped(uint32_t ranks);
// Two copies of the model, one the other way round (Li and Hoefler 2021, Chimera, arXiv
// 2107.06925; DeepSeek-V3, arXiv 2412.19437).
StagePlaces BothWays(uint32_t ranks);

// The actions of one rank, in order.
std::vector<Action> OfRank(const std::vector<Action>& actions, const StagePlaces& places,
                           uint32_t rank);
std::vector<Action> OfStage(const std::vector<Action>& actions, uint32_t stage);

// Throws Error at `place`, naming the two actions, unless every stage takes every micro-batch of
// its copy forward once and makes its gradients once (together or apart), every rank ends by
// synchronising and updating (on its lowest stage), no action comes before one that it needs, and
// the ranks can finish.
void CheckActions(const std::vector<Action>& actions, const StagePlaces& places,
                  uint32_t micro_batches, const Place& place = {});
// With one stage per rank.
void CheckActions(const std::vector<Action>& actions, uint32_t stages, uint32_t micro_batches,
                  const Place& place = {});

}  // namespace rehearse
