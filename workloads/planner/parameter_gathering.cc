#include "workloads/planner/parameter_gathering.h"

#include <algorithm>
#include <string>

#include "workloads/planner/casts.h"

namespace rehearse {

using Issue = PlanBuilder::Issue;

ParameterGathering::ParameterGathering(const ParameterArrays& arrays, PlanBuilder* plan)
    : arrays_(arrays),
      places_(arrays.places()),
      network_(places_.network()),
      strategy_(places_.strategy()),
      training_(places_.training()),
      plan_(*plan),
      held_(places_.count()),
      is_bucket_gathered_(places_.buckets().size()) {
  for (uint32_t i = 0; i < places_.count(); ++i) held_[i].narrow = arrays[i].narrow;
}

void ParameterGathering::Hold(uint32_t index, uint32_t micro_batch) {
  std::vector<uint32_t>& holders = held_[index].holders;
  if (std::find(holders.begin(), holders.end(), micro_batch) == holders.end())
    holders.push_back(micro_batch);
}

void ParameterGathering::Release(uint32_t matrix, const ActionContext& action) {
  // What stays until the last micro-batch is cast again for each.
  const auto& shard = strategy_.shard;
  if (shard && shard->until_last_micro_batch && places_[matrix].Shares(3)) {
    held_[matrix].narrow_of = BufferId();
    return;
  }
  if (!IsOfRoot(matrix)) Drop(matrix, action);
}

bool ParameterGathering::IsOfRoot(uint32_t matrix) const {
  if (!places_.KeepsMasters() || !places_[matrix].Shares(3)) return false;
  if (places_.ShapeOf(matrix).layer >= 0) return false;
  for (uint32_t other = 0; other < places_.count(); ++other)
    if (other != matrix && places_[other].owner == places_[matrix].owner) return false;
  return true;
}

void ParameterGathering::EndBackward(const ActionContext& action) {
  if (!strategy_.shard) return;
  if (strategy_.shard->until_last_micro_batch && !action.makes_last_gradients) return;
  const LayerTag tag(&plan_, -1);
  for (uint32_t index = 0; index < places_.count(); ++index) {
    const BufferId gathered = held_[index].gathered;
    if (!gathered.IsSet() || !action.stage->HasMatrix(index) || !IsOfRoot(index)) continue;
    plan_.AddMemoryOp("reshard " + places_.ShapeOf(index).name, Kernel::kCopy, KernelCost{0, 0},
                      {gathered}, {gathered});
    Drop(index, action);
  }
}

void ParameterGathering::Drop(uint32_t matrix, const ActionContext& action) {
  if (!action.is_last_chunk) return;
  Held& held = held_[matrix];
  std::erase(held.holders, action.micro_batch);
  if (held.holders.empty()) held.gathered = held.landed = BufferId();
}

void ParameterGathering::SkipMicroBatches(uint32_t count) {
  for (Held& held : held_) {
    for (uint32_t& holder : held.holders) holder += count;
  }
}

bool ParameterGathering::HoldsNothingOf(uint32_t begin, uint32_t end) const {
  const auto is_there = [&](BufferId id) {
    return id.IsSet() && id.index() >= begin && id.index() < end;
  };
  return std::none_of(held_.begin(), held_.end(), [&](const Held& held) {
    return held.gathered.IsSet() && (is_there(held.gathered) || is_there(held.narrow));
  });
}

// ---- what ZeRO-3 shards -------------------------------------------------------------------------

// The share as a gather takes it: cast from fp32, and copied into its buffer.
BufferId ParameterGathering::Pack(uint32_t index) {
  constexpr double kMaster = 4;  // bytes of an element of a share in fp32
  const DType type = places_.GatheredType(index);
  const ShardCopies copies = strategy_.shard->copies;
  const bool from_master = copies == ShardCopies::kFlat || copies == ShardCopies::kPerParameter;
  BufferId share = arrays_[index].parameter;
  if (places_.IsOnHost(index)) {
    share = arrays_.Add(index, "share from host of", BufferKind::kBuffer, places_.KeptType(index),
                        /*share=*/true);
    plan_.ReturnFromHost("fetch " + places_.ShapeOf(index).name, {arrays_[index].parameter},
                         {share}, plan_.LastCompute());
  }
  if (!from_master && type == training_.precision) return share;
  const double element = SizeOf(type).value();
  const double from = from_master ? kMaster : plan_.element();
  const double cast = element == from ? 0 : element + from;
  const double copy = copies == ShardCopies::kPerParameter ? 2 * element : 0;
  const BufferId packed =
      arrays_.Add(index, "share to gather of", BufferKind::kBuffer, type, /*share=*/true);
  plan_.AddMemoryOp("pack " + places_.ShapeOf(index).name, Kernel::kCopy,
                    KernelCost{places_[index].share_elements * (cast + copy), copy > 0 ? 2u : 1u},
                    {share}, {packed});
  return packed;
}

// Turns what has been gathered into parameters, before their first use.
void ParameterGathering::Unpack(uint32_t index) {
  for (uint32_t i = places_[index].group_begin; i < places_[index].group_end; ++i) {
    Held& held = held_[i];
    if (!held.landed.IsSet()) continue;
    const LayerTag tag(&plan_, places_.ShapeOf(i).layer);
    plan_.AddMemoryOp(
        "unpack " + places_.ShapeOf(i).name, Kernel::kCopy,
        KernelCost{2 * places_[i].elements * SizeOf(places_.GatheredType(i)).value(), 1},
        {held.landed}, {held.gathered});
    held.landed = BufferId();
  }
}

void ParameterGathering::Gather(uint32_t index, const ActionContext& action) {
  const uint32_t micro_batch = action.micro_batch;
  const MatrixPlace& place = places_[index];
  Hold(index, micro_batch);
  if (held_[index].gathered.IsSet()) return;
  if (!place.Shares(3)) {
    TakeWhole(index);
    return;
  }
  const LayerTag tag(&plan_, places_.ShapeOf(index).layer);
  const ShardCopies copies = strategy_.shard->copies;
  const bool is_near = action.goes_backward && !strategy_.shard->backward_axes.empty();
  std::vector<BufferId> shares;
  std::vector<BufferId> wholes;
  double elements = 0;
  for (uint32_t i = place.group_begin; i < place.group_end; ++i) {
    Held& member = held_[i];
    if (member.gathered.IsSet()) continue;
    Hold(i, micro_batch);
    const DType type = places_.GatheredType(i);
    member.gathered = arrays_.Add(i, "gathered", BufferKind::kBuffer, type, /*share=*/false);
    if (copies == ShardCopies::kPerParameter || copies == ShardCopies::kBuckets)
      member.landed = arrays_.Add(i, "landed", BufferKind::kBuffer, type, /*share=*/false);
    shares.push_back(is_near ? arrays_[i].near_share : Pack(i));
    wholes.push_back(member.landed.IsSet() ? member.landed : member.gathered);
    elements += places_[i].elements;
  }
  const std::string what = shares.size() > 1 ? "layer" : places_.ShapeOf(index).name;
  const DType type = places_.GatheredType(index);
  plan_.AddCollective("all-gather " + what, CollectiveKind::kAllGather,
                      is_near ? strategy_.shard->backward_axes : place.share_axes,
                      elements * SizeOf(type).value(), type, Issue::kAsynchronous, shares, wholes);
}

// What the forward pass has gathered is there for the backward pass, over fewer ranks.
void ParameterGathering::LeaveNearShare(uint32_t index, const ActionContext& action) {
  const BufferId share = arrays_[index].near_share;
  if (!share.IsSet() || action.goes_backward) return;
  const LayerTag tag(&plan_, places_.ShapeOf(index).layer);
  Buffer view = plan_.BufferOf(share);
  view.name = "own part of " + view.name;
  view.bytes = Bytes(0);
  view.view = View{held_[index].gathered, 0, 0, {}, {}};
  for (const uint32_t axis : strategy_.shard->backward_axes)
    view.view->columns_cut_by.emplace_back(axis);
  const BufferId part = plan_.AddBuffer(std::move(view));
  plan_.AddMemoryOp("leave " + places_.ShapeOf(index).name, Kernel::kCopy,
                    2 * plan_.BufferOf(share).bytes.value(), {part}, {share});
}

// A matrix that is not sharded is at hand, unless it is kept in fp32: then a cast of it is used.
void ParameterGathering::TakeWhole(uint32_t index) {
  Freshen(index);
  const DType type = places_.GatheredType(index);
  if (places_.KeptType(index) == type) {
    held_[index].gathered = arrays_[index].whole;
    return;
  }
  const LayerTag tag(&plan_, places_.ShapeOf(index).layer);
  const BufferId cast = arrays_.Add(index, "gathered", BufferKind::kBuffer, type, /*share=*/false);
  const double moved = SizeOf(places_.KeptType(index)).value() + SizeOf(type).value();
  plan_.AddMemoryOp("cast " + places_.ShapeOf(index).name, Kernel::kCopy,
                    KernelCost{places_[index].elements * moved, 1}, {arrays_[index].whole}, {cast});
  held_[index].gathered = cast;
}

// Where what may be gathered ahead of this matrix ends, on the way forward.
uint32_t ParameterGathering::EndAhead(uint32_t index, const ActionContext& action) const {
  uint32_t end = action.prefetch_end;
  if (!strategy_.shard->within_layer) return end;
  uint32_t next = index + 1;
  while (next < end && IsOfSameLayer(next, index)) ++next;
  return next;
}

bool ParameterGathering::IsComputedAgain(uint32_t matrix, const ActionContext& action) const {
  const int32_t layer = places_.ShapeOf(matrix).layer;
  if (layer < 0 || training_.recomputation != Recomputation::kFull) return false;
  return training_.recomputed_layers.empty() ||
         training_.ComputesAgain(action.stage->index, action.stage->LayersBefore(layer));
}

bool ParameterGathering::IsOfSameLayer(uint32_t a, uint32_t b) const {
  return places_.ShapeOf(a).layer == places_.ShapeOf(b).layer;
}

void ParameterGathering::GatherBefore(uint32_t index, uint32_t groups,
                                      const ActionContext& action) {
  const uint32_t first = action.stage->first_matrix();
  for (uint32_t begin = places_[index].group_begin; groups > 0 && begin > first; --groups) {
    const uint32_t end = begin;
    begin = places_[begin - 1].group_begin;
    if (strategy_.shard->within_layer && !IsOfSameLayer(begin, index)) return;
    if (places_.ShapeOf(begin).layer < 0) continue;
    bool is_read = IsComputedAgain(begin, action);
    // What is recomputed is gathered for that, product by product; whole layers ahead of it, too.
    if (is_read && !strategy_.shard->by_layer) return;
    for (uint32_t i = begin; i < end; ++i) is_read = is_read || places_[i].is_read_backward;
    if (is_read) Gather(begin, action);
  }
}

// Whether the next one may be gathered when so many elements are under way ahead of this product.
bool ParameterGathering::MayGatherMore(double ahead) const {
  const ShardPolicy& shard = *strategy_.shard;
  if (!(ahead < static_cast<double>(shard.prefetch_elements))) return false;
  if (shard.most_gathered == 0) return true;
  double held = 0;
  for (uint32_t i = 0; i < places_.count(); ++i)
    held += held_[i].gathered.IsSet() ? places_[i].elements : 0;
  return held < static_cast<double>(shard.most_gathered);
}

BufferId ParameterGathering::Fetch(uint32_t index, const ActionContext& action) {
  Gather(index, action);
  Unpack(index);
  LeaveNearShare(index, action);
  const BufferId whole = held_[index].gathered;
  if (!strategy_.shard) return whole;
  const ShardPolicy& shard = *strategy_.shard;
  const uint32_t end = EndAhead(index, action);
  if (shard.prefetch_elements > 0) {
    double ahead = 0;
    for (uint32_t i = index + 1; i < end && MayGatherMore(ahead); ++i) {
      Gather(i, action);
      ahead += places_[i].elements;
    }
  } else if (action.goes_backward && shard.by_layer) {
    if (!shard.gathers_behind_backward) GatherBefore(index, shard.prefetch, action);
  } else {
    uint32_t next = places_[index].group_end;
    for (uint32_t i = 0; i < shard.prefetch && next < end; ++i) {
      Gather(next, action);
      next = places_[next].group_end;
    }
  }
  return whole;
}

BufferId ParameterGathering::FetchBackward(uint32_t index, const ActionContext& action) {
  Gather(index, action);
  Unpack(index);
  const BufferId whole = held_[index].gathered;
  if (!strategy_.shard) return whole;
  const ShardPolicy& shard = *strategy_.shard;
  if (IsComputedAgain(index, action) && !shard.by_layer) return whole;  // gathered for that
  if (shard.prefetch_elements > 0) {
    double ahead = 0;
    for (uint32_t i = index; i-- > action.stage->first_matrix() && MayGatherMore(ahead);) {
      if (shard.within_layer && !IsOfSameLayer(i, index)) break;
      if (IsComputedAgain(i, action)) break;
      if (places_.ShapeOf(i).layer < 0 || !places_[i].is_read_backward) continue;
      Gather(i, action);
      ahead += places_[i].elements;
    }
    return whole;
  }
  const bool gathers_ahead = shard.by_layer || shard.reshard_after_forward;
  if (gathers_ahead && !shard.gathers_behind_backward) GatherBefore(index, shard.prefetch, action);
  return whole;
}

void ParameterGathering::ReleaseAfterForward(uint32_t begin, uint32_t end,
                                             const ActionContext& action) {
  if (!strategy_.shard) return;
  const ShardPolicy& shard = *strategy_.shard;
  for (uint32_t index = begin; index < end; ++index) {
    const int32_t layer = places_.ShapeOf(index).layer;
    const bool reshards = shard.reshard_after_forward ||
                          (shard.reshards_recomputed && IsComputedAgain(index, action));
    const bool keeps = !reshards || layer < static_cast<int32_t>(shard.cached_layers);
    if (layer >= 0 && !keeps) Drop(index, action);
    if (shard.until_last_micro_batch) held_[index].narrow_of = BufferId();
  }
}

// ---- operands of narrow products ----------------------------------------------------------------

// The narrow copy of this block, transposed for dX.
BufferId ParameterGathering::NarrowOf(uint32_t index, BufferId whole, bool turned) {
  Held& held = held_[index];
  const bool is_kept_narrow = KeepsOnlyNarrow(training_);
  if (is_kept_narrow && (!turned || CopiesOf(training_) == 1)) return whole;
  if (held.narrow_of == whole) return held.narrow;
  const LayerTag tag(&plan_, places_.ShapeOf(index).layer);
  if (places_[index].Shares(3)) held.narrow = arrays_.AddNarrowCopies(index);
  held.narrow_of = whole;
  const double elements = places_[index].elements;
  const KernelCost cost =
      is_kept_narrow ? CostOfTurn(training_.products, elements)
                     : CostOfCast(training_, {.elements = elements, .element = plan_.element()});
  const std::string what = is_kept_narrow ? "turn " : "cast ";
  plan_.AddMemoryOp(what + places_.ShapeOf(index).name + " weight", Kernel::kCopy, cost, {whole},
                    {held.narrow});
  return held.narrow;
}

BufferId ParameterGathering::Operand(uint32_t index, const ActionContext& action) {
  const BufferId whole = Fetch(index, action);
  return places_.IsNarrow(index) ? NarrowOf(index, whole, /*turned=*/false) : whole;
}

BufferId ParameterGathering::OperandBackward(uint32_t index, const ActionContext& action) {
  const BufferId whole = FetchBackward(index, action);
  return places_.IsNarrow(index) ? NarrowOf(index, whole, /*turned=*/true) : whole;
}

// ---- what was updated in shares -----------------------------------------------------------------

// Before the first use of a matrix: gathers its bucket, then the next one on the way forward.
void ParameterGathering::Freshen(uint32_t index) {
  if (!strategy_.gathers_beside_forward) return;
  const std::optional<uint32_t> bucket = places_[places_[index].owner].bucket;
  if (!bucket) return;
  GatherBucket(*bucket, Issue::kAsynchronous);
  const std::optional<uint32_t> next = places_.buckets()[*bucket].next;
  if (next) GatherBucket(*next, Issue::kAsynchronous);
}

void ParameterGathering::GatherStage(uint32_t stage) {
  if (!strategy_.gathers_beside_forward) return;
  for (auto bucket = static_cast<uint32_t>(places_.buckets().size()); bucket-- > 0;)
    if (places_.buckets()[bucket].stage == stage) GatherBucket(bucket, Issue::kAsynchronous);
}

void ParameterGathering::GatherUpdated() {
  if (strategy_.gathers_beside_forward) return;
  for (uint32_t bucket = 0; bucket < places_.buckets().size(); ++bucket)
    GatherBucket(bucket, Issue::kBlocking);
  for (const uint32_t index : places_.Owners())
    if (places_[index].UpdatesShare() && !places_[index].bucket)
      GatherShares({index}, Issue::kBlocking);
}

void ParameterGathering::GatherBucket(uint32_t bucket, Issue issue) {
  if (is_bucket_gathered_[bucket]) return;
  is_bucket_gathered_[bucket] = true;
  const std::vector<uint32_t>& matrices = places_.buckets()[bucket].matrices;
  if (places_[matrices.front()].Shares(1)) GatherShares(matrices, issue);
}

// The matrices are updated in shares along the same axes.
void ParameterGathering::GatherShares(const std::vector<uint32_t>& matrices, Issue issue) {
  const LayerTag tag(&plan_, places_.ShapeOf(matrices.back()).layer);
  const uint32_t first = matrices.front();
  std::vector<BufferId> shares;
  std::vector<BufferId> wholes;
  double elements = 0;
  for (const uint32_t index : matrices) {
    shares.push_back(arrays_[index].update_share);
    wholes.push_back(arrays_[index].parameter);
    elements += places_[index].elements;
  }
  const DType type = places_.KeptType(first);
  const std::string what = matrices.size() > 1 ? "parameters" : places_.ShapeOf(first).name;
  plan_.AddCollective("all-gather " + what, CollectiveKind::kAllGather, places_[first].share_axes,
                      elements * SizeOf(type).value(), type, issue, shares, wholes);
}

}  // namespace rehearse
