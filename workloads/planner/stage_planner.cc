#include "workloads/planner/stage_planner.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "workloads/planner/casts.h"
#include "workloads/planner/kept_narrow.h"
#include "workloads/planner/layer_graphs.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {

StreamId MessageStreams::Of(Kind kind, uint32_t other_rank) {
  constexpr std::array<const char*, kKinds> kNames = {"receive values", "send values",
                                                      "receive gradients", "send gradients"};
  StreamId& stream = streams_[{kind, other_rank}];
  if (stream.IsSet()) return stream;
  const StepCommunicators& communicators = builder_.communicators();
  const bool has_one_neighbour = communicators.OfValues() == communicators.OfGradients();
  stream = builder_.AddStream(
      has_one_neighbour ? kNames[kind] : fmt::format("{}, rank {}", kNames[kind], other_rank));
  return stream;
}

NodesOfStage::NodesOfStage(const Network& network, const Stage& stage) {
  constexpr uint32_t kUnknown = 0xffffffffu;
  numbers_.assign(network.nodes.size(), kUnknown);
  const auto add = [&](uint32_t node) {
    if (numbers_[node] == kUnknown) numbers_[node] = count_++;
  };
  for (const uint32_t node : stage.inputs) add(node);
  for (const uint32_t node : stage.arrives) add(node);
  for (uint32_t node = stage.node_begin(); node < stage.node_end(); ++node) add(node);
}

std::vector<uint32_t> NodesOfStage::All() const {
  std::vector<uint32_t> nodes;
  for (uint32_t node = 0; node < numbers_.size(); ++node)
    if (Has(node)) nodes.push_back(node);
  return nodes;
}

StagePlanner::StagePlanner(const StepSetup& step, const Stage& stage, Plan* plan,
                           MessageStreams* streams)
    : step_(step),
      stage_(stage),
      nodes_(std::make_unique<NodesOfStage>(step.network, stage)),
      graphs_(GraphsOfNodes(step.network, step.training)),
      plan_(*plan),
      builder_(plan->builder),
      gathering_(plan->parameters.gathering),
      gradients_(plan->parameters.gradients),
      streams_(*streams) {
  for (const Unit& unit : stage.units) layers_ += unit.layer >= 0 ? 1 : 0;
}

// ---- blocks that repeat -------------------------------------------------------------------------

std::vector<uint32_t> StagePlanner::UnderWay() const {
  std::vector<uint32_t> indices;
  for (const auto& [index, micro_batch] : micro_batches_) indices.push_back(index);
  return indices;
}

bool StagePlanner::HoldsOnlyFrom(uint32_t first_buffer) const {
  const auto is_old = [&](BufferId id) { return id.IsSet() && id.index() < first_buffer; };
  for (const auto& [index, micro_batch] : micro_batches_) {
    for (const ChunkState& chunk : micro_batch.chunks) {
      for (const NodeState& node : chunk.nodes) {
        if (is_old(node.value.buffer) || is_old(node.operand.buffer)) return false;
        if (std::any_of(node.saved.begin(), node.saved.end(), is_old)) return false;
      }
      for (const std::optional<Tensor>& gradient : chunk.gradients) {
        if (gradient && is_old(gradient->buffer)) return false;
      }
      for (const auto& [node, operands] : chunk.put_off) {
        if (is_old(operands.x.buffer) || is_old(operands.dy.buffer)) return false;
      }
      for (const auto& layer : chunk.on_host.arrays) {
        for (const auto& [device, host] : layer)
          if (is_old(device) || is_old(host)) return false;
      }
    }
  }
  return true;
}

void StagePlanner::SkipMicroBatches(uint32_t count) {
  std::map<uint32_t, MicroBatch> later;
  for (auto& [index, micro_batch] : micro_batches_) {
    later.emplace(index + count, std::move(micro_batch));
  }
  micro_batches_ = std::move(later);
}

// ---- what the actions do ------------------------------------------------------------------------

