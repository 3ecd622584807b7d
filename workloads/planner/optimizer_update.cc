#include "workloads/planner/optimizer_update.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

using Issue = PlanBuilder::Issue;

namespace {

constexpr double kFloat = 4;            // bytes
constexpr double kLearningRate = 1e-4;  // for backends; costs nothing, like all numbers below
constexpr double kMomentum = 0.9;
constexpr double kLambDecay = 0.01;  // Apex's default
constexpr double kMuonMomentum = 0.95;
constexpr double kMuonDecay = 0.01;
constexpr uint32_t kMuonSteps = 5;
constexpr double kMuonA = 3.4445;
constexpr double kMuonB = -4.7750;
constexpr double kMuonC = 2.0315;
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
  for (const uint32_t index : OrthogonalMatrices())
    muon_.matrices +=
        places_[index].UpdatedElements() * places_.LayersLike(places_.ShapeOf(index).layer);
  adam_.vectors = arrays_.vector_elements();
  adam_.matrices = arrays_.update_elements() - adam_.vectors - muon_.matrices;
  switch (training_.update_rule) {
    case UpdateRule::kAdam:
    case UpdateRule::kMuon:
      AddStates("Adam", 2, &adam_);
      break;
    case UpdateRule::kLamb:
      AddStates("LAMB", 2, &adam_);
      break;
    case UpdateRule::kSgd:
      AddStates("SGD", 1, &adam_);
      break;
  }
  if (muon_.matrices > 0) AddStates("Muon", 1, &muon_);
  if (validation_ != kAdamOnce) CheckValidation();
  if (training_.optimizer_on_host) CheckHost();
  if (training_.donates_state) return;
  // What the step leaves, beside what it began with.
  for (const BufferId before : std::vector<BufferId>(state_)) {
    const Buffer& state = plan_.BufferOf(before);
    plan_.AddBuffer({.name = "next " + state.name,
                     .kind = BufferKind::kOptimizer,
                     .bytes = state.bytes,
                     .dtype = state.dtype,
                     .on_host = state.on_host});
  }
  Bytes parameters;
  for (const Buffer& buffer : plan_.role().buffers)
    if (buffer.kind == BufferKind::kParameter && !buffer.on_host) parameters += buffer.bytes;
  plan_.AddBuffer({.name = "next parameters", .kind = BufferKind::kParameter, .bytes = parameters});
}

// Beside parameters that are not what is updated themselves.
bool OptimizerUpdate::HasMasters() const {
  const auto& shard = places_.strategy().shard;
  const uint32_t zero_stage = shard ? shard->stage : 0;
  return !places_.KeepsMasters() && training_.masters != MasterWeights::kNone &&
         (training_.precision != DType::kFp32 || zero_stage % 3 != 0);
}

bool OptimizerUpdate::IsOrthogonal(uint32_t matrix) const {
  if (training_.update_rule != UpdateRule::kMuon) return false;
  const MatrixRole role = places_.ShapeOf(matrix).role;
  if (IsOfExperts(role)) {
    throw Error(plan_.place(),
                fmt::format("\"update_rule\": \"muon\": {} has the matrices of all experts in one, "
                            "whose orthogonal steps are not modelled; expected a model without "
                            "experts, or \"adam\"",
                            places_.ShapeOf(matrix).name));
  }
  return role != MatrixRole::kTable && role != MatrixRole::kHead;
}

std::vector<uint32_t> OptimizerUpdate::OrthogonalMatrices() const {
  std::vector<uint32_t> matrices;
  for (const uint32_t index : places_.TrainedOwners())
    if (IsOrthogonal(index)) matrices.push_back(index);
  return matrices;
}

void OptimizerUpdate::AddStates(const char* name, uint64_t moments, Set* set) {
  const bool has_masters = HasMasters();
  const bool has_whole = training_.masters == MasterWeights::kFp32;
  const char* const numbers = moments > 1 ? "moments" : "momentum";
  if (training_.moments == DType::kFp32 && has_whole) {
    AddState(fmt::format("{}: master weights and {}", name, numbers),
             has_masters ? moments + 1 : moments, DType::kFp32, set);
    return;
  }
  if (has_masters && has_whole)
    AddState(fmt::format("{}: master weights", name), 1, DType::kFp32, set);
  if (has_masters && !has_whole)
    AddState(fmt::format("{}: rest of master weights", name), 1, DType::kBf16, set);
  AddState(fmt::format("{}: {}", name, numbers), moments, training_.moments, set);
}

