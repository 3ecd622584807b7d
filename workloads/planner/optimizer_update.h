// The optimizer: its state, the norm of all gradients (one number travels), then Adam.
//
// Adam reads the gradient, reads and writes its state, writes the parameter. Where validation comes
// after the update (workloads/planner/pipeline.h), it does without the norm of the ranks behind:
// the whole norm comes back from the last rank, and the update is done again if it must be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/planner/kernel_costs.h"
#include "workloads/planner/parameter_arrays.h"
#include "workloads/planner/parameter_places.h"
#include "workloads/planner/plan_builder.h"

namespace rehearse {

class OptimizerUpdate {
 public:
  // Both must outlive this. Throws Error if the update is to be validated afterwards and shares are
  // gathered after it, as they would have to be gathered again, or if it cannot be taken back.
  OptimizerUpdate(const ParameterArrays& arrays, AdamAgain validation, PlanBuilder* plan);

  // The state that an earlier step left on the device goes to the host, if that is where it waits,
  // and comes back when gradients are there.
  void SendState();
  void ReturnState();
  void Update();

 private:
  // What Adam reads, and of what the norm is taken: vectors of a group may lie differently.
  struct Operands {
    std::vector<BufferId> gradients;
    std::vector<BufferId> parameters;
    std::vector<BufferId> summands;
    std::vector<double> shares;
  };

  void AddState(const char* name, uint64_t rows, DType dtype);
  void CheckValidation() const;
  Operands OperandsOfAdam() const;
  double ShareOfRanks(const Layout& layout, const std::vector<uint32_t>& share_axes) const;
  OptimizerCosts Costs() const;
  uint32_t UpdatedArrays() const;
  BufferId AddNumber(const std::string& name);
  BufferId GradientNorm(const Operands& operands);
  void SumOverModel(BufferId norm);
  void SumWithRanksBefore(BufferId norm);
  void Validate(std::vector<BufferId> reads, const std::vector<BufferId>& writes);
  bool IsDataAxis(uint32_t axis) const;

  const ParameterArrays& arrays_;
  const ParameterPlaces& places_;
  const Training& training_;
  const AdamAgain validation_;
  const std::vector<uint32_t> data_;  // axes along which no parameter is split or shared
  PlanBuilder& plan_;
  std::vector<BufferId> state_;          // as Adam writes it: kAdam in sim/schedule/kernel.h
  std::vector<BufferId> state_on_host_;  // if it is offloaded
};

}  // namespace rehearse