void StagePlanner::Enter(const Action& action, bool makes_last_gradients, bool puts_off_weights) {
  const bool goes_backward =
      action.kind == ActionKind::kBackward || action.kind == ActionKind::kInputGradient;
  Phase phase = Phase::kBackward;
  if (action.kind == ActionKind::kForward) phase = Phase::kForward;
  if (action.kind == ActionKind::kRecompute) phase = Phase::kRecompute;
  Choose(action.micro_batch, phase);
  plan_.action = {.stage = &stage_,
                  .micro_batch = action.micro_batch,
                  .prefetch_end = stage_.matrix_end(),
                  .goes_backward = goes_backward,
                  .puts_off_weights = puts_off_weights || action.kind == ActionKind::kInputGradient,
                  .makes_last_gradients = makes_last_gradients};
}

void StagePlanner::Do(const Action& action, bool makes_last_gradients) {
  Enter(action, makes_last_gradients);
  if (action.kind == ActionKind::kRecompute) {
    RecomputeAll();
  } else if (action.kind == ActionKind::kWeightGradient) {
    EndApart(action);
  } else {
    for (const Part& part : PartsOf(action, /*by_node=*/false)) part.work();
  }
}

std::vector<StagePlanner::Part> StagePlanner::PartsOf(const Action& action, bool by_node) {
  switch (action.kind) {
    case ActionKind::kForward:
      return PartsOfForward(by_node);
    case ActionKind::kBackward:
    case ActionKind::kInputGradient:
      return PartsOfBackward(action, by_node);
    default:
      internal::FailCheck(__FILE__, __LINE__, "an action that is no pass through a stage");
  }
}

PlanBuilder::Issue StagePlanner::SendIssue() const {
  const bool waits = !step_.overlaps_messages || step_.batches_messages;
  return waits ? PlanBuilder::Issue::kBlocking : PlanBuilder::Issue::kAsynchronous;
}

// This rank's part of what it sends.
Tensor StagePlanner::AsItCrosses(uint32_t node, const Tensor& tensor) {
  CHECK(tensor.layout == step_.rests[node]);
  return builder_.Redistribute(tensor, step_.crossings[node]);
}

namespace {

// As one part of a pass, or each as a part of its own.
template <typename Visits>
std::vector<Visits> Divide(Visits visits, bool by_node) {
  std::vector<Visits> parts;
  if (by_node) {
    for (const auto& visit : visits) parts.push_back({visit});
  } else {
    parts.push_back(std::move(visits));
  }
  return parts;
}

// What comes before the first part goes with it, and what comes after the last one with that.
void TakeEnds(std::vector<StagePlanner::Part>* parts) {
  if (parts->size() < 3) return;
  parts->front().kind = (*parts)[1].kind;
  parts->back().kind = (*parts)[parts->size() - 2].kind;
}

}  // namespace

// ---- forward ------------------------------------------------------------------------------------

std::vector<StagePlanner::Part> StagePlanner::PartsOfForward(bool by_node) {
  std::vector<Part> parts = {{PassPart::kForwardAttention, [this] { BeginForward(); }}};
  for (const std::vector<Visit>& visits : Divide(AllVisits(), by_node)) {
    const Visit& first = visits.front();
    parts.push_back({LayerParts(step_.network, step_.training, *first.unit).Forward(first.node),
                     [this, visits] { Forward(Phase::kForward, visits); }});
  }
  parts.push_back({PassPart::kForwardAttention, [this] { EndForward(); }});
  TakeEnds(&parts);
  return parts;
}

void StagePlanner::BeginForward() {
  ForEachChunk([&] { MakeInputs(); });
  ForEachCrossing(stage_.arrives, Phase::kForward, [&](uint32_t node) {
    Tensor& value = plan_.State(node).value;
    value = builder_.Redistribute(value, step_.rests[node]);
  });
}

void StagePlanner::EndForward() {
  MicroBatch* handed = behind_ != nullptr ? &behind_->Begin(plan_.action.micro_batch) : nullptr;
  const auto chunk_index = [&] { return static_cast<size_t>(plan_.chunk - &current_->chunks[0]); };
  ForEachCrossing(stage_.leaves, Phase::kForward, [&](uint32_t node) {
    const Tensor& value = plan_.State(node).value;
    if (handed != nullptr) {
      handed->chunks[chunk_index()].StateOf(node).value = value;
      return;
    }
    builder_.AddSend(AsItCrosses(node, value), builder_.communicators().OfValues(),
                     stage_.rank_behind,
                     streams_.Of(MessageStreams::kSendValues, stage_.rank_behind), SendIssue());
  });
  if (step_.keeps_messages) {
    for (const uint32_t node : Results())
      ForEachChunk([&] { builder_.Borrow(plan_.State(node).value.buffer); });
  }
  current_->ran_forward = true;
}

