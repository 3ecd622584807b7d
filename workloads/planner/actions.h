// What every stage of a pipeline does in one training step, in order: the list from which the
// planner plans.
//
// An action takes one micro-batch through one stage. The order of a list counts within each stage;
// between stages it follows from what they hand on: a forward pass needs that of the stage before,
// a gradient that of the stage behind, and a stage takes micro-batches in the order in which its
// neighbour sends them. One stage is a pipeline too. Generators are pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace rehearse {

enum class ActionKind : uint8_t {
  kForward,
  // The layers of the stage once more, all of them from its input on. Where training recomputes and
  // the list has none of these, the backward pass computes each layer again right before its
  // gradients.
  kRecompute,
  // Both gradients: each product's dW beside the collectives of its dX.
  kBackward,
  // What the stage before waits for. With it come the gradients of biases and norms, which the same
  // kernels make.
  kInputGradient,
  // Those of matrices, put off until now; what they need is kept so long.
  kWeightGradient,
  kSynchronize,  // gradients meet over all ranks that have computed a part of them
  kUpdate,
};
inline constexpr size_t kActionKinds = 7;
const char* Name(ActionKind kind);  // "forward", "input gradient", ...

struct Action {
  uint32_t stage = 0;
  uint32_t micro_batch = 0;  // zero for those that end the step
  ActionKind kind = ActionKind::kForward;

  friend bool operator==(const Action&, const Action&) = default;
};
std::string Describe(const Action& action);  // "weight gradient of micro-batch 3 on stage 1"

// Those of one stage, in their order.
std::vector<Action> OfStage(const std::vector<Action>& actions, uint32_t stage);

// Throws Error at `place`, naming the two actions, unless every stage takes every micro-batch
// forward once and makes its gradients once (together or apart), ends by synchronising and
// updating, no action comes before one that it needs, and the stages can finish.
void CheckActions(const std::vector<Action>& actions, uint32_t stages, uint32_t micro_batches,
                  const Place& place = {});

// One micro-batch after the other through all stages and back.
std::vector<Action> OneAfterAnother(uint32_t stages, uint32_t micro_batches);

// All forward, then all back (Huang et al. 2019, GPipe). With equal stages and transfers for
// nothing a stage idles for p-1 of m+p-1 forward and backward passes.
std::vector<Action> GPipe(uint32_t stages, uint32_t micro_batches);

// Stage s keeps at most p-s micro-batches: it goes back with one before it takes the next
// (Narayanan et al. 2021, PipeDream-Flush). As long as GPipe.
std::vector<Action> OneForwardOneBackward(uint32_t stages, uint32_t micro_batches);

// The same with weight gradients apart, those of stage s put off by s micro-batches, so that every
// stage keeps as many (Qi et al. 2023, ZB-H1, arXiv 2401.10241): the last stages fill with them the
// time in which they would wait. A stage idles for (p-1)·(F + B - W) instead of (p-1)·(F + B + W).
std::vector<Action> ZeroBubbleH1(uint32_t stages, uint32_t micro_batches);

}  // namespace rehearse
