// The planner: turns a network, a strategy and the run's numbers into the Schedule of one training
// step.
//
// The step is a list of actions (workloads/planner/actions.h). PlanStep's list is: for each
// micro-batch forward, loss, backward (with full recomputation each layer's forward once more);
// then the gradients' synchronisation over the data axes, the gradient norm and the Adam update.
//
// Collectives follow from the layouts: a product's partial sums, the gradient of its input, the
// gradient of its weight, and every change of layout between a product and the resting layout of
// its neighbours, each by the cheapest path. Weights are stored n×k, as PyTorch does: forward is
// NT, dX NN, dW TN. Every op says what it computes (sim/schedule/kernel.h) and every buffer what it
// holds, so that a backend can execute it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/progress.h"
#include "sim/schedule/schedule.h"
#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/planner/actions.h"
#include "workloads/planner/pipeline.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

// Up to this many micro-batches are all planned; of more, equal ones are kept once (Repeat in
// sim/schedule/schedule.h).
inline constexpr uint32_t kFewMicroBatches = 8;

// Sees a role that has the buffers that live as long as the step, and no ops yet. What it throws
// ends the planning.
using KeptCheck = std::function<void(const Role&)>;

// The schedule has one role and mesh.size() ranks. Throws Error (at `place`) when a dimension
// cannot be split as the layouts ask, when two layouts cannot meet, or when a product's operands do
// not match, naming the tensor, the axis and the sizes.
Schedule PlanStep(const Network& network, const Training& training, const Strategy& strategy,
                  const Place& place = {}, const KeptCheck& check_kept = {});

// A pipeline (workloads/planner/pipeline.h): the network is cut into stages of so many units each,
// and every rank of the pipeline is a whole mesh of the strategy, rank r of the p-th being rank
// p·mesh + r. There is a role for each; ranks with the same coordinates pass values on and
// gradients back along the communicator "stages", in their resting layouts. A matrix that stages of
// two ranks share is kept by both, and their gradients are added up. Throws Error as PlanStep does,
// and if CheckActions or CutIntoStages find a mistake. The observer hears of each role.
Schedule PlanPipeline(const Network& network, const Training& training, const Strategy& strategy,
                      const StagePipeline& pipeline, const Place& place = {},
                      uint32_t few_micro_batches = kFewMicroBatches,
                      ProgressObserver& observer = NoObserver(), const KeptCheck& check_kept = {});
// One stage per rank.
Schedule PlanStages(const Network& network, const Training& training, const Strategy& strategy,
                    const std::vector<uint32_t>& units_of_stage, const std::vector<Action>& actions,
                    const Place& place = {}, uint32_t few_micro_batches = kFewMicroBatches);

// The same step on one rank, which gives the same numbers: if a strategy works in chunks, there are
// that many times more micro-batches, so that dropout draws the same.
Schedule PlanSerialStep(const Network& network, const Training& training, uint32_t chunks);

}  // namespace rehearse