void StagePlanner::RecomputeAll() {
  CHECK(Recomputes());
  for (size_t i = stage_.units.size(); i-- > 0;) ReturnOfAllChunks(stage_.units[i]);
  for (const Unit& unit : stage_.units) {
    if (ComputesAgain(unit)) Forward(Phase::kRecompute, VisitsAgain(unit));
  }
  current_->is_recomputed = true;
}

bool StagePlanner::ComputesAgain(const Unit& unit) const {
  const std::optional<uint32_t> layer = LayerOfStage(unit);
  return layer && step_.training.ComputesAgain(stage_.index, *layer);
}

std::optional<uint32_t> StagePlanner::LayerOfStage(const Unit& unit) const {
  if (unit.layer < 0) return std::nullopt;
  return stage_.LayersBefore(unit.layer);
}

// Eager PyTorch caches the results of all products that are not computed again, be they needed or
// not: those of the last one of an MLP are not. It takes no time to free them.
void StagePlanner::FreeCached(const Visit& visit) {
  const Training& training = step_.training;
  if (!training.recomputed_ops.second_products || training.kernels != KernelStyle::kEager) return;
  const NetworkNode& node = step_.network.nodes[visit.node];
  if (node.kind != NodeKind::kProduct || node.part == LayerPart::kAttentionOutput) return;
  if (step_.network.matrices[*node.matrix].role != MatrixRole::kSecond) return;
  SetPhase(Phase::kRecompute, node.layer);
  ForEachChunk([&] {
    const BufferId cached = plan_.State(visit.node).value.buffer;
    builder_.AddMemoryOp("free cached", Kernel::kCopy, KernelCost{0, 0}, {cached}, {cached});
  });
}

// Recomputes what selective recomputation dropped, before the way back through the layer.
void StagePlanner::RecomputeOps(const Unit& unit, const std::vector<Visit>& visits) {
  for (const Visit& visit : visits) {
    FreeCached(visit);
    const bool is_narrow = IsKeptNarrow(step_.network, visit.node, step_.training);
    if (is_narrow) {
      SetPhase(Phase::kRecompute, unit.layer);
      ForEachChunk([&] { WidenKept(plan_, visit.node); });
    }
    const bool is_again =
        IsRecomputedOp(step_.network, step_.network.nodes[visit.node], step_.training);
    if (is_again) ForwardAgain(unit, {visit});
    if (is_narrow || (is_again && !step_.training.keeps_casts)) CastAgain(unit, visit.node);
  }
}

// Products take a cast of the new value.
void StagePlanner::CastAgain(const Unit& unit, uint32_t value) {
  SetPhase(Phase::kRecompute, unit.layer);
  for (uint32_t node = value + 1; node < unit.end; ++node) {
    const NetworkNode& shape = step_.network.nodes[node];
    if (shape.inputs.empty() || shape.inputs.front() != value) continue;
    ForEachChunk([&] {
      if (IsNarrow(plan_.State(node).operand.dtype)) TakeOperandAgain(plan_, node);
    });
  }
}

// A product that took a value that was dropped takes the new one.
void StagePlanner::ForwardAgain(const Unit& unit, const std::vector<Visit>& visits) {
  std::vector<BufferId> dropped;
  for (const Visit& visit : visits)
    ForEachChunk([&] { dropped.push_back(plan_.State(visit.node).value.buffer); });
  Forward(Phase::kRecompute, visits);
  size_t next = 0;
  for (const Visit& visit : visits) {
    ForEachChunk([&] {
      const BufferId old = dropped[next++];
      if (!old.IsSet()) return;
      for (uint32_t node = visit.node + 1; node < unit.end; ++node) {
        Tensor& operand = plan_.State(node).operand;
        if (operand.buffer == old) operand = plan_.State(visit.node).value;
      }
    });
  }
}

