// The way of a gradient: product -> block in the plan's precision -> reduce-scatter to the share
// (stages 2, 3) -> accumulated over micro-batches (in fp32 unless said otherwise) -> all-reduced
// over the axes that split the batch -> summed with that of the other pipeline stage that has the
// matrix.
//
// The sum of a bucket (workloads/planner/parameter_places.h) begins when the last of its gradients
// is there, with several stages on a rank when a whole stage is (SumStage).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/planner/action_context.h"
#include "workloads/planner/parameter_arrays.h"
#include "workloads/planner/parameter_gathering.h"
#include "workloads/planner/parameter_places.h"
#include "workloads/planner/plan_builder.h"

namespace rehearse {

class GradientSums {
 public:
  // If `by_stage`, the sums of buckets wait for SumStage. All others must outlive this; what is
  // gathered behind a gradient is gathered by `gathering`.
  GradientSums(const ParameterArrays& arrays, bool by_stage, ParameterGathering* gathering,
               PlanBuilder* plan);

  // The gradient of a block, to be written, or added to if `*adds` comes back true; then End.
  BufferId Begin(uint32_t index, bool* adds);
  void End(uint32_t index, const ActionContext& action);
  // Does what the action has put off: sums that are awaited only at its end.
  void Finish(const ActionContext& action);

  // Begins to sum the gradients in buckets that are complete, of the rank's `stage`-th stage.
  void SumStage(uint32_t stage);
  // Sums over all ranks what has not been summed yet. Gradients of matrices are all-reduced over
  // all axes that split the batch and do not share them (stage 1: reduce-scattered over the axis
  // that shares the optimizer's state), those of vectors over every axis that splits their rows.
  void Synchronize();

  // Whether all gradients that are being made lie outside the buffers [begin, end).
  bool HoldsNothingOf(uint32_t begin, uint32_t end) const;

 private:
  struct Made {
    uint32_t uses_left = 0;   // in this micro-batch
    BufferId gradient;        // of the block, while it is made
    BufferId summand;         // that, or this rank's share of its sum, until it is accumulated
    BufferId whole;           // the sum over micro-batches that is reduced with the last one
    bool is_on_host = false;  // the sum over micro-batches, so far
  };
  struct BucketState {
    uint32_t ended = 0;  // of its matrices
    bool is_summed = false;
  };

  void AddToWhole(uint32_t index);
  void AccumulateOnHost(uint32_t index);
  void ReduceWholes(const ActionContext& action);
  void ReduceScatterWhenComplete(uint32_t index, const ActionContext& action);
  void ReduceEnded(const ActionContext& action);
  void ReduceScatter(const std::vector<uint32_t>& matrices);
  BufferId Pack(uint32_t index);
  DType ReduceType() const;
  bool IsSummedBeside(uint32_t index) const;
  void Accumulate(uint32_t index, const ActionContext& action);
  void SumBeside(uint32_t index);
  void SumBucket(uint32_t bucket, PlanBuilder::Issue issue);
  void Sum(const std::vector<uint32_t>& matrices, PlanBuilder::Issue issue);
  void SumOverStages();
  void SumWithRank(const std::string& what, uint32_t rank, uint32_t other, double elements,
                   DType dtype, BufferId gradient);
  void SumVectors();
  std::vector<std::vector<uint32_t>> AxesInTurn(const std::vector<uint32_t>& axes) const;

  const ParameterArrays& arrays_;
  const ParameterPlaces& places_;
  const Strategy& strategy_;
  const Training& training_;
  const bool by_stage_;
  const std::vector<uint32_t> data_;  // axes along which only experts are split or shared
  ParameterGathering& gathering_;
  PlanBuilder& plan_;
  std::vector<Made> made_;  // by matrix
  std::vector<BucketState> buckets_;
  std::vector<uint32_t> ended_;    // matrices whose gradients wait for those of their group
  std::vector<uint32_t> put_off_;  // matrices whose shares are accumulated at the end of backward
  StreamId beside_;                // where shares are accumulated that are summed beside backward
};

}  // namespace rehearse
