// The parameters of a planned step, from their places to their update. Each part guards one thing,
// and knows only those above it:
//
//   places     where each lies, and with which others it travels; fixed with the strategy
//   arrays     the arrays that are there all the time; fixed before the step
//   gathering  which are at hand whole, and who holds them
//   gradients  which gradients are made, and how far each has come on its way
//   update     the optimizer's state, the norm, Adam
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/planner/gradient_sums.h"
#include "workloads/planner/optimizer_update.h"
#include "workloads/planner/parameter_arrays.h"
#include "workloads/planner/parameter_gathering.h"
#include "workloads/planner/parameter_places.h"

namespace rehearse {

struct ParameterOptions {
  AdamAgain validation = kAdamOnce;
  bool sums_by_stage = false;  // sums of gradients wait for GradientSums::SumStage
};

struct Parameters {
  // The parameters of the nodes in a rank's stages. `rests` are the layouts in which the values of
  // the network's nodes rest. All arguments must outlive this.
  Parameters(const Network& network, const Strategy& strategy, const Training& training,
             const std::vector<Layout>& rests, std::vector<const Stage*> stages,
             const ParameterOptions& options, PlanBuilder* plan)
      : places(network, strategy, training, std::move(stages), *plan),
        arrays(places, rests, plan),
        gathering(arrays, plan),
        gradients(arrays, options.sums_by_stage, &gathering, plan),
        update(arrays, options.validation, plan) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Whether all that comes and goes during the step lies outside the buffers [begin, end).
  bool HoldsNothingOf(uint32_t begin, uint32_t end) const {
    return gathering.HoldsNothingOf(begin, end) && gradients.HoldsNothingOf(begin, end);
  }

  const ParameterPlaces places;
  const ParameterArrays arrays;
  ParameterGathering gathering;
  GradientSums gradients;
  OptimizerUpdate update;
};

}  // namespace rehearse