// Recomputation that stops before the layer's last product makes what its gradients need.
void StagePlanner::TakeOperandOfLast(const Unit& unit) {
  const uint32_t node = unit.begin + static_cast<uint32_t>(VisitsAgain(unit).size());
  if (node == unit.end) return;
  SetPhase(Phase::kRecompute, step_.network.nodes[node].layer);
  ForEachChunk([&] {
    EnterGraphOf(node);
    TakeOperandAgain(plan_, node);
    builder_.set_graph(0);
  });
}

// ---- backward -----------------------------------------------------------------------------------

// What is computed again comes layer by layer, and what it needs is gathered no further ahead.
std::vector<StagePlanner::Part> StagePlanner::PartsOfBackward(const Action& action, bool by_node) {
  const Training& training = step_.training;
  const bool recomputes_layers =
      Recomputes() && !micro_batches_.at(action.micro_batch).is_recomputed;
  const bool is_selective = training.recomputation == Recomputation::kSelective;
  const bool recomputes_ops =
      (is_selective && (training.recomputed_ops.Any() || training.keeps_narrow_attention)) ||
      (training.recomputation != Recomputation::kFull && training.keeps_narrow_activations);
  std::vector<Part> parts = {{PassPart::kBackwardCombine, [this] { BeginBackward(); }}};
  if (!recomputes_layers && !recomputes_ops && !by_node && !EndsSumsWithLayer()) {
    std::vector<Visit> visits = AllVisits();
    std::reverse(visits.begin(), visits.end());
    parts.push_back({PassPart::kBackwardAttention, [this, visits] { Backward(visits); }});
  } else {
    for (size_t i = stage_.units.size(); i-- > 0;)
      AddWayBack(stage_.units[i], recomputes_layers, recomputes_ops, by_node, &parts);
  }
  parts.push_back({PassPart::kBackwardAttention, [this] { EndBackward(); }});
  TakeEnds(&parts);
  return parts;
}

// Back through one unit. In parts, ops are recomputed in front of the part that needs them.
void StagePlanner::AddWayBack(const Unit& unit, bool recomputes_layers, bool recomputes_ops,
                              bool by_node, std::vector<Part>* parts) {
  const LayerParts kinds(step_.network, step_.training, unit);
  const auto prepare = [this, &unit](std::vector<Visit> again) {
    return [this, &unit, again = std::move(again)] {
      ReturnOfAllChunks(unit);
      plan_.action.prefetch_end = unit.matrix_end;
      RecomputeOps(unit, again);
    };
  };
  const PassPart first = kinds.Backward(unit.end - 1);
  const std::vector<Visit> visits = VisitsOf(unit);
  if (recomputes_layers || (recomputes_ops && !by_node))
    parts->push_back({first, prepare(recomputes_ops ? visits : std::vector<Visit>())});
  if (recomputes_layers && ComputesAgain(unit)) {
    for (const std::vector<Visit>& again : Divide(VisitsAgain(unit), by_node)) {
      parts->push_back({first, [this, &unit, again] {
                          plan_.action.prefetch_end = unit.matrix_end;
                          ForwardAgain(unit, again);
                        }});
    }
    parts->push_back({first, [this, &unit] { TakeOperandOfLast(unit); }});
  }
  std::optional<PassPart> prepared;
  const auto back = Divide(std::vector<Visit>(visits.rbegin(), visits.rend()), by_node);
  for (const std::vector<Visit>& some : back) {
    const PassPart kind = kinds.Backward(some.front().node);
    if (by_node && recomputes_ops && prepared != kind) {
      std::vector<Visit> again;
      std::copy_if(visits.begin(), visits.end(), std::back_inserter(again),
                   [&](const Visit& visit) { return kinds.Again(visit.node) == kind; });
      parts->push_back({kind, prepare(std::move(again))});
      prepared = kind;
    }
    const bool begins = &some == &back.front();
    const bool ends = &some == &back.back();
    parts->push_back({kind, [this, some, begins, ends] {
                        if (begins) way_back_begin_ = builder_.role().ops.size();
                        Backward(some);
                        if (ends && EndsSumsWithLayer()) builder_.AwaitSince(way_back_begin_);
                      }});
  }
}

bool StagePlanner::EndsSumsWithLayer() const {
  return step_.strategy.shard && step_.strategy.shard->within_layer;
}