void OptimizerUpdate::AddState(const std::string& name, uint64_t rows, DType dtype, Set* set) {
  const auto elements = static_cast<uint64_t>(set->vectors + set->matrices);
  set->state.push_back(
      plan_.AddBuffer({.name = name,
                       .kind = BufferKind::kOptimizer,
                       .bytes = static_cast<double>(rows * elements) * SizeOf(dtype),
                       .dtype = dtype,
                       .rows = rows,
                       .columns = elements,
                       .on_host = training_.optimizer_on_host}));
  state_.push_back(set->state.back());
}

void OptimizerUpdate::CheckValidation() const {
  if (training_.update_rule != UpdateRule::kAdam)
    throw Error(plan_.place(),
                "validation after the update: only Adam's updates can be taken back; expected "
                "\"update_rule\": \"adam\", or \"validation\": \"before-update\"");
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

void OptimizerUpdate::CheckHost() const {
  if (training_.update_rule != UpdateRule::kAdam && training_.update_rule != UpdateRule::kSgd)
    throw Error(plan_.place(),
                "\"optimizer_on_host\": LAMB's and Muon's updates on the host are not modelled; "
                "expected \"update_rule\": \"adam\" or \"sgd\"");
  if (validation_ != kAdamOnce)
    throw Error(plan_.place(),
                "validation after the update: the host's updates are not taken back; expected no "
                "\"optimizer_on_host\", or \"validation\": \"before-update\"");
  if (!training_.parameters_on_host) return;
  for (const uint32_t index : places_.Owners())
    if (places_.IsOnHost(index)) return;
  throw Error(plan_.place(),
              "\"parameters_on_host\": shares of ZeRO-3 can be there, and this strategy has none; "
              "expected false, or a strategy that shards parameters (\"zero\" 3)");
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
  if (training_.optimizer_on_host) {
    UpdateOnHost();
    return;
  }
  const Operands all = OperandsOf(true, true);
  const BufferId norm = GradientNorm(all);
  switch (training_.update_rule) {
    case UpdateRule::kAdam:
    case UpdateRule::kMuon:
    case UpdateRule::kSgd: {
      const bool is_sgd = training_.update_rule == UpdateRule::kSgd;
      const Operands operands = muon_.matrices > 0 ? OperandsOf(true, false) : all;
      if (operands.gradients.empty()) break;
      std::vector<BufferId> reads = operands.gradients;
      reads.push_back(norm);
      const std::vector<BufferId> writes = WithState(operands.parameters, adam_);
      std::vector<double> attributes = {kLearningRate};
      if (is_sgd) attributes.push_back(kMomentum);
      plan_.AddMemoryOp(is_sgd ? "SGD" : "Adam", is_sgd ? Kernel::kMomentum : Kernel::kAdam,
                        Costs(adam_).update, reads, writes, attributes);
      if (validation_ != kAdamOnce) Validate(std::move(reads), writes);
      break;
    }
    case UpdateRule::kLamb:
      UpdateByLamb(all, norm);
      break;
  }
  if (muon_.matrices > 0) UpdateByMuon(OperandsOf(false, true), norm);
}

OptimizerUpdate::HostOperands OptimizerUpdate::HostOperandsOf() {
  HostOperands operands;
  operands.own.shares = OperandsOf(true, true).shares;
  const auto add = [&](BufferId gradient, BufferId host_gradient, BufferId share,
                       BufferId host_share) {
    operands.own.gradients.push_back(host_gradient);
    operands.own.parameters.push_back(host_share);
    if (gradient.IsSet()) {
      operands.sent.push_back(gradient);
      operands.sent_to.push_back(host_gradient);
    }
    if (share == host_share) return;
    operands.made.push_back(host_share);
    operands.returned_to.push_back(share);
  };
  for (const VectorGroup& group : arrays_.groups()) {
    if (group.is_frozen) continue;
    add(group.gradient, group.host_gradient, group.value, group.host_value);
    for (const uint32_t vector : group.vectors) {
      Buffer own = plan_.BufferOf(arrays_.Vector(vector).gradient);
      own.name += ", on the host";
      own.region = kNoRegion;
      own.on_host = true;
      own.view->of = group.host_gradient;
      operands.own.summands.push_back(plan_.AddBuffer(std::move(own)));
    }
  }
  for (const uint32_t index : places_.TrainedOwners()) {
    const MatrixArrays& arrays = arrays_[index];
    add(arrays.update_gradient, arrays.host_gradient, arrays.update_share, arrays.host_share);
    operands.own.summands.push_back(arrays.host_gradient);
  }
  return operands;
}

void OptimizerUpdate::UpdateOnHost() {
  const HostOperands operands = HostOperandsOf();
  if (operands.own.gradients.empty()) return;
  if (!operands.sent.empty())
    plan_.SendToHost("offload gradients", operands.sent, operands.sent_to, plan_.LastCompute());
  const BufferId norm = AddNumber("gradient norm, on the host", /*on_host=*/true);
  plan_.AddHostOp("gradient norm", Kernel::kSquaredNorm, GradientBytes(adam_),
                  operands.own.summands, {norm}, operands.own.shares);
  if (RanksOfModel() > 1) {
    const BufferId summed = AddNumber("gradient norm");
    plan_.ReturnFromHost("return gradient norm", {norm}, {summed}, plan_.LastCompute());
    SumOverModel(summed);
    plan_.SendToHost("offload gradient norm", {summed}, {norm}, plan_.LastCompute());
  }
  std::vector<BufferId> reads = operands.own.gradients;
  reads.push_back(norm);
  const bool is_sgd = training_.update_rule == UpdateRule::kSgd;
  std::vector<double> attributes = {kLearningRate};
  if (is_sgd) attributes.push_back(kMomentum);
  plan_.AddHostOp(is_sgd ? "SGD" : "Adam", is_sgd ? Kernel::kMomentum : Kernel::kAdam, HostBytes(),
                  reads, WithState(operands.own.parameters, adam_), attributes);
  if (!operands.made.empty())
    plan_.ReturnFromHost("return parameters", operands.made, operands.returned_to,
                         plan_.LastCompute());
}

// Of clipping and the update.
double OptimizerUpdate::HostBytes() const {
  Training training = training_;
  training.optimizer = OptimizerKernels::kFused;
  Bytes state;
  for (const BufferId array : adam_.state) state += plan_.BufferOf(array).bytes;
  const double elements = adam_.vectors + adam_.matrices;
  const double cast = SizeOf(training_.gradients).value() < kFloat
                          ? adam_.matrices * (places_.gradient_element() + kFloat)
                          : 0;
  return cast + elements * 2 * kFloat +
         CostsOfAdam(training, elements, 1, elements * kFloat, state.value(), ParameterBytes())
             .update.bytes;
}

OptimizerUpdate::Operands OptimizerUpdate::OperandsOf(bool adams, bool muons) const {
  Operands operands;
  const double copies = places_.stages().front()->mirror ? 2 : 1;
  for (const VectorGroup& group : arrays_.groups()) {
    if (group.is_frozen || !adams) continue;
    operands.gradients.push_back(group.gradient);
    operands.parameters.push_back(group.value);
    for (const uint32_t vector : group.vectors) {
      operands.summands.push_back(arrays_.Vector(vector).gradient);
      operands.shares.push_back(ShareOfRanks(arrays_.Vector(vector).layout, {}) / copies);
    }
  }
  for (const uint32_t index : places_.TrainedOwners()) {
    if (!(IsOrthogonal(index) ? muons : adams)) continue;
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

std::vector<BufferId> OptimizerUpdate::WithState(std::vector<BufferId> parameters, const Set& set) {
  parameters.insert(parameters.end(), set.state.begin(), set.state.end());
  return parameters;
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
double OptimizerUpdate::GradientBytes(const Set& set) const {
  return set.matrices * places_.gradient_element() + set.vectors * kFloat;
}

// Of each parameter, as it is read and written beside the state.
double OptimizerUpdate::ParameterBytes() const {
  const bool is_read =
      training_.precision == DType::kFp32 || training_.masters != MasterWeights::kFp32;
  return places_.KeepsMasters() ? 2 * kFloat : (is_read ? 2 : 1) * plan_.element();
}

// Of Adam, and of SGD with momentum, which is one kernel.
OptimizerCosts OptimizerUpdate::Costs(const Set& set) const {
  Training training = training_;
  if (training.update_rule != UpdateRule::kAdam && training.update_rule != UpdateRule::kMuon)
    training.optimizer = OptimizerKernels::kFused;
  Bytes state;
  for (const BufferId array : set.state) state += plan_.BufferOf(array).bytes;
  return CostsOfAdam(training, set.vectors + set.matrices, UpdatedArrays(), GradientBytes(set),
                     state.value(), ParameterBytes());
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

// ---- LAMB ---------------------------------------------------------------------------------------

void OptimizerUpdate::UpdateByLamb(const Operands& operands, BufferId norm) {
  const LambCosts costs =
      CostsOfLamb({.elements = adam_.vectors + adam_.matrices,
                   .gradient_bytes = GradientBytes(adam_),
                   .weight = places_.KeepsMasters() || HasMasters() ? kFloat : plan_.element(),
                   .parameter = HasMasters() ? plan_.element() : 0});
  std::vector<BufferId> reads = operands.gradients;
  reads.push_back(norm);
  const std::vector<BufferId> updated = WithState(operands.parameters, adam_);
  plan_.AddMemoryOp("LAMB moments", Kernel::kLambMoments, costs.moments, reads, updated,
                    {kLearningRate});
  const std::vector<double> attributes = LambAttributes(operands);
  uint64_t tensors = 0;
  for (const uint32_t index : places_.TrainedOwners())
    tensors += places_.LayersLike(places_.ShapeOf(index).layer);
  for (const VectorGroup& group : arrays_.groups()) {
    for (const uint32_t vector : group.is_frozen ? std::vector<uint32_t>() : group.vectors)
      tensors += places_.LayersLike(places_.network().vectors[vector].layer);
  }
  constexpr double kNumbers = 2;  // of each tensor
  const double bytes = kNumbers * kFloat * static_cast<double>(tensors);
  const BufferId norms = plan_.AddBuffer({.name = "LAMB norms",
                                          .kind = BufferKind::kBuffer,
                                          .bytes = Bytes(bytes),
                                          .dtype = DType::kFp32,
                                          .rows = operands.summands.size(),
                                          .columns = static_cast<uint64_t>(kNumbers)});
  plan_.AddMemoryOp("LAMB norms", Kernel::kLambNorms, costs.norms, updated, {norms}, attributes);
  const std::vector<uint32_t> axes = ModelAxes();
  if (!axes.empty()) {
    plan_.AddCollective("all-reduce LAMB norms", CollectiveKind::kAllReduce, axes, bytes,
                        DType::kFp32, Issue::kBlocking, {norms}, {norms});
  }
  plan_.AddMemoryOp("LAMB", Kernel::kLambStep, costs.step, {norms}, updated, attributes);
}

// Tensors in the order of the state. Copies of one on other stages have norms of their own.
std::vector<double> OptimizerUpdate::LambAttributes(const Operands& operands) const {
  std::vector<double> attributes = {kLambDecay, kLearningRate,
                                    static_cast<double>(operands.parameters.size())};
  const auto add = [&](double elements, double share) {
    attributes.push_back(elements);
    attributes.push_back(share);
  };
  for (const VectorGroup& group : arrays_.groups()) {
    for (const uint32_t vector : group.is_frozen ? std::vector<uint32_t>() : group.vectors) {
      const VectorArrays& of = arrays_.Vector(vector);
      add(static_cast<double>(plan_.BufferOf(of.value).columns), ShareOfRanks(of.layout, {}));
    }
  }
  for (const uint32_t index : places_.TrainedOwners()) {
    const MatrixPlace& place = places_[index];
    const Buffer& own = plan_.BufferOf(arrays_[index].update_share);
    add(static_cast<double>(own.rows * own.columns),
        ShareOfRanks(places_.strategy().products[index].w,
                     place.Shares(1) ? place.share_axes : std::vector<uint32_t>()));
  }
  return attributes;
}

// Those of this stage along which parameters are split or shared.
std::vector<uint32_t> OptimizerUpdate::ModelAxes() const {
  std::vector<uint32_t> axes;
  for (uint32_t axis = 0; axis < plan_.sizes().size(); ++axis)
    if (!IsDataAxis(axis) && plan_.sizes()[axis] > 1) axes.push_back(axis);
  return axes;
}

// ---- Muon ---------------------------------------------------------------------------------------

void OptimizerUpdate::UpdateByMuon(const Operands& operands, BufferId norm) {
  std::vector<BufferId> reads = operands.gradients;
  reads.push_back(norm);
  plan_.AddMemoryOp("Muon momentum", Kernel::kMomentum,
                    KernelCost{GradientBytes(muon_) + muon_.matrices * 2 * kFloat, 1}, reads,
                    WithState(operands.parameters, muon_), {0, kMuonMomentum});
  double begin = 0;
  for (const uint32_t index : OrthogonalMatrices()) {
    UpdateMatrixByMuon(index, norm, begin);
    begin += places_[index].UpdatedElements();
  }
}

// `begin`: of its part of the state.
void OptimizerUpdate::UpdateMatrixByMuon(uint32_t matrix, BufferId norm, double begin) {
  const NetworkMatrix& shape = places_.ShapeOf(matrix);
  const MatrixPlace& place = places_[matrix];
  const LayerTag tag(&plan_, shape.layer);
  const double elements = place.UpdatedElements();
  const BufferId gradient = arrays_[matrix].update_gradient;
  const BufferId direction = arrays_.Add(matrix, "direction of", BufferKind::kBuffer,
                                         training_.precision, place.Shares(1));
  const double read = places_.gradient_element() + kFloat;
  plan_.AddMemoryOp("Muon direction", Kernel::kMuonDirections,
                    KernelCost{elements * (read + plan_.element()), 1},
                    {gradient, norm, muon_.state.back()}, {direction}, {kMuonMomentum, begin});
  const BufferId step = OwnPart(matrix, direction, Orthogonal(matrix, direction));
  const double tall = static_cast<double>(shape.n) / static_cast<double>(shape.k);
  const double weights = HasMasters() ? 2 * kFloat + plan_.element() : ParameterBytes();
  plan_.AddMemoryOp("Muon", Kernel::kMuonStep,
                    KernelCost{elements * (plan_.element() + weights), 1}, {step},
                    WithState({arrays_[matrix].update_share}, muon_),
                    {kLearningRate, kMuonDecay, std::sqrt(std::max(1.0, tall)), begin});
}

// All of the matrix, whose direction may lie in pieces and shares; returns all of the result. Or of
// this rank's piece.
BufferId OptimizerUpdate::Orthogonal(uint32_t matrix, BufferId direction) {
  const NetworkMatrix& shape = places_.ShapeOf(matrix);
  const MatrixPlace& place = places_[matrix];
  const DType type = training_.precision;
  const double element = plan_.element();
  if (place.Shares(1)) {
    const BufferId block = arrays_.Add(matrix, "gathered direction of", BufferKind::kBuffer, type,
                                       /*share=*/false);
    plan_.AddCollective("all-gather direction of " + shape.name, CollectiveKind::kAllGather,
                        place.share_axes, place.elements * element, type, Issue::kBlocking,
                        {direction}, {block});
    direction = block;
  }
  uint64_t rows = place.rows;
  uint64_t columns = place.columns;
  if (!training_.muon_by_pieces) {
    const Layout& w = places_.strategy().products[matrix].w;
    const Tensor all = plan_.Redistribute(
        {"direction of " + shape.name, shape.n, shape.k, Transposed(w), direction, type},
        Layout(w.size(), B()));
    direction = all.buffer;
    rows = shape.n;
    columns = shape.k;
  }
  const auto add = [&](const char* name, uint64_t height, uint64_t width) {
    return plan_.AddBuffer({.name = name,
                            .kind = BufferKind::kBuffer,
                            .bytes = static_cast<double>(height * width) * SizeOf(type),
                            .dtype = type,
                            .rows = height,
                            .columns = width});
  };
  const double elements = static_cast<double>(rows) * static_cast<double>(columns);
  const bool is_tall = rows > columns;
  const uint64_t side = std::min(rows, columns);
  const BufferId norm = AddNumber("norm of direction");
  plan_.AddMemoryOp("norm of direction", Kernel::kSquaredNorm, elements * element, {direction},
                    {norm}, 1, {1});
  BufferId x = add("Newton-Schulz X", rows, columns);
  BufferId y = add("Newton-Schulz X", rows, columns);
  plan_.AddMemoryOp("normalize direction", Kernel::kNormalize, 2 * elements * element,
                    {direction, norm}, {x});
  const BufferId a = add("Newton-Schulz A", side, side);
  const BufferId b = add("Newton-Schulz B", side, side);
  // A product that adds to a multiple of another array reads that, too (torch.addmm).
  const auto multiply = [&](const char* name, const Gemm& gemm, BufferId left, BufferId right,
                            BufferId result, BufferId added, double of_added, double of_product) {
    const Bytes bytes = BytesOf(gemm, type) + plan_.BufferOf(result).bytes;
    plan_.AddGemm(name, gemm, left, right, result, false, bytes);
    plan_.AddMemoryOp(name, Kernel::kLinear, KernelCost{0, 0}, {added, result}, {result},
                      {of_added, of_product});
  };
  for (uint32_t step = 0; step < kMuonSteps; ++step) {
    const uint64_t sum = is_tall ? rows : columns;
    const GemmMode mode = is_tall ? GemmMode::kTN : GemmMode::kNT;
    plan_.AddGemm("Newton-Schulz A", {.m = side, .n = side, .k = sum, .mode = mode}, x, x, a);
    multiply("Newton-Schulz B", {.m = side, .n = side, .k = side, .mode = GemmMode::kNN}, a, a, b,
             a, kMuonB, kMuonC);
    multiply("Newton-Schulz X", {.m = rows, .n = columns, .k = side, .mode = GemmMode::kNN},
             is_tall ? x : b, is_tall ? b : x, y, x, kMuonA, 1);
    std::swap(x, y);
  }
  return x;
}

// What this rank updates of the matrix.
BufferId OptimizerUpdate::OwnPart(uint32_t matrix, BufferId direction, BufferId whole) {
  const NetworkMatrix& shape = places_.ShapeOf(matrix);
  const MatrixPlace& place = places_[matrix];
  const DType type = training_.precision;
  if (!training_.muon_by_pieces) {
    const Layout& w = places_.strategy().products[matrix].w;
    const Tensor own = plan_.Redistribute(
        {"step of " + shape.name, shape.n, shape.k, Layout(w.size(), B()), whole, type},
        Transposed(w));
    whole = own.buffer;
  }
  if (!place.Shares(1)) return whole;
  const BufferId block = arrays_.Add(matrix, "step of", BufferKind::kBuffer, type, /*share=*/false);
  plan_.AddMemoryOp("copy step", Kernel::kCopy,
                    2 * static_cast<double>(place.rows * place.columns) * plan_.element(), {whole},
                    {block});
  Buffer share = plan_.BufferOf(direction);
  share.name = plan_.Label("share of step of " + shape.name);
  share.bytes = Bytes(0);
  share.view = View{block, 0, 0, {}, {}};
  for (const uint32_t axis : place.share_axes) share.view->columns_cut_by.emplace_back(axis);
  return plan_.AddBuffer(std::move(share));
}

// ---- the norm -----------------------------------------------------------------------------------

BufferId OptimizerUpdate::AddNumber(const std::string& name, bool on_host) {
  return plan_.AddBuffer({.name = name,
                          .kind = BufferKind::kBuffer,
                          .bytes = Bytes(kFloat),
                          .dtype = DType::kFp32,
                          .rows = 1,
                          .columns = 1,
                          .on_host = on_host});
}

BufferId OptimizerUpdate::GradientNorm(const Operands& operands) {
  const BufferId norm = AddNumber("gradient norm");
  const Set all{adam_.vectors, adam_.matrices + muon_.matrices, {}};
  plan_.AddMemoryOp("gradient norm", Kernel::kSquaredNorm, Costs(all).norm, operands.summands,
                    {norm}, operands.shares);
  if (validation_ == kAdamOnce) {
    SumOverModel(norm);
  } else {
    SumWithRanksBefore(norm);
  }
  return norm;
}

// Those that share one copy of it.
uint32_t OptimizerUpdate::RanksOfModel() const {
  return plan_.mesh().size() / plan_.SizeOfAxes(data_) * plan_.communicators().pipeline_ranks();
}

void OptimizerUpdate::SumOverModel(BufferId norm) {
  if (RanksOfModel() == 1) return;
  Collective collective;
  collective.communicator = plan_.communicators().model();
  collective.bytes = Bytes(kFloat);
  collective.dtype = DType::kFp32;
  plan_.AddCollective("all-reduce gradient norm", collective, Issue::kBlocking, {norm}, {norm});
}

// Over the ranks of this stage, then along the pipeline from its first rank to this one.
void OptimizerUpdate::SumWithRanksBefore(BufferId norm) {
  const std::vector<uint32_t> axes = ModelAxes();
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
    cost = Costs(adam_).update;
    cost.bytes *= 2;
    cost.kernels *= 2;
  }
  plan_.AddMemoryOp("validate update", Kernel::kAdam, cost, reads, writes,
                    {kLearningRate, static_cast<double>(validation_)});
}

}  // namespace rehearse
