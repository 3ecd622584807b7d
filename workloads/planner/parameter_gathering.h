// Which parameters are at hand whole, and since when: sharded ones are gathered before their use.
//
// A gathered matrix belongs to the micro-batches that hold it, from their first product with it
// until they give it back; the last one to do so frees it.
//
// Gathers beside the forward pass (Megatron-Core's distributed optimizer) are those of the previous
// step: each step begins with updated shares, gathers the first bucket, which is waited for, and at
// the first use of each bucket the next one. A rank with several stages gathers whole stages.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/planner/action_context.h"
#include "workloads/planner/parameter_arrays.h"
#include "workloads/planner/parameter_places.h"
#include "workloads/planner/plan_builder.h"

namespace rehearse {

class ParameterGathering {
 public:
  // Both must outlive this.
  ParameterGathering(const ParameterArrays& arrays, PlanBuilder* plan);

  // The whole block of a matrix, gathered if it is not at hand. With prefetching the gathers of the
  // next ones are issued now, before this one's product; FetchBackward prefetches the other way,
  // and so does Fetch when layers are recomputed one by one on the way back, if layers are
  // gathered.
  BufferId Fetch(uint32_t index, const ActionContext& action);
  BufferId FetchBackward(uint32_t index, const ActionContext& action);
  // The same, as the products Y = X·W^T and dX = dY·W take it: if they are narrow
  // (workloads/planner/casts.h), the copy, cast if it is not yet.
  BufferId Operand(uint32_t index, const ActionContext& action);
  BufferId OperandBackward(uint32_t index, const ActionContext& action);
  // The micro-batch has no more use for it.
  void Release(uint32_t matrix, const ActionContext& action);
  // What the forward pass need not keep of a layer's matrices [begin, end).
  void ReleaseAfterForward(uint32_t begin, uint32_t end, const ActionContext& action);
  // The way back through the action's stage is done, and with it what is kept until then: with
  // PyTorch's FSDP the matrices outside the layers, which are the root's. It reshards after neither
  // pass of its own layers' units (pytorch/pytorch, _fsdp_state.py, _lazy_init: "For the root, do
  // not reshard after forward"; _runtime_utils.py, _post_forward_reshard: "not state._is_root").
  // Tied ones are gathered for each of their products instead.
  void EndBackward(const ActionContext& action);
  // Gathers, of the `groups` groups before the index-th matrix's own, those that belong to layers
  // and will be read again.
  void GatherBefore(uint32_t index, uint32_t groups, const ActionContext& action);

  // Begins to gather what an earlier step has updated in shares of the rank's `stage`-th stage, if
  // that is done beside the forward pass, in the order in which that uses it.
  void GatherStage(uint32_t stage);
  // Gathers what this step has updated in shares, if the next one does not.
  void GatherUpdated();

  // From now on, the numbers of the micro-batches under way are higher by `count`.
  void SkipMicroBatches(uint32_t count);
  // Whether everything gathered lies outside the buffers [begin, end).
  bool HoldsNothingOf(uint32_t begin, uint32_t end) const;

 private:
  struct Held {
    BufferId gathered;              // set while a whole copy is at hand
    BufferId landed;                // what a gather leaves, until it is copied there
    BufferId narrow;                // the copies for narrow products,
    BufferId narrow_of;             // and of which whole block they are at hand
    std::vector<uint32_t> holders;  // micro-batches, of the gathered copy
  };

  void Gather(uint32_t index, const ActionContext& action);
  void LeaveNearShare(uint32_t index, const ActionContext& action);
  void TakeWhole(uint32_t index);
  bool IsOfRoot(uint32_t matrix) const;
  void Drop(uint32_t matrix, const ActionContext& action);
  BufferId Pack(uint32_t index);
  void Unpack(uint32_t index);
  void Hold(uint32_t index, uint32_t micro_batch);
  bool MayGatherMore(double ahead) const;
  bool IsComputedAgain(uint32_t matrix, const ActionContext& action) const;
  bool IsOfSameLayer(uint32_t a, uint32_t b) const;
  uint32_t EndAhead(uint32_t index, const ActionContext& action) const;
  BufferId NarrowOf(uint32_t index, BufferId whole, bool turned);
  void Freshen(uint32_t index);
  void GatherBucket(uint32_t bucket, PlanBuilder::Issue issue);
  void GatherShares(const std::vector<uint32_t>& matrices, PlanBuilder::Issue issue);

  const ParameterArrays& arrays_;
  const ParameterPlaces& places_;
  const Network& network_;
  const Strategy& strategy_;
  const Training& training_;
  PlanBuilder& plan_;
  std::vector<Held> held_;                // by matrix
  std::vector<bool> is_bucket_gathered_;  // in this step
};

}  // namespace rehearse