void StagePlanner::BeginBackward() {
  ForEachCrossing(stage_.leaves, Phase::kBackward, [&](uint32_t node) {
    std::optional<Tensor>& gradient = plan_.Gradient(node);
    CHECK(gradient.has_value());
    *gradient = builder_.Redistribute(*gradient, step_.rests[node]);
  });
}

void StagePlanner::EndBackward() {
  const bool puts_off_weights = plan_.action.puts_off_weights;
  gathering_.EndBackward(plan_.action);
  if (!puts_off_weights) gradients_.Finish(plan_.action);
  const uint32_t micro_batch = plan_.action.micro_batch;
  MicroBatch* handed = before_ != nullptr ? &before_->micro_batches_.at(micro_batch) : nullptr;
  const auto chunk_index = [&] { return static_cast<size_t>(plan_.chunk - &current_->chunks[0]); };
  ForEachCrossing(stage_.arrives, Phase::kBackward, [&](uint32_t node) {
    CHECK(plan_.Gradient(node).has_value());
    const Tensor& gradient = *plan_.Gradient(node);
    if (handed != nullptr) {
      handed->chunks[chunk_index()].GradientOf(node) = gradient;
      return;
    }
    builder_.AddSend(AsItCrosses(node, gradient), builder_.communicators().OfGradients(),
                     stage_.rank_before,
                     streams_.Of(MessageStreams::kSendGradients, stage_.rank_before), SendIssue());
  });
  // What the weight gradients need has been kept with them.
  for (ChunkState& chunk : current_->chunks) {
    chunk.nodes.clear();
    chunk.gradients.clear();
    chunk.on_host = ActivationsOnHost();
  }
  if (!puts_off_weights) micro_batches_.erase(micro_batch);
}

void StagePlanner::MakePutOff() {
  for (size_t i = 0; i < current_->chunks.front().put_off.size(); ++i) {
    const uint32_t node = current_->chunks.front().put_off[i].first;
    SetPhase(Phase::kBackward, step_.network.nodes[node].layer);
    ForEachChunk([&] {
      CHECK_EQ(plan_.chunk->put_off[i].first, node);
      EnterGraphOf(node);
      RuleOf(step_.network.nodes[node].kind)
          .weight_gradient(plan_, node, plan_.chunk->put_off[i].second);
      builder_.set_graph(0);
    });
  }
  for (ChunkState& chunk : current_->chunks) chunk.put_off.clear();
}

void StagePlanner::EndApart(const Action& action) {
  MakePutOff();
  gradients_.Finish(plan_.action);
  micro_batches_.erase(action.micro_batch);
}

// ---- nodes --------------------------------------------------------------------------------------

// The data are there before the step.
void StagePlanner::MakeInputs() {
  for (const uint32_t node : stage_.inputs) {
    const NetworkNode& shape = step_.network.nodes[node];
    plan_.State(node).value =
        builder_.MakeTensor(shape.name, shape.rows, shape.columns, step_.rests[node]);
  }
}

std::vector<StagePlanner::Visit> StagePlanner::VisitsOf(const Unit& unit) {
  std::vector<Visit> visits;
  for (uint32_t node = unit.begin; node < unit.end; ++node) visits.push_back({node, &unit});
  return visits;
}

std::vector<StagePlanner::Visit> StagePlanner::VisitsAgain(const Unit& unit) const {
  std::vector<Visit> visits = VisitsOf(unit);
  visits.resize(EndOfRecomputation(step_.network, step_.training, unit.begin, unit.end) -
                unit.begin);
  return visits;
}

std::vector<StagePlanner::Visit> StagePlanner::AllVisits() const {
  std::vector<Visit> visits;
  for (const Unit& unit : stage_.units) {
    for (const Visit& visit : VisitsOf(unit)) visits.push_back(visit);
  }
  return visits;
}

// Its ops are launched with those of the same graph.
void StagePlanner::EnterGraphOf(uint32_t node) {
  if (!graphs_.empty()) builder_.set_graph(graphs_[node]);
}

