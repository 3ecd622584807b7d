#include "workloads/planner/optimizer_update.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

using Issue = PlanBuilder::Issue;

namespace {

constexpr double kFloat = 4;            // bytes
constexpr double kLearningRate = 1e-4;  // for backends; costs nothing
constexpr const char* kValidation = "validation";

}  // namespace

OptimizerUpdate::OptimizerUpdate(const ParameterArrays& arrays, AdamAgain validation,
                                 PlanBuilder* plan)
    : arrays_(arrays),
      places_(arrays.places()),
      training_(places_.training()),
      validation_(validation),
      data_(PureDataAxes(places_.strategy())),
      plan_(*plan) {
  const auto& shard = places_.strategy().shard;
  const uint32_t zero_stage = shard ? shard->stage : 0;
  const bool has_masters = !places_.KeepsMasters() && training_.masters != MasterWeights::kNone &&
                           (training_.precision != DType::kFp32 || zero_stage % 3 != 0);
  const bool has_whole = training_.masters == MasterWeights::kFp32;
  if (training_.moments == DType::kFp32 && has_whole) {
    AddState("Adam: master weights and moments", has_masters ? 3 : 2, DType::kFp32);
  } else {
    if (has_masters && has_whole) AddState("Adam: master weights", 1, DType::kFp32);
    if (has_masters && !has_whole) AddState("Adam: rest of master weights", 1, DType::kBf16);
    AddState("Adam: moments", 2, training_.moments);
  }
  if (validation_ != kAdamOnce) CheckValidation();
}

void OptimizerUpdate::AddState(const char* name, uint64_t rows, DType dtype) {
  const auto elements = static_cast<uint64_t>(arrays_.update_elements());
  state_.push_back(plan_.AddBuffer({.name = name,
                                    .kind = BufferKind::kOptimizer,
                                    .bytes = static_cast<double>(rows * elements) * SizeOf(dtype),
                                    .dtype = dtype,
                                    .rows = rows,
                                    .columns = elements}));
}

void OptimizerUpdate::CheckValidation() const {
  if (training_.moments != DType::kFp32)
    throw Error(plan_.place(),
                "validation after the update: Adam's moments have 16 bits, of which an update "
                "cannot be taken back; expected \"moments\": \"fp32\", or \"validation\": "
                "\"before-update\"");
  for (const uint32_t index : places_.TrainedOwners()) {
    if (!places_[index].UpdatesShare()) continue;
    throw Error(plan_.place(),
                fmt::format("validation after the update: the share of {} that a rank updates is "
                            "gathered (ZeRO stage {}), and would have to be gathered again; stages "
                            "0 and 3 can do it, or \"validation\": \"before-update\"",
                            places_.ArrayOf(index).name, places_[index].zero_stage));
  }
}

// ---- the state's way to the host and back -------------------------------------------------------

void OptimizerUpdate::SendState() {
  if (!training_.offloaded_optimizer) return;
  const Tag tag = plan_.tag();
  plan_.set_tag({Phase::kUpdate, -1, 0});
  state_on_host_ = plan_.CopyToHost("offload optimizer", state_, OpId());
  plan_.set_tag(tag);
}

void OptimizerUpdate::ReturnState() {
  if (training_.offloaded_optimizer)
    plan_.ReturnFromHost("return optimizer", state_on_host_, state_, plan_.LastCompute());
}

// ---- the update ---------------------------------------------------------------------------------

void OptimizerUpdate::Update() {
  Operands operands = OperandsOfAdam();
  operands.gradients.push_back(GradientNorm(operands));
  operands.parameters.insert(operands.parameters.end(), state_.begin(), state_.end());
  plan_.AddMemoryOp("Adam", Kernel::kAdam, Costs().update, operands.gradients, operands.parameters,
                    {kLearningRate});
  if (validation_ != kAdamOnce) Validate(std::move(operands.gradients), operands.parameters);
}

OptimizerUpdate::Operands OptimizerUpdate::OperandsOfAdam() const {
  Operands operands;
  const double copies = places_.stages().front()->mirror ? 2 : 1;
  for (const VectorGroup& group : arrays_.groups()) {
    if (group.is_frozen) continue;
    operands.gradients.push_back(group.gradient);
    operands.parameters.push_back(group.value);
    for (const uint32_t vector : group.vectors) {
      operands.summands.push_back(arrays_.Vector(vector).gradient);
      operands.shares.push_back(ShareOfRanks(arrays_.Vector(vector).layout, {}) / copies);
    }
  }
  for (const uint32_t index : places_.TrainedOwners()) {
    const MatrixPlace& place = places_[index];
    operands.gradients.push_back(arrays_[index].update_gradient);
    operands.summands.push_back(arrays_[index].update_gradient);
    operands.parameters.push_back(arrays_[index].update_share);
    const double share = ShareOfRanks(places_.strategy().products[index].w,
                                      place.Shares(1) ? place.share_axes : std::vector<uint32_t>());
    operands.shares.push_back(place.shared == nullptr ? share / copies : share / 2);
  }
  return operands;
}

bool OptimizerUpdate::IsDataAxis(uint32_t axis) const {
  return std::find(data_.begin(), data_.end(), axis) != data_.end();
}

