// The planner: from a GPT, a strategy and the run's numbers to the Schedule of one training step.
//
// The step is: for each micro-batch forward, loss, backward (with full recomputation each layer's forward
// once more); then the gradients' synchronisation over the data axes, the gradient norm and the Adam
// update. Every op of a Megatron-style training step is there: products, fused attention core, norms,
// biases, GELU, dropout, residuals, embedding, cross entropy, accumulation, optimizer.
//
// Collectives follow from the layouts: a product's partial sums, the gradient of its input, the gradient
// of its weight, and every change of layout between a product and the resting layout of its neighbours.
// Partial sums are added up before anything is gathered, so that the smaller array travels.
// Weights are stored n×k, as PyTorch does: forward is NT, dX NN, dW TN. Arithmetic is bf16; gradients are accumulated and all-reduced over data in fp32 and Adam keeps fp32
// master weights and moments (2 + 4 + 12 bytes a parameter), as Megatron-LM does.
#pragma once

#include "sim/error.h"
#include "sim/schedule.h"
#include "workloads/gpt_strategy.h"
#include "workloads/model.h"

namespace rehearse {

// The schedule has one role and mesh.size() ranks. Throws Error (at `place`) when a dimension cannot be
// split as the layouts ask, naming the tensor, the axis and the sizes: heads, hidden, vocabulary, the
// batch over data and depth and micro-batches, cached layers beyond the model's.
Schedule PlanGpt(const GptModel& model, const Training& training, const GptStrategy& strategy,
                 const Place& place = {});

}  // namespace rehearse