void StagePlanner::Forward(Phase phase, const std::vector<Visit>& visits) {
  TakeTurns(phase, visits, [&](const Visit& visit) {
    EnterGraphOf(visit.node);
    RuleOf(step_.network.nodes[visit.node].kind).forward(plan_, visit.node);
    const bool has_taken = phase == Phase::kForward && visit.node > visit.unit->begin;
    if (has_taken && IsKeptNarrow(step_.network, visit.node - 1, step_.training))
      KeepNarrow(plan_, visit.node - 1);
    builder_.set_graph(0);
    if (phase == Phase::kForward && visit.node + 1 == visit.unit->end) {
      gathering_.ReleaseAfterForward(visit.unit->first_matrix, visit.unit->matrix_end,
                                     plan_.action);
      OffloadAfter(*visit.unit);
    }
  });
}

void StagePlanner::Backward(const std::vector<Visit>& visits) {
  TakeTurns(Phase::kBackward, visits, [&](const Visit& visit) {
    ReturnBefore(*visit.unit);
    EnterGraphOf(visit.node);
    std::optional<Tensor>& gradient = plan_.Gradient(visit.node);
    RuleOf(step_.network.nodes[visit.node].kind)
        .input_gradient(plan_, visit.node, gradient.value_or(Tensor()));
    gradient.reset();
    builder_.set_graph(0);
  });
}

// Whether the node, whose ops begin at `first_op`, hands a product to a collective.
bool StagePlanner::EndsTurn(uint32_t node, size_t first_op) const {
  const NetworkNode& shape = step_.network.nodes[node];
  if (!shape.matrix && !shape.joins) return false;
  const std::vector<Op>& ops = builder_.role().ops;
  bool has_computed = false;
  for (size_t op = first_op; op < ops.size(); ++op) {
    const bool computes = std::holds_alternative<Compute>(ops[op].work);
    if (has_computed && !computes) return true;
    has_computed = has_computed || computes;
  }
  return false;
}

// ---- offload ------------------------------------------------------------------------------------

std::vector<std::pair<StateSlot, BufferId>> StagePlanner::NotedSlots(uint32_t micro_batch) {
  ChunkState& chunk = micro_batches_.at(micro_batch).chunks.front();
  std::vector<std::pair<StateSlot, BufferId>> noted;
  for (const StateSlot& slot : SlotsOf(nodes_->All(), &chunk))
    noted.emplace_back(slot, *BufferAt(slot, &chunk));
  return noted;
}

uint32_t StagePlanner::OffloadedLayers() const {
  return step_.offloaded.empty() ? 0 : step_.training.offloaded_layers;
}

// The unit's last forward op has just been planned: copies whose window ends here go to the host.
void StagePlanner::OffloadAfter(const Unit& unit) {
  const std::optional<uint32_t> layer = LayerOfStage(unit);
  const uint32_t offloaded = OffloadedLayers();
  if (!layer || offloaded == 0) return;
  ActivationsOnHost& on_host = plan_.chunk->on_host;
  const auto next = static_cast<uint32_t>(on_host.arrays.size());
  if (*layer == 0) on_host.may_begin = builder_.LastCompute();
  if (next == offloaded || EndOfWindow(layers_, offloaded, next) != *layer) return;
  const auto is_next = [&](const Unit& other) { return LayerOfStage(other) == next; };
  const auto own = std::find_if(stage_.units.begin(), stage_.units.end(), is_next);
  auto& arrays = on_host.arrays.emplace_back();
  std::vector<BufferId> device;
  const auto kept = step_.offloaded.find(own->layer);
  if (kept != step_.offloaded.end()) {
    for (const KeptArray& array : kept->second) {
      const auto names_one = [&](const StateSlot& slot) {
        const BufferId* const named = BufferAt(slot, plan_.chunk);
        return named != nullptr && named->IsSet();
      };
      // Not there if only a neighbour on the same rank names it.
      const auto slot = std::find_if(array.begin(), array.end(), names_one);
      if (slot == array.end()) continue;
      const BufferId named = *BufferAt(*slot, plan_.chunk);
      const std::optional<View>& view = builder_.BufferOf(named).view;
      device.push_back(view ? view->of : named);
    }
  }
  if (!device.empty()) {
    const Tag tag = builder_.tag();
    SetPhase(Phase::kForward, own->layer);
    const std::vector<BufferId> host = builder_.CopyToHost("offload", device, on_host.may_begin);
    builder_.set_tag(tag);
    builder_.Await(builder_.LastOp());
    for (size_t i = 0; i < host.size(); ++i) arrays.emplace_back(device[i], host[i]);
  }
  on_host.may_begin = builder_.LastCompute();
}

