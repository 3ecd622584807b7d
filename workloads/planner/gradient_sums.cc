#include "workloads/planner/gradient_sums.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/error.h"

namespace rehearse {

using Issue = PlanBuilder::Issue;

GradientSums::GradientSums(const ParameterArrays& arrays, bool by_stage,
                           ParameterGathering* gathering, PlanBuilder* plan)
    : arrays_(arrays),
      places_(arrays.places()),
      strategy_(places_.strategy()),
      training_(places_.training()),
      by_stage_(by_stage),
      data_(PureDataAxes(strategy_, &places_.network())),
      gathering_(*gathering),
      plan_(*plan),
      made_(places_.count()),
      buckets_(places_.buckets().size()) {
  for (uint32_t i = 0; i < places_.count(); ++i) made_[i].uses_left = places_[i].uses;
}

BufferId GradientSums::Begin(uint32_t index, bool* adds) {
  const uint32_t owner = places_[index].owner;
  Made& made = made_[owner];
  *adds = made.uses_left < places_[owner].uses;
  if (arrays_[owner].block.IsSet()) {
    made.gradient = arrays_[owner].block;
  } else if (!*adds) {
    made.gradient = arrays_.Add(owner, "gradient block of", BufferKind::kBuffer,
                                training_.precision, /*share=*/false);
  }
  return made.gradient;
}

void GradientSums::End(uint32_t index, const ActionContext& action) {
  const uint32_t owner = places_[index].owner;
  Made& made = made_[owner];
  if (--made.uses_left > 0) return;
  made.uses_left = places_[owner].uses;
  made.summand = made.gradient;
  if (places_[owner].Shares(2) && strategy_.shard->until_last_micro_batch) {
    AddToWhole(owner);
  } else if (places_[owner].Shares(2)) {
    ReduceScatterWhenComplete(owner, action);
  } else {
    Accumulate(owner, action);
  }
}

bool GradientSums::HoldsNothingOf(uint32_t begin, uint32_t end) const {
  for (uint32_t i = 0; i < places_.count(); ++i) {
    const BufferId id = made_[i].gradient;
    const bool is_being_made = made_[i].uses_left < places_[i].uses;
    if (is_being_made && id.IsSet() && id.index() >= begin && id.index() < end) return false;
  }
  return true;
}

// ---- to the share -------------------------------------------------------------------------------

// Until the last micro-batch, in the type that they are reduced in.
void GradientSums::AddToWhole(uint32_t index) {
  Made& made = made_[index];
  const double reduced = SizeOf(ReduceType()).value();
  const double elements = places_[index].elements;
  if (made.whole.IsSet()) {
    plan_.AddMemoryOp("accumulate " + places_.ShapeOf(index).name, Kernel::kAccumulate,
                      elements * (plan_.element() + 2 * reduced), {made.gradient, made.whole},
                      {made.whole});
    return;
  }
  if (reduced == plan_.element()) {
    made.whole = made.gradient;
    return;
  }
  made.whole = arrays_.Add(index, "whole gradient of", BufferKind::kBuffer, ReduceType(),
                           /*share=*/false);
  plan_.AddMemoryOp("widen gradient of " + places_.ShapeOf(index).name, Kernel::kCopy,
                    elements * (plan_.element() + reduced), {made.gradient}, {made.whole});
}

// Gradients of a group travel together, once the last of them is there.
void GradientSums::ReduceScatterWhenComplete(uint32_t index, const ActionContext& action) {
  const uint64_t most = strategy_.shard->reduce_elements;
  if (most > 0) {
    double waiting = places_[index].elements;
    for (const uint32_t ended : ended_) waiting += places_[ended].elements;
    if (waiting > static_cast<double>(most)) ReduceEnded(action);
    ended_.push_back(index);
    return;
  }
  ended_.push_back(index);
  size_t members = 0;
  for (uint32_t i = places_[index].group_begin; i < places_[index].group_end; ++i)
    members += places_.IsTrained(i) ? 1 : 0;
  if (ended_.size() >= members) ReduceEnded(action);
}

// Sends finished gradients on their way.
void GradientSums::ReduceEnded(const ActionContext& action) {
  if (ended_.empty()) return;
  if (strategy_.shard->gathers_behind_backward) gathering_.GatherBefore(ended_.front(), 1, action);
  ReduceScatter(ended_);
  for (const uint32_t member : ended_) {
    if (strategy_.asynchronous_weight_gradient && !IsSummedBeside(member)) {
      put_off_.push_back(member);
    } else {
      Accumulate(member, action);
    }
  }
  ended_.clear();
}

DType GradientSums::ReduceType() const {
  return strategy_.shard->reduces_in_fp32 ? DType::kFp32 : training_.precision;
}

// The block as a reduce-scatter takes it.
BufferId GradientSums::Pack(uint32_t index) {
  const double elements = places_[index].elements;
  const double element = plan_.element();
  const double reduced = SizeOf(ReduceType()).value();
  const double from = strategy_.shard->until_last_micro_batch ? reduced : element;
  const double cast = reduced == from ? 0 : from + reduced;
  KernelCost cost;
  switch (strategy_.shard->copies) {
    case ShardCopies::kNone:
      if (cast == 0) return made_[index].gradient;
      cost = {elements * cast, 1};
      break;
    case ShardCopies::kFlat:
      cost = {elements * (2 * from + cast), cast > 0 ? 2u : 1u};
      break;
    case ShardCopies::kPerParameter:
      cost = {elements * (from + reduced), 1};
      break;
    case ShardCopies::kBuckets:
      cost = {elements * (4 * from + cast), 2};
      break;
  }
  const BufferId packed = arrays_.Add(index, "gradient to reduce of", BufferKind::kBuffer,
                                      ReduceType(), /*share=*/false);
  plan_.AddMemoryOp("pack gradient of " + places_.ShapeOf(index).name, Kernel::kCopy, cost,
                    {made_[index].gradient}, {packed});
  return packed;
}

void GradientSums::ReduceScatter(const std::vector<uint32_t>& matrices) {
  const LayerTag tag(&plan_, plan_.tag().layer);
  const uint32_t first = matrices.front();
  std::vector<BufferId> wholes;
  std::vector<BufferId> shares;
  double elements = 0;
  for (const uint32_t index : matrices) {
    CHECK(places_[index].share_axes == places_[first].share_axes);
    if (strategy_.shard->reduce_elements > 0) plan_.set_layer(places_.ShapeOf(index).layer);
    made_[index].summand =
        arrays_.Add(index, "gradient shard of", BufferKind::kBuffer, ReduceType(), /*share=*/true);
    wholes.push_back(Pack(index));
    shares.push_back(made_[index].summand);
    elements += places_[index].elements;
  }
  const std::string what = matrices.size() > 1 ? "layer" : places_.ShapeOf(first).name;
  plan_.AddCollective(
      "reduce-scatter " + what, CollectiveKind::kReduceScatter, places_[first].share_axes,
      elements * SizeOf(ReduceType()).value(), ReduceType(),
      strategy_.asynchronous_weight_gradient ? Issue::kAsynchronous : Issue::kBlocking, wholes,
      shares);
}

// ---- over micro-batches -------------------------------------------------------------------------

// Whether shares are reduce-scattered, and then summed over other axes, both beside backward: each
// sum begins when the share is there, as in PyTorch's hybrid sharding.
bool GradientSums::IsSummedBeside(uint32_t index) const {
  return strategy_.asynchronous_weight_gradient && strategy_.asynchronous_data_gradient &&
         places_[index].Shares(2) && !places_[index].sum_axes.empty();
}

void GradientSums::Accumulate(uint32_t index, const ActionContext& action) {
  const MatrixPlace& place = places_[index];
  if (places_.SumsOnHost(index)) {
    AccumulateOnHost(index);
    return;
  }
  const BufferId sum = arrays_[index].main_gradient;
  const std::string name = "accumulate " + places_.ShapeOf(index).name;
  // A product that adds to the sum itself leaves nothing to do (its own traffic is counted there).
  const bool is_fused = training_.fused_accumulation && !place.Shares(2) && !place.is_looked_up;
  const double read = place.Shares(2) ? SizeOf(ReduceType()).value() : plan_.element();
  const double bytes = place.GradientElements() * (read + 2 * places_.gradient_element());
  const std::vector<BufferId> reads = {made_[index].summand, sum};
  if (IsSummedBeside(index)) {
    // Placed where the backward pass does not wait for it: FSDP has its reduce-scatters' stream for
    // this.
    if (!beside_.IsSet()) beside_ = plan_.AddStream("gradients", StreamKind::kCompute);
    plan_.AddMemoryOpBeside(name, Kernel::kAccumulate, bytes, beside_, reads, {sum});
  } else {
    plan_.AddMemoryOp(name, Kernel::kAccumulate, is_fused ? KernelCost{0, 0} : KernelCost{bytes, 1},
                      reads, {sum});
  }
  // If two stages of the rank use a matrix, its gradient is complete on the owner's stage.
  const bool is_complete = action.makes_last_gradients && action.stage->HasMatrix(index);
  if (is_complete && strategy_.asynchronous_data_gradient) SumBeside(index);
}

// The sum of earlier micro-batches comes to the device, where each one adds its own, and goes back
// (deepspeedai/DeepSpeed, runtime/zero/stage3.py, partition_grads).
void GradientSums::AccumulateOnHost(uint32_t index) {
  Made& made = made_[index];
  const std::string& name = places_.ShapeOf(index).name;
  const std::string step = "accumulate " + name;
  const BufferId on_host = arrays_[index].host_gradient;
  const DType type = training_.gradients;
  const double elements = places_[index].share_elements;
  const double read = SizeOf(ReduceType()).value();
  BufferId sum = made.summand;
  if (made.is_on_host) {
    sum = arrays_.Add(index, "summed gradient of", BufferKind::kBuffer, type, /*share=*/true);
    plan_.ReturnFromHost("return gradient of " + name, {on_host}, {sum}, plan_.LastCompute());
    plan_.AddMemoryOp(step, Kernel::kAccumulate, elements * (read + 2 * places_.gradient_element()),
                      {made.summand, sum}, {sum});
  } else if (ReduceType() != type) {
    sum = arrays_.Add(index, "summed gradient of", BufferKind::kBuffer, type, /*share=*/true);
    plan_.AddMemoryOp(step, Kernel::kCopy, elements * (read + places_.gradient_element()),
                      {made.summand}, {sum});
  }
  made.is_on_host = true;
  plan_.SendToHost("offload gradient of " + name, {sum}, {on_host}, plan_.LastCompute());
}

void GradientSums::Finish(const ActionContext& action) {
  if (action.makes_last_gradients) ReduceWholes(action);
  if (strategy_.shard && strategy_.shard->reduce_elements > 0) ReduceEnded(action);
  CHECK(ended_.empty());
  for (const uint32_t index : put_off_) {
    plan_.set_layer(places_.ShapeOf(index).layer);
    Accumulate(index, action);
  }
  put_off_.clear();
}

// What was summed whole, once the stage's last backward pass is done.
void GradientSums::ReduceWholes(const ActionContext& action) {
  for (uint32_t index = 0; index < places_.count(); ++index) {
    Made& made = made_[index];
    if (!made.whole.IsSet() || !action.stage->HasMatrix(index)) continue;
    plan_.set_layer(places_.ShapeOf(index).layer);
    made.gradient = made.whole;
    made.whole = BufferId();
    ReduceScatterWhenComplete(index, action);
  }
}

// ---- over ranks ---------------------------------------------------------------------------------

// The matrix's gradient is complete: its sum, or that of its bucket, may run beside what follows.
void GradientSums::SumBeside(uint32_t index) {
  const std::optional<uint32_t> bucket = places_[index].bucket;
  if (!bucket) {
    Sum({index}, Issue::kAsynchronous);
    return;
  }
  const bool is_complete = ++buckets_[*bucket].ended == places_.buckets()[*bucket].matrices.size();
  if (is_complete && !by_stage_) SumBucket(*bucket, Issue::kAsynchronous);
}

void GradientSums::SumStage(uint32_t stage) {
  if (!by_stage_ || !strategy_.asynchronous_data_gradient) return;
  for (uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const ParameterBucket& planned = places_.buckets()[bucket];
    const bool is_complete = buckets_[bucket].ended == planned.matrices.size();
    if (planned.stage == stage && !buckets_[bucket].is_summed && is_complete)
      SumBucket(bucket, Issue::kAsynchronous);
  }
}

void GradientSums::SumBucket(uint32_t bucket, Issue issue) {
  const std::vector<uint32_t>& matrices = places_.buckets()[bucket].matrices;
  const LayerTag tag(&plan_, places_.ShapeOf(matrices.back()).layer);
  buckets_[bucket].is_summed = true;
  Sum(matrices, issue);
}

// Sums over all axes that split the batch, in which the matrices are alike. In stage 1 ranks that
// share the optimizer's state leave each a share, which is all that replicas sum (Megatron-LM's
// num_distributed_optimizer_instances, param_and_grad_buffer.py). What ranks of a model sum, such
// as a router's gradient over sequence parallel ones, is whole.
void GradientSums::Sum(const std::vector<uint32_t>& matrices, Issue issue) {
  const MatrixPlace& first = places_[matrices.front()];
  const std::string what =
      matrices.size() > 1 ? "gradients" : "gradient of " + places_.ShapeOf(matrices.front()).name;
  std::vector<BufferId> wholes;
  std::vector<BufferId> shares;
  double elements = 0;
  double shared_elements = 0;
  for (const uint32_t index : matrices) {
    wholes.push_back(arrays_[index].main_gradient);
    shares.push_back(arrays_[index].update_gradient);
    elements += places_[index].GradientElements();
    shared_elements += places_[index].UpdatedElements();
  }
  const double element = places_.gradient_element();
  std::vector<uint32_t> replicas;
  std::vector<uint32_t> others;
  for (const uint32_t axis : first.sum_axes) {
    const bool sums_shares =
        first.SumsShare() && std::find(data_.begin(), data_.end(), axis) != data_.end();
    (sums_shares ? replicas : others).push_back(axis);
  }
  const auto all_reduce = [&](const std::vector<uint32_t>& axes, double summed,
                              const std::vector<BufferId>& arrays) {
    if (axes.empty()) return;
    plan_.AddCollective("all-reduce " + what, CollectiveKind::kAllReduce, axes, summed * element,
                        training_.gradients, issue, arrays, arrays);
  };
  all_reduce(others, elements, wholes);
  if (first.SumsShare())
    plan_.AddCollective("reduce-scatter " + what, CollectiveKind::kReduceScatter, first.share_axes,
                        elements * element, training_.gradients, issue, wholes, shares);
  all_reduce(replicas, shared_elements, shares);
}

void GradientSums::Synchronize() {
  if (!strategy_.asynchronous_data_gradient) {
    for (const uint32_t index : places_.TrainedOwners()) {
      if (places_[index].bucket) continue;
      plan_.set_layer(places_.ShapeOf(index).layer);
      Sum({index}, Issue::kBlocking);
    }
    for (uint32_t bucket = 0; bucket < buckets_.size(); ++bucket)
      SumBucket(bucket, Issue::kBlocking);
  }
  // What was not complete yet when its stage was summed.
  for (uint32_t stage = 0; stage < places_.stages().size(); ++stage) SumStage(stage);
  for (const BucketState& bucket : buckets_) CHECK(!by_stage_ || bucket.is_summed);
  SumOverStages();
  plan_.set_layer(-1);
  SumVectors();
}

// Each of two stages has the gradient from its own use of a matrix, and each copy of the model
// those of its own micro-batches.
void GradientSums::SumOverStages() {
  const Stage& stage = *places_.stages().front();
  for (uint32_t index = 0; index < places_.count(); ++index) {
    const SharedMatrix* const shared = places_[index].shared;
    if (places_.ShapeOf(index).is_frozen) continue;
    if (shared == nullptr && (!stage.mirror || !places_.IsOwner(index))) continue;
    const NetworkMatrix& array = places_.ArrayOf(index);
    plan_.set_layer(array.layer);
    SumWithRank(" of " + array.name, stage.mirror ? stage.rank : shared->first_rank,
                stage.mirror ? *stage.mirror : shared->other_rank, places_[index].UpdatedElements(),
                training_.gradients, arrays_[index].update_gradient);
  }
  if (!stage.mirror) return;
  plan_.set_layer(-1);
  for (const VectorGroup& group : arrays_.groups()) {
    if (group.is_frozen) continue;
    SumWithRank("s of biases and norms", stage.rank, *stage.mirror,
                static_cast<double>(group.elements), DType::kFp32, group.gradient);
  }
}

void GradientSums::SumWithRank(const std::string& what, uint32_t rank, uint32_t other,
                               double elements, DType dtype, BufferId gradient) {
  Collective collective;
  collective.communicator = plan_.PairsOf(std::min(rank, other), std::max(rank, other));
  collective.bytes = elements * SizeOf(dtype);
  collective.dtype = dtype;
  plan_.AddCollective("all-reduce gradient" + what, collective, Issue::kBlocking, {gradient},
                      {gradient});
}

void GradientSums::SumVectors() {
  for (const VectorGroup& group : arrays_.groups()) {
    if (group.is_frozen) continue;
    const double bytes = static_cast<double>(group.elements) * SizeOf(DType::kFp32).value();
    for (const std::vector<uint32_t>& axes : AxesInTurn(group.sum_axes))
      plan_.AddCollective("all-reduce gradients of biases and norms", CollectiveKind::kAllReduce,
                          axes, bytes, DType::kFp32, Issue::kBlocking, {group.gradient},
                          {group.gradient});
  }
}

// Axes that are more than data axes go one by one, as frameworks have a group for each (parts of an
// axis count as one); the others go together.
std::vector<std::vector<uint32_t>> GradientSums::AxesInTurn(
    const std::vector<uint32_t>& axes) const {
  std::vector<std::vector<uint32_t>> sets;
  std::vector<uint32_t> together;
  for (const uint32_t axis : axes) {
    if (std::find(data_.begin(), data_.end(), axis) != data_.end()) {
      together.insert(together.begin(), axis);
      continue;
    }
    const std::string& part_of = plan_.mesh().axes()[axis].part_of;
    const bool goes_on = !sets.empty() && !part_of.empty() &&
                         plan_.mesh().axes()[sets.back().back()].part_of == part_of;
    if (goes_on) {
      sets.back().insert(sets.back().begin(), axis);
    } else {
      sets.push_back({axis});
    }
  }
  if (!together.empty()) sets.push_back(std::move(together));
  return sets;
}

}  // namespace rehearse