// 1/r, where r ranks of a replica of the model hold the same piece of a matrix with this layout.
double OptimizerUpdate::ShareOfRanks(const Layout& layout,
                                     const std::vector<uint32_t>& share_axes) const {
  double copies = 1;
  for (uint32_t axis = 0; axis < layout.size(); ++axis) {
    const bool is_shared =
        std::find(share_axes.begin(), share_axes.end(), axis) != share_axes.end();
    if (!IsSplit(layout[axis]) && !is_shared && !IsDataAxis(axis)) copies *= plan_.sizes()[axis];
  }
  return 1 / copies;
}

// Gradients of matrices have the run's type; those of vectors are always fp32.
OptimizerCosts OptimizerUpdate::Costs() const {
  const double matrix_elements = arrays_.update_elements() - arrays_.vector_elements();
  const double gradient_bytes =
      matrix_elements * places_.gradient_element() + arrays_.vector_elements() * kFloat;
  Bytes state;
  for (const BufferId array : state_) state += plan_.BufferOf(array).bytes;
  const bool is_read =
      training_.precision == DType::kFp32 || training_.masters != MasterWeights::kFp32;
  const double parameter_bytes =
      places_.KeepsMasters() ? 2 * kFloat : (is_read ? 2 : 1) * plan_.element();
  return CostsOfAdam(training_, arrays_.update_elements(), UpdatedArrays(), gradient_bytes,
                     state.value(), parameter_bytes);
}

// Arrays as frameworks have them: parameters that are gathered together are one (FSDP's flat
// parameters), with their biases and norms; else each matrix and vector is one.
uint32_t OptimizerUpdate::UpdatedArrays() const {
  uint32_t groups = 0;
  uint32_t arrays = 0;
  for (const uint32_t index : places_.TrainedOwners()) {
    const uint32_t layers = places_.LayersLike(places_.ShapeOf(index).layer);
    arrays += layers;
    uint32_t first = places_[index].group_begin;
    while (!places_.IsTrained(first)) ++first;
    groups += first == index ? layers : 0;
  }
  if (places_.strategy().shard && places_.strategy().shard->by_layer) return groups;
  for (const VectorGroup& group : arrays_.groups())
    for (const uint32_t vector : group.is_frozen ? std::vector<uint32_t>() : group.vectors)
      arrays += places_.LayersLike(places_.network().vectors[vector].layer);
  return arrays;
}

// ---- the norm -----------------------------------------------------------------------------------

BufferId OptimizerUpdate::AddNumber(const std::string& name) {
  return plan_.AddBuffer({.name = name,
                          .kind = BufferKind::kBuffer,
                          .bytes = Bytes(kFloat),
                          .dtype = DType::kFp32,
                          .rows = 1,
                          .columns = 1});
}

BufferId OptimizerUpdate::GradientNorm(const Operands& operands) {
  const BufferId norm = AddNumber("gradient norm");
  plan_.AddMemoryOp("gradient norm", Kernel::kSquaredNorm, Costs().norm, operands.summands, {norm},
                    operands.shares);
  if (validation_ == kAdamOnce) {
    SumOverModel(norm);
  } else {
    SumWithRanksBefore(norm);
  }
  return norm;
}

void OptimizerUpdate::SumOverModel(BufferId norm) {
  const uint32_t ranks =
      plan_.mesh().size() / plan_.SizeOfAxes(data_) * plan_.communicators().pipeline_ranks();
  if (ranks == 1) return;
  Collective collective;
  collective.communicator = plan_.communicators().model();
  collective.bytes = Bytes(kFloat);
  collective.dtype = DType::kFp32;
  plan_.AddCollective("all-reduce gradient norm", collective, Issue::kBlocking, {norm}, {norm});
}

// Over the ranks of this stage, then along the pipeline from its first rank to this one.
void OptimizerUpdate::SumWithRanksBefore(BufferId norm) {
  std::vector<uint32_t> axes;
  for (uint32_t axis = 0; axis < plan_.sizes().size(); ++axis)
    if (!IsDataAxis(axis) && plan_.sizes()[axis] > 1) axes.push_back(axis);
  if (!axes.empty()) {
    plan_.AddCollective("all-reduce gradient norm", CollectiveKind::kAllReduce, axes, kFloat,
                        DType::kFp32, Issue::kBlocking, {norm}, {norm});
  }
  const CommunicatorId pipeline = plan_.PipelineNamed(kValidation);
  const uint32_t rank = places_.stages().front()->rank;
  if (rank > 0) {
    const BufferId before = AddNumber("gradient norm of ranks before");
    plan_.AddReceive("receive gradient norm", before, pipeline, rank - 1);
    plan_.AddMemoryOp("add gradient norm", Kernel::kAccumulate, 3 * kFloat, {before, norm}, {norm});
  }
  if (rank + 1 < plan_.communicators().pipeline_ranks())
    plan_.AddSend("send gradient norm", norm, pipeline, rank + 1);
}

// `reads` are gradients and the norm that Adam was given.
void OptimizerUpdate::Validate(std::vector<BufferId> reads, const std::vector<BufferId>& writes) {
  const CommunicatorId pipeline = plan_.PipelineNamed(kValidation);
  const uint32_t rank = places_.stages().front()->rank;
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
    cost = Costs().update;
    cost.bytes *= 2;
    cost.kernels *= 2;
  }
  plan_.AddMemoryOp("validate update", Kernel::kAdam, cost, reads, writes,
                    {kLearningRate, static_cast<double>(validation_)});
}

}  // namespace rehearse