void StagePlanner::ReturnOfAllChunks(const Unit& unit) {
  if (OffloadedLayers() == 0 || unit.layer < 0) return;
  SetPhase(Phase::kBackward, unit.layer);
  ForEachChunk([&] { ReturnBefore(unit); });
}

// The way back through the unit comes next: copies whose window begins here return.
void StagePlanner::ReturnBefore(const Unit& unit) {
  const std::optional<uint32_t> layer = LayerOfStage(unit);
  const uint32_t offloaded = OffloadedLayers();
  if (!layer || offloaded == 0) return;
  ActivationsOnHost& on_host = plan_.chunk->on_host;
  if (on_host.next <= *layer) return;  // it has been here
  on_host.next = *layer;
  CHECK_EQ(on_host.arrays.size(), offloaded);
  const uint32_t away = offloaded - on_host.returned;
  const bool begins = away > 0 && EndOfWindow(layers_, offloaded, away - 1) == *layer;
  if (on_host.returning.IsSet() && (begins || *layer == 0)) {
    builder_.Await(on_host.returning);
    on_host.returning = OpId();
  }
  if (!begins) return;
  ++on_host.returned;
  const auto& arrays = on_host.arrays[away - 1];
  if (arrays.empty()) return;
  std::vector<BufferId> host;
  std::map<uint32_t, BufferId> back;  // by where they lay
  for (const auto& [device, on_host_copy] : arrays) host.push_back(on_host_copy);
  const std::vector<BufferId> device =
      builder_.CopyFromHost("return", host, builder_.LastCompute());
  on_host.returning = builder_.LastOp();
  for (size_t i = 0; i < device.size(); ++i) back.emplace(arrays[i].first.index(), device[i]);
  const auto is_own = [&](const Unit& other) { return LayerOfStage(other) == away - 1; };
  const auto own = std::find_if(stage_.units.begin(), stage_.units.end(), is_own);
  std::map<uint32_t, BufferId> views;  // by the old one
  for (const KeptArray& array : step_.offloaded.at(own->layer)) {
    for (const StateSlot& slot : array) {
      BufferId* const named = BufferAt(slot, plan_.chunk);
      if (named == nullptr || !named->IsSet()) continue;
      Buffer old = builder_.BufferOf(*named);
      const auto found = back.find(old.view ? old.view->of.index() : named->index());
      if (found == back.end()) continue;
      if (!old.view) {
        *named = found->second;
        continue;
      }
      BufferId& view = views[named->index()];
      if (!view.IsSet()) {
        old.view->of = found->second;
        view = builder_.AddBuffer(std::move(old));
      }
      *named = view;
    }
  }
}

// ---- messages that are kept ---------------------------------------------------------------------

// The values that the stage is there for: what it sends, at the end what the loss takes.
std::vector<uint32_t> StagePlanner::Results() const {
  if (!stage_.leaves.empty()) return stage_.leaves;
  std::vector<uint32_t> results;
  for (uint32_t node = stage_.node_begin(); node < stage_.node_end(); ++node) {
    const NetworkNode& shape = step_.network.nodes[node];
    if (shape.kind == NodeKind::kCrossEntropy) results.push_back(shape.inputs.front());
  }
  return results;
}

std::vector<Tensor> StagePlanner::KeptMessages() const {
  std::vector<Tensor> kept;
  const auto keep = [&](const char* what, uint32_t node, const Layout& layout) {
    const NetworkNode& shape = step_.network.nodes[node];
    kept.push_back(builder_.MakeTensor(fmt::format("{} {}", what, shape.name),
                                       shape.rows * step_.network.micro_batches, shape.columns,
                                       layout, builder_.precision(), SizeOf(builder_.precision()),
                                       BufferKind::kBuffer));
  };
  if (before_ == nullptr)
    for (const uint32_t node : stage_.arrives) keep("received", node, step_.crossings[node]);
  if (behind_ == nullptr)
    for (const uint32_t node : stage_.leaves) keep("received d", node, step_.crossings[node]);
  for (const uint32_t node : Results()) keep("kept", node, step_.rests[node]);
  return kept;
}

