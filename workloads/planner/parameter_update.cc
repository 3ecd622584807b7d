// The way of a gradient, and the end of a step: gradients are summed over the data axes, then the
// optimizer runs.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "workloads/planner/parameters.h"

namespace rehearse {

using Issue = PlanBuilder::Issue;

namespace {

constexpr double kFloat = 4;            // bytes
constexpr double kLearningRate = 1e-4;  // for backends; costs nothing

}  // namespace

// ---- gradients ----------------------------------------------------------------------------------

BufferId Parameters::BeginGradient(uint32_t index, bool* adds) {
  const uint32_t owner = matrices_[index].owner;
  Matrix& matrix = matrices_[owner];
  *adds = matrix.uses_left < matrix.uses;
  if (matrix.block.IsSet()) {
    matrix.gradient = matrix.block;
  } else if (!*adds) {
    matrix.gradient =
        AddMatrixBuffer(owner, plan_.Label("gradient block of " + network_.matrices[owner].name),
                        BufferKind::kBuffer, training_.precision, false);
  }
  return matrix.gradient;
}

void Parameters::EndGradient(uint32_t index) {
  const uint32_t owner = matrices_[index].owner;
  Matrix& matrix = matrices_[owner];
  if (--matrix.uses_left > 0) return;
  matrix.uses_left = matrix.uses;
  matrix.share_gradient = matrix.gradient;
  if (Shares(matrix, 2)) {
    ReduceScatterWhenComplete(owner);
  } else {
    Accumulate(owner);
  }
}

// Gradients of a group travel together, once the last of them is there.
void Parameters::ReduceScatterWhenComplete(uint32_t index) {
  const Matrix& matrix = matrices_[index];
  const uint64_t bucket = strategy_.shard->reduce_elements;
  if (bucket > 0) {
    double waiting = matrix.elements;
    for (const uint32_t ended : ended_) waiting += matrices_[ended].elements;
    if (waiting > static_cast<double>(bucket)) ReduceEnded();
    ended_.push_back(index);
    return;
  }
  ended_.push_back(index);
  size_t members = 0;
  for (uint32_t i = matrix.group_begin; i < matrix.group_end; ++i) members += IsOwner(i) ? 1 : 0;
  if (ended_.size() >= members) ReduceEnded();
}

// Sends finished gradients on their way.
void Parameters::ReduceEnded() {
  if (ended_.empty()) return;
  if (strategy_.shard->gathers_behind_backward) GatherBefore(ended_.front(), 1);
  ReduceScatter(ended_);
  for (const uint32_t member : ended_) {
    if (strategy_.asynchronous_weight_gradient && !IsSummedBeside(matrices_[member])) {
      put_off_.push_back(member);
    } else {
      Accumulate(member);
    }
  }
  ended_.clear();
}

// The block as a reduce-scatter takes it.
BufferId Parameters::PackGradient(const Matrix& matrix, uint32_t index) {
  const double element = plan_.element();
  const double reduced = SizeOf(ReduceType()).value();
  const double cast = reduced == element ? 0 : element + reduced;
  KernelCost cost;
  switch (Copies()) {
    case ShardCopies::kNone:
      if (cast == 0) return matrix.gradient;
      cost = {matrix.elements * cast, 1};
      break;
    case ShardCopies::kFlat:
      cost = {matrix.elements * (2 * element + cast), cast > 0 ? 2u : 1u};
      break;
    case ShardCopies::kPerParameter:
      cost = {matrix.elements * (element + reduced), 1};
      break;
    case ShardCopies::kBuckets:
      cost = {matrix.elements * (4 * element + cast), 2};
      break;
  }
  const BufferId packed =
      AddMatrixBuffer(index, plan_.Label("gradient to reduce of " + network_.matrices[index].name),
                      BufferKind::kBuffer, ReduceType(), /*share=*/false);
  plan_.AddMemoryOp("pack gradient of " + network_.matrices[index].name, Kernel::kCopy, cost,
                    {matrix.gradient}, {packed});
  return packed;
}

void Parameters::ReduceScatter(const std::vector<uint32_t>& matrices) {
  const Tag tag = plan_.tag();
  std::vector<BufferId> wholes;
  std::vector<BufferId> shares;
  double elements = 0;
  for (const uint32_t index : matrices) {
    Matrix& matrix = matrices_[index];
    CHECK(matrix.share_axes == matrices_[matrices.front()].share_axes);
    if (strategy_.shard->reduce_elements > 0) SetLayer(network_.matrices[index].layer);
    matrix.share_gradient =
        AddMatrixBuffer(index, plan_.Label("gradient shard of " + network_.matrices[index].name),
                        BufferKind::kBuffer, ReduceType(), /*share=*/true);
    wholes.push_back(PackGradient(matrix, index));
    shares.push_back(matrix.share_gradient);
    elements += matrix.elements;
  }
  const uint32_t first = matrices.front();
  const std::string what = matrices.size() > 1 ? "layer" : network_.matrices[first].name;
  plan_.AddCollective(
      "reduce-scatter " + what, CollectiveKind::kReduceScatter, matrices_[first].share_axes,
      elements * SizeOf(ReduceType()).value(), ReduceType(),
      strategy_.asynchronous_weight_gradient ? Issue::kAsynchronous : Issue::kBlocking, wholes,
      shares);
  plan_.set_tag(tag);
}

// Whether shares are reduce-scattered, and then summed over other axes, both beside backward: each
// sum begins when the share is there, as in PyTorch's hybrid sharding.
bool Parameters::IsSummedBeside(const Matrix& matrix) const {
  return strategy_.asynchronous_weight_gradient && strategy_.asynchronous_data_gradient &&
         Shares(matrix, 2) && !matrix.sum_axes.empty();
}

void Parameters::Accumulate(uint32_t index) {
  const Matrix& matrix = matrices_[index];
  const std::string name = "accumulate " + network_.matrices[index].name;
  const double elements = Shares(matrix, 2) ? matrix.share_elements : matrix.elements;
  // A product that adds to the sum itself leaves nothing to do (its own traffic is counted there).
  const bool is_fused = training_.fused_accumulation && !Shares(matrix, 2) && !matrix.is_looked_up;
  const double read = Shares(matrix, 2) ? SizeOf(ReduceType()).value() : plan_.element();
  const KernelCost cost = {is_fused ? 0 : elements * (read + 2 * gradient_element()),
                           is_fused ? 0u : 1u};
  const std::vector<BufferId> reads = {matrix.share_gradient, matrix.main_gradient};
  if (IsSummedBeside(matrix)) {
    // Placed where the backward pass does not wait for it: FSDP has its reduce-scatters' stream for
    // this.
    if (!beside_.IsSet()) beside_ = plan_.AddStream("gradients", StreamKind::kCompute);
    plan_.AddMemoryOpBeside(name, Kernel::kAccumulate, cost.bytes, beside_, reads,
                            {matrix.main_gradient});
  } else {
    plan_.AddMemoryOp(name, Kernel::kAccumulate, cost, reads, {matrix.main_gradient});
  }
  // If two stages of the rank use a matrix, its gradient is complete on the owner's stage.
  if (is_last_ && strategy_.asynchronous_data_gradient && stage_->HasMatrix(index)) {
    if (matrix.bucket != kNone) {
      EndInBucket(index);
    } else {
      SumGradient(index, Issue::kAsynchronous);
    }
  }
}

void Parameters::FinishGradients() {
  if (strategy_.shard && strategy_.shard->reduce_elements > 0) ReduceEnded();
  CHECK(ended_.empty());
  for (const uint32_t index : put_off_) {
    SetLayer(network_.matrices[index].layer);
    Accumulate(index);
  }
  put_off_.clear();
}

// Sums over all axes that split the batch and do not share the matrix; in stage 1 the sums are
// shared.
void Parameters::SumGradient(uint32_t index, Issue issue) {
  const Matrix& matrix = matrices_[index];
  const std::string& name = network_.matrices[index].name;
  if (!matrix.sum_axes.empty()) {
    const double elements = Shares(matrix, 2) ? matrix.share_elements : matrix.elements;
    plan_.AddCollective("all-reduce gradient of " + name, CollectiveKind::kAllReduce,
                        matrix.sum_axes, elements * gradient_element(), training_.gradients, issue,
                        {matrix.main_gradient}, {matrix.main_gradient});
  }
  if (!Shares(matrix, 1) || Shares(matrix, 2)) return;
  plan_.AddCollective("reduce-scatter gradient of " + name, CollectiveKind::kReduceScatter,
                      matrix.share_axes, matrix.elements * gradient_element(), training_.gradients,
                      issue, {matrix.main_gradient}, {matrix.update_gradient});
}

// ---- after the backward pass --------------------------------------------------------------------

void Parameters::BeginStep() {
  if (!training_.offloaded_optimizer) return;
  const Tag tag = plan_.tag();
  plan_.set_tag({Phase::kUpdate, -1, 0});
  state_on_host_ = plan_.CopyToHost("offload optimizer", optimizer_state_, OpId());
  plan_.set_tag(tag);
}

// Gradients of matrices are all-reduced (in fp32 unless said otherwise) over all axes that split
// the batch and do not share them (stage 1: reduce-scattered over the axis that shares the
// optimizer's state), those of vectors over every axis that splits their rows.
void Parameters::Synchronize() {
  plan_.set_tag({Phase::kSynchronize, -1, 0});
  if (training_.offloaded_optimizer)
    plan_.ReturnFromHost("return optimizer", state_on_host_, optimizer_state_, plan_.LastCompute());
  for (uint32_t index = 0; index < matrices_.size(); ++index) {
    if (!IsOwner(index) || strategy_.asynchronous_data_gradient) continue;
    if (matrices_[index].bucket != kNone) continue;
    SetLayer(network_.matrices[index].layer);
    SumGradient(index, Issue::kBlocking);
  }
  if (!strategy_.asynchronous_data_gradient) {
    for (const Bucket& bucket : buckets_) SumBucket(bucket, Issue::kBlocking);
  }
  // What was not complete yet when its stage was summed.
  for (uint32_t stage = 0; sums_by_stage_ && stage < stages_.size(); ++stage) SumStage(stage);
  for (const Bucket& bucket : buckets_)
    CHECK(!sums_by_stage_ || !strategy_.asynchronous_data_gradient || bucket.is_summed);
  SumOverStages();
  SetLayer(-1);
  SynchronizeVectors();
}

// Each of two stages has the gradient from its own use of a matrix, and each copy of the model
// those of its own micro-batches.
void Parameters::SumOverStages() {
  const std::optional<uint32_t> mirror = stages_.front()->mirror;
  const auto sum = [&](const std::string& name, uint32_t rank, uint32_t other, double elements,
                       DType dtype, BufferId gradient) {
    Collective collective;
    collective.communicator = plan_.PairsOf(std::min(rank, other), std::max(rank, other));
    collective.bytes = elements * SizeOf(dtype);
    collective.dtype = dtype;
    plan_.AddCollective("all-reduce gradient" + name, collective, Issue::kBlocking, {gradient},
                        {gradient});
  };
  for (uint32_t index = 0; index < matrices_.size(); ++index) {
    const Matrix& matrix = matrices_[index];
    if (matrix.shared == nullptr && (!mirror || !IsOwner(index))) continue;
    SetLayer(ArrayOf(index).layer);
    const uint32_t rank = mirror ? stages_.front()->rank : matrix.shared->first_rank;
    const uint32_t other = mirror ? *mirror : matrix.shared->other_rank;
    sum(" of " + ArrayOf(index).name, rank, other,
        Shares(matrix, 1) ? matrix.share_elements : matrix.elements, training_.gradients,
        matrix.update_gradient);
  }
  if (!mirror) return;
  SetLayer(-1);
  for (const VectorGroup& group : groups_) {
    sum("s of biases and norms", stages_.front()->rank, *mirror,
        static_cast<double>(group.elements), DType::kFp32, group.gradient);
  }
}

// Axes that are more than data axes go one by one, as frameworks have a group for each (parts of an
// axis count as one); the others go together.
void Parameters::SynchronizeVectors() {
  for (const VectorGroup& group : groups_) {
    std::vector<std::vector<uint32_t>> sets;
    std::vector<uint32_t> together;
    for (const uint32_t axis : group.sum_axes) {
      if (std::find(data_of_dense_.begin(), data_of_dense_.end(), axis) == data_of_dense_.end()) {
        const std::string& part_of = plan_.mesh().axes()[axis].part_of;
        const bool goes_on = !sets.empty() && !part_of.empty() &&
                             plan_.mesh().axes()[sets.back().back()].part_of == part_of;
        if (goes_on) {
          sets.back().insert(sets.back().begin(), axis);
        } else {
          sets.push_back({axis});
        }
      } else {
        together.insert(together.begin(), axis);
      }
    }
    if (!together.empty()) sets.push_back(together);
    for (const std::vector<uint32_t>& axes : sets) {
      plan_.AddCollective("all-reduce gradients of biases and norms", CollectiveKind::kAllReduce,
                          axes, static_cast<double>(group.elements) * kFloat, DType::kFp32,
                          Issue::kBlocking, {group.gradient}, {group.gradient});
    }
  }
}

// 1/r, where r ranks of a replica of the model hold the same piece of a matrix with this layout.
double Parameters::ShareOfRanks(const Layout& layout,
                                const std::vector<uint32_t>& share_axes) const {
  double copies = 1;
  for (uint32_t axis = 0; axis < layout.size(); ++axis) {
    const auto is_in = [&](const std::vector<uint32_t>& axes) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    if (!IsSplit(layout[axis]) && !is_in(share_axes) && !is_in(pure_data_)) {
      copies *= plan_.sizes()[axis];
    }
  }
  return 1 / copies;
}

// The bytes of all gradients that this rank updates with; those of vectors are always fp32.
double Parameters::GradientBytes() const {
  return (update_elements_ - vector_elements_) * gradient_element() + vector_elements_ * kFloat;
}

OptimizerCosts Parameters::AdamCosts() const {
  Bytes state;
  for (const BufferId array : optimizer_state_) state += plan_.BufferOf(array).bytes;
  const double parameter_bytes =
      training_.precision == DType::kFp32 ? 2 * plan_.element() : plan_.element();
  return CostsOfAdam(training_, update_elements_, UpdatedArrays(), GradientBytes(), state.value(),
                     parameter_bytes);
}

// Arrays as frameworks have them: parameters that are gathered together are one (FSDP's flat
// parameters), with their biases and norms; else each matrix and vector is one.
uint32_t Parameters::UpdatedArrays() const {
  uint32_t groups = 0;
  uint32_t owners = 0;
  for (uint32_t index = 0; index < matrices_.size(); ++index) {
    if (!IsOwner(index)) continue;
    const uint32_t layers = LayersLike(network_.matrices[index].layer);
    owners += layers;
    groups += matrices_[index].group_begin == index ? layers : 0;
  }
  if (strategy_.shard && strategy_.shard->by_layer) return groups;
  uint32_t vectors = 0;
  for (const VectorGroup& group : groups_)
    for (const uint32_t vector : group.vectors)
      vectors += LayersLike(network_.vectors[vector].layer);
  return owners + vectors;
}

BufferId Parameters::GradientNorm(const std::vector<BufferId>& gradients,
                                  std::vector<double> shares) {
  const BufferId norm = AddNumber("gradient norm");
  plan_.AddMemoryOp("gradient norm", Kernel::kSquaredNorm, AdamCosts().norm, gradients, {norm},
                    std::move(shares));
  if (validation_ == kAdamOnce) {
    SumOverModel(norm);
  } else {
    SumWithRanksBefore(norm);
  }
  return norm;
}

BufferId Parameters::AddNumber(const std::string& name) {
  return plan_.AddBuffer({.name = name,
                          .kind = BufferKind::kBuffer,
                          .bytes = Bytes(kFloat),
                          .dtype = DType::kFp32,
                          .rows = 1,
                          .columns = 1});
}

void Parameters::SumOverModel(BufferId norm) {
  const uint32_t ranks =
      plan_.mesh().size() / plan_.SizeOfAxes(pure_data_) * plan_.communicators().pipeline_ranks();
  if (ranks > 1) {
    Collective collective;
    collective.communicator = plan_.communicators().model();
    collective.bytes = Bytes(kFloat);
    collective.dtype = DType::kFp32;
    plan_.AddCollective("all-reduce gradient norm", collective, Issue::kBlocking, {norm}, {norm});
  }
}

// ---- validation after the update ----------------------------------------------------------------

namespace {

constexpr const char* kValidation = "validation";

}  // namespace

void Parameters::set_validation(AdamAgain validation) {
  validation_ = validation;
  if (validation == kAdamOnce) return;
  if (training_.moments != DType::kFp32)
    throw Error(plan_.place(),
                "validation after the update: Adam's moments have 16 bits, of which an update "
                "cannot be taken back; expected \"moments\": \"fp32\", or \"validation\": "
                "\"before-update\"");
  for (uint32_t index = 0; index < matrices_.size(); ++index) {
    const bool is_gathered = HasMatrix(index) && IsOwner(index) && Shares(matrices_[index], 1) &&
                             !Shares(matrices_[index], 3);
    if (!is_gathered) continue;
    throw Error(plan_.place(),
                fmt::format("validation after the update: the share of {} that a rank updates is "
                            "gathered (ZeRO stage {}), and would have to be gathered again; stages "
                            "0 and 3 can do it, or \"validation\": \"before-update\"",
                            ArrayOf(index).name, ZeroStage()));
  }
}

// Over the ranks of this stage, then along the pipeline from its first rank to this one.
void Parameters::SumWithRanksBefore(BufferId norm) {
  std::vector<uint32_t> axes;
  for (uint32_t axis = 0; axis < plan_.sizes().size(); ++axis) {
    const bool is_pure = std::find(pure_data_.begin(), pure_data_.end(), axis) != pure_data_.end();
    if (!is_pure && plan_.sizes()[axis] > 1) axes.push_back(axis);
  }
  if (!axes.empty()) {
    plan_.AddCollective("all-reduce gradient norm", CollectiveKind::kAllReduce, axes, kFloat,
                        DType::kFp32, Issue::kBlocking, {norm}, {norm});
  }
  const CommunicatorId pipeline = plan_.PipelineNamed(kValidation);
  const uint32_t rank = stages_.front()->rank;
  if (rank > 0) {
    const BufferId before = AddNumber("gradient norm of ranks before");
    plan_.AddReceive("receive gradient norm", before, pipeline, rank - 1);
    plan_.AddMemoryOp("add gradient norm", Kernel::kAccumulate, 3 * kFloat, {before, norm}, {norm});
  }
  if (rank + 1 < plan_.communicators().pipeline_ranks())
    plan_.AddSend("send gradient norm", norm, pipeline, rank + 1);
}

// The whole norm comes back from the last rank, and the update is done again if it must be.
// `reads` are gradients and the norm that Adam was given.
void Parameters::Validate(std::vector<BufferId> reads, const std::vector<BufferId>& writes) {
  const CommunicatorId pipeline = plan_.PipelineNamed(kValidation);
  const uint32_t rank = stages_.front()->rank;
  BufferId whole = reads.back();
  const bool is_last = rank + 1 == plan_.communicators().pipeline_ranks();
  if (!is_last) {
    whole = AddNumber("whole gradient norm");
    plan_.AddReceive("receive whole gradient norm", whole, pipeline, rank + 1);
  }
  if (rank > 0) plan_.AddSend("send whole gradient norm", whole, pipeline, rank - 1);
  if (is_last) return;
  reads.push_back(whole);
  KernelCost cost = {0, 1};
  if (validation_ == kAdamTwice) {
    cost = AdamCosts().update;
    cost.bytes *= 2;
    cost.kernels *= 2;
  }
  plan_.AddMemoryOp("validate update", Kernel::kAdam, cost, reads, writes,
                    {kLearningRate, static_cast<double>(validation_)});
}

// The gradient norm over all shares (one number travels), then Adam: reads the gradient, reads and
// writes its state, writes the parameter.
void Parameters::Update() {
  plan_.set_tag({Phase::kUpdate, -1, 0});
  std::vector<BufferId> gradients;
  std::vector<BufferId> parameters;
  std::vector<BufferId> summands;  // of the norm: vectors of a group may lie differently
  std::vector<double> shares;
  const double copies = stages_.front()->mirror ? 2 : 1;
  for (const VectorGroup& group : groups_) {
    gradients.push_back(group.gradient);
    parameters.push_back(group.value);
    for (const uint32_t vector : group.vectors) {
      summands.push_back(vectors_[vector].gradient);
      shares.push_back(ShareOfRanks(vectors_[vector].layout, {}) / copies);
    }
  }
  for (uint32_t index = 0; index < matrices_.size(); ++index) {
    if (!IsOwner(index)) continue;
    const Matrix& matrix = matrices_[index];
    gradients.push_back(matrix.update_gradient);
    summands.push_back(matrix.update_gradient);
    parameters.push_back(matrix.update_share);
    const double share =
        ShareOfRanks(strategy_.products[index].w,
                     Shares(matrix, 1) ? matrix.share_axes : std::vector<uint32_t>());
    shares.push_back(matrix.shared == nullptr ? share / copies : share / 2);
  }
  gradients.push_back(GradientNorm(summands, std::move(shares)));
  parameters.insert(parameters.end(), optimizer_state_.begin(), optimizer_state_.end());
  plan_.AddMemoryOp("Adam", Kernel::kAdam, AdamCosts().update, gradients, parameters,
                    {kLearningRate});
  if (validation_ != kAdamOnce) Validate(gradients, parameters);
  if (!strategy_.gathers_beside_forward) GatherUpdated();
}

}  // namespace rehearse