// ---- micro-batches ------------------------------------------------------------------------------

void StagePlanner::Choose(uint32_t micro_batch, Phase phase) {
  current_ = &micro_batches_.at(micro_batch);
  const uint32_t first_chunk = micro_batch * step_.strategy.chunks;
  builder_.set_tag({phase, -1, static_cast<int32_t>(first_chunk)});
}

void StagePlanner::SetPhase(Phase phase, int32_t layer) {
  builder_.set_tag({phase, layer, builder_.tag().micro_batch});
}

template <typename Work>
void StagePlanner::ForEachChunk(const Work& work) {
  Tag tag = builder_.tag();
  const int32_t first = tag.micro_batch;
  const auto chunks = static_cast<int32_t>(current_->chunks.size());
  for (int32_t index = 0; index < chunks; ++index) {
    tag.micro_batch = first + index;
    builder_.set_tag(tag);
    plan_.action.is_last_chunk = index + 1 == chunks;
    plan_.chunk = &current_->chunks[static_cast<size_t>(index)];
    work();
  }
  tag.micro_batch = first;
  builder_.set_tag(tag);
}

// The first chunk finds out where each turn ends.
template <typename Work>
void StagePlanner::TakeTurns(Phase phase, const std::vector<Visit>& visits, const Work& work) {
  for (size_t begin = 0, end = 0; begin < visits.size(); begin = end) {
    end = 0;
    ForEachChunk([&] {
      const bool finds_end = end == 0;
      if (finds_end) end = visits.size();
      for (size_t i = begin; i < end; ++i) {
        const size_t first_op = builder_.role().ops.size();
        SetPhase(phase, visits[i].unit->layer);
        work(visits[i]);
        if (finds_end && EndsTurn(visits[i].node, first_op)) end = i + 1;
      }
    });
  }
}

// ---- messages -----------------------------------------------------------------------------------

template <typename Work>
void StagePlanner::ForEachCrossing(const std::vector<uint32_t>& nodes, Phase phase,
                                   const Work& work) {
  for (const uint32_t node : nodes) {
    SetPhase(phase, step_.network.nodes[node].layer);
    ForEachChunk([&] { work(node); });
  }
}

StagePlanner::MicroBatch& StagePlanner::Begin(uint32_t micro_batch) {
  MicroBatch& begun = micro_batches_[micro_batch];
  if (begun.chunks.empty()) {
    begun.chunks.assign(step_.strategy.chunks, ChunkState(*nodes_));
  }
  return begun;
}

void StagePlanner::Await(const Action& action) {
  const uint32_t index = action.micro_batch;
  if (action.kind == ActionKind::kForward) {
    if (micro_batches_.count(index) > 0) return;
    Begin(index);
    if (before_ != nullptr) return;
    Choose(index, Phase::kForward);
    ForEachCrossing(stage_.arrives, Phase::kForward, [&](uint32_t node) {
      const NetworkNode& shape = step_.network.nodes[node];
      const Tensor value =
          builder_.MakeTensor(shape.name, shape.rows, shape.columns, step_.crossings[node]);
      builder_.AddReceive(value, builder_.communicators().OfValues(), stage_.rank_before,
                          streams_.Of(MessageStreams::kReceiveValues, stage_.rank_before));
      if (step_.keeps_messages) builder_.Borrow(value.buffer);
      plan_.State(node).value = value;
    });
  }
  if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kInputGradient) {
    if (behind_ != nullptr) return;
    MicroBatch& micro_batch = micro_batches_.at(index);
    if (!micro_batch.ran_forward || micro_batch.awaits_gradients) return;
    micro_batch.awaits_gradients = true;
    Choose(index, Phase::kBackward);
    ForEachCrossing(stage_.leaves, Phase::kBackward, [&](uint32_t node) {
      const Tensor gradient = plan_.MakeGradient(node, step_.crossings[node]);
      builder_.AddReceive(gradient, builder_.communicators().OfGradients(), stage_.rank_behind,
                          streams_.Of(MessageStreams::kReceiveGradients, stage_.rank_behind));
      if (step_.keeps_messages) builder_.Borrow(gradient.buffer);
      plan_.Gradient(node) = gradient;
    });
  }
}

}  // namespace rehearse
