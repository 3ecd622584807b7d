#include "workloads/planner/stage_planner.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

std::string RoleName(const Stage& stage) {
  return stage.count == 1 ? "rank" : fmt::format("stage {}", stage.index);
}

bool MakesWeightGradients(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient;
}

}  // namespace

StagePlanner::StagePlanner(const StepSetup& step, const Stage& stage,
                           StepCommunicators* communicators, const Place& place)
    : step_(step),
      stage_(stage),
      builder_(RoleName(stage), communicators, step.training.precision, step.strategy.costs, place),
      parameters_(step.network, step.strategy, step.training, step.rests, stage, &builder_),
      plan_{step.network, step.strategy, step.training, builder_, parameters_} {
  builder_.set_runs_chunks(step.strategy.chunks > 1);
  builder_.set_host_launch(step.training.host_launch);
}

std::optional<Role> StagePlanner::Run(const std::vector<Action>& actions,
                                      const std::optional<PeriodicActions>& period) {
  size_t last_gradients = actions.size();
  while (last_gradients > 0 && !MakesWeightGradients(actions[last_gradients - 1])) --last_gradients;
  std::vector<Mark> marks;  // where the last three blocks begin
  std::optional<Repeat> repeat;
  for (uint32_t i = 0; i < actions.size(); ++i) {
    if (period && !repeat && i >= period->begin && (i - period->begin) % period->length == 0) {
      // The last block is planned, as it may differ: in what it awaits for the next action, and in
      // what is done beside the last gradients.
      const uint32_t left = (std::max(period->end, i) - i) / period->length;
      marks.push_back(MarkHere());
      if (left >= 2) repeat = BodyBetween(marks, period->micro_batches);
      if (repeat) {
        repeat->times = left - 1;
        builder_.AddRepeat(*repeat);
        SkipMicroBatches(repeat->times * period->micro_batches);
        i += repeat->times * period->length;
      }
    }
    Await(actions[i]);
    if (i + 1 < actions.size()) Await(actions[i + 1]);
    parameters_.BeginAction(actions[i].micro_batch, i + 1 == last_gradients);
    Do(actions[i]);
  }
  CHECK(micro_batches_.empty());
  if (repeat && !CanBeSaid(builder_.role(), *repeat)) return std::nullopt;
  return builder_.Build();
}

// ---- blocks that repeat -------------------------------------------------------------------------

StagePlanner::Mark StagePlanner::MarkHere() const {
  Mark mark;
  mark.op = static_cast<uint32_t>(builder_.role().ops.size());
  mark.buffer = static_cast<uint32_t>(builder_.role().buffers.size());
  for (const auto& [index, micro_batch] : micro_batches_) mark.micro_batches.push_back(index);
  return mark;
}

// The last block, if the one before it is the same and those to come will be.
std::optional<Repeat> StagePlanner::BodyBetween(const std::vector<Mark>& marks,
                                                uint32_t micro_batches) const {
  if (marks.size() < 3) return std::nullopt;
  const Mark& begin = marks[marks.size() - 2];
  const Mark& end = marks.back();
  Repeat body;
  body.begin = begin.op;
  body.end = end.op;
  body.first_buffer = begin.buffer;
  body.end_buffer = end.buffer;
  body.micro_batches = static_cast<int32_t>(micro_batches * step_.strategy.chunks);
  const bool are_as_many =
      body.begin - marks[marks.size() - 3].op == body.size() &&
      body.first_buffer - marks[marks.size() - 3].buffer == body.end_buffer - body.first_buffer;
  std::vector<uint32_t> later = begin.micro_batches;
  for (uint32_t& index : later) index += micro_batches;
  const uint32_t before = 2 * body.first_buffer - std::min(body.end_buffer, 2 * body.first_buffer);
  if (!are_as_many || later != end.micro_batches || !HoldsOnlyFrom(body.first_buffer) ||
      !parameters_.HoldsNothingOf(before, body.first_buffer) ||
      !IsLikePieceBefore(builder_.role(), body)) {
    return std::nullopt;
  }
  return body;
}

// Whether all that micro-batches under way keep are buffers from this one on.
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
  parameters_.SkipMicroBatches(count);
}

// ---- what the actions do ------------------------------------------------------------------------

void StagePlanner::Do(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
      Choose(action.micro_batch, Phase::kForward);
      RunForward();
      return;
    case ActionKind::kRecompute:
      Choose(action.micro_batch, Phase::kRecompute);
      RecomputeAll();
      return;
    case ActionKind::kBackward:
      Choose(action.micro_batch, Phase::kBackward);
      RunBackward(/*puts_off_weights=*/false);
      micro_batches_.erase(action.micro_batch);
      return;
    case ActionKind::kInputGradient:
      Choose(action.micro_batch, Phase::kBackward);
      RunBackward(/*puts_off_weights=*/true);
      return;
    case ActionKind::kWeightGradient:
      Choose(action.micro_batch, Phase::kBackward);
      RunWeights();
      micro_batches_.erase(action.micro_batch);
      return;
    case ActionKind::kSynchronize:
      parameters_.Synchronize();
      return;
    case ActionKind::kUpdate:
      parameters_.Update();
      return;
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown kind of action");
}

void StagePlanner::RunForward() {
  plan_.prefetch_end = stage_.matrix_end();
  ForEachChunk([&] { MakeInputs(); });
  Forward(Phase::kForward, AllVisits());
  ForEachCrossing(stage_.leaves, Phase::kForward, [&](uint32_t node) {
    const Tensor& value = plan_.State(node).value;
    CHECK(value.layout == step_.rests[node]);
    builder_.AddSend(value, stage_.index + 1, StreamOf(kSendValues));
  });
  current_->ran_forward = true;
}

void StagePlanner::RecomputeAll() {
  CHECK(Recomputes());
  plan_.prefetch_end = stage_.matrix_end();
  for (const Unit& unit : stage_.units) {
    if (unit.layer >= 0) Forward(Phase::kRecompute, VisitsOf(unit));
  }
  current_->is_recomputed = true;
}

void StagePlanner::RunBackward(bool puts_off_weights) {
  plan_.puts_off_weights = puts_off_weights;
  parameters_.set_goes_backward(true);
  if (Recomputes() && !current_->is_recomputed) {
    for (size_t i = stage_.units.size(); i-- > 0;) {
      const Unit& unit = stage_.units[i];
      plan_.prefetch_end = unit.matrix_end;
      if (unit.layer >= 0) Forward(Phase::kRecompute, VisitsOf(unit));
      Backward(VisitsOf(unit));
    }
  } else {
    Backward(AllVisits());
  }
  parameters_.set_goes_backward(false);
  if (!puts_off_weights) parameters_.FinishGradients();
  ForEachCrossing(stage_.arrives, Phase::kBackward, [&](uint32_t node) {
    CHECK(plan_.Gradient(node).has_value());
    builder_.AddSend(*plan_.Gradient(node), stage_.index - 1, StreamOf(kSendGradients));
  });
  // What the weight gradients need has been put off with them.
  for (ChunkState& chunk : current_->chunks) {
    chunk.nodes.clear();
    chunk.gradients.clear();
  }
}

void StagePlanner::RunWeights() {
  plan_.puts_off_weights = false;
  for (size_t i = 0; i < current_->chunks.front().put_off.size(); ++i) {
    const uint32_t node = current_->chunks.front().put_off[i].first;
    SetPhase(Phase::kBackward, step_.network.nodes[node].layer);
    ForEachChunk([&] {
      CHECK_EQ(plan_.chunk->put_off[i].first, node);
      RuleOf(step_.network.nodes[node].kind)
          .weight_gradient(plan_, node, plan_.chunk->put_off[i].second);
    });
  }
  parameters_.FinishGradients();
}

// The data are there before the step.
void StagePlanner::MakeInputs() {
  for (const uint32_t node : stage_.inputs) {
    const NetworkNode& shape = step_.network.nodes[node];
    plan_.State(node).value =
        builder_.MakeTensor(shape.name, shape.rows, shape.columns, step_.rests[node]);
  }
}

std::vector<StagePlanner::Visit> StagePlanner::VisitsOf(const Unit& unit) const {
  std::vector<Visit> visits;
  for (uint32_t node = unit.begin; node < unit.end; ++node) visits.push_back({node, &unit});
  return visits;
}

std::vector<StagePlanner::Visit> StagePlanner::AllVisits() const {
  std::vector<Visit> visits;
  for (const Unit& unit : stage_.units) {
    for (const Visit& visit : VisitsOf(unit)) visits.push_back(visit);
  }
  return visits;
}

void StagePlanner::Forward(Phase phase, const std::vector<Visit>& visits) {
  TakeTurns(phase, visits, [&](const Visit& visit) {
    RuleOf(step_.network.nodes[visit.node].kind).forward(plan_, visit.node);
    if (phase == Phase::kForward && visit.node + 1 == visit.unit->end) {
      parameters_.ReleaseAfterForward(visit.unit->first_matrix, visit.unit->matrix_end);
    }
  });
}

// The visits are those of the way there, of which the last comes first.
void StagePlanner::Backward(const std::vector<Visit>& visits) {
  TakeTurns(Phase::kBackward, {visits.rbegin(), visits.rend()}, [&](const Visit& visit) {
    std::optional<Tensor>& gradient = plan_.Gradient(visit.node);
    RuleOf(step_.network.nodes[visit.node].kind)
        .input_gradient(plan_, visit.node, gradient.value_or(Tensor()));
    gradient.reset();
  });
}

// Whether the node, whose ops begin at `first_op`, hands a product to a collective.
bool StagePlanner::EndsTurn(uint32_t node, size_t first_op) const {
  if (!step_.network.nodes[node].matrix) return false;
  const std::vector<Op>& ops = builder_.role().ops;
  bool has_computed = false;
  for (size_t op = first_op; op < ops.size(); ++op) {
    const bool computes = std::holds_alternative<Compute>(ops[op].work);
    if (has_computed && !computes) return true;
    has_computed = has_computed || computes;
  }
  return false;
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
    parameters_.set_is_last_chunk(index + 1 == chunks);
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

StreamId StagePlanner::StreamOf(MessageKind kind) {
  constexpr std::array<const char*, kMessageKinds> kNames = {"receive values", "send values",
                                                             "receive gradients", "send gradients"};
  StreamId& stream = message_streams_[kind];
  if (!stream.IsSet()) stream = builder_.AddStream(kNames[kind]);
  return stream;
}

// What the action needs of the neighbouring stages, unless it is awaited already.
void StagePlanner::Await(const Action& action) {
  const uint32_t index = action.micro_batch;
  if (action.kind == ActionKind::kForward) {
    const auto [it, is_new] = micro_batches_.try_emplace(index);
    if (!is_new) return;
    it->second.chunks.assign(step_.strategy.chunks, ChunkState(step_.network.nodes.size()));
    Choose(index, Phase::kForward);
    ForEachCrossing(stage_.arrives, Phase::kForward, [&](uint32_t node) {
      const NetworkNode& shape = step_.network.nodes[node];
      const Tensor value =
          builder_.MakeTensor(shape.name, shape.rows, shape.columns, step_.rests[node]);
      builder_.AddReceive(value, stage_.index - 1, StreamOf(kReceiveValues));
      plan_.State(node).value = value;
    });
  }
  if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kInputGradient) {
    MicroBatch& micro_batch = micro_batches_.at(index);
    if (!micro_batch.ran_forward || micro_batch.awaits_gradients) return;
    micro_batch.awaits_gradients = true;
    Choose(index, Phase::kBackward);
    ForEachCrossing(stage_.leaves, Phase::kBackward, [&](uint32_t node) {
      const Tensor gradient = plan_.MakeGradient(node, step_.rests[node]);
      builder_.AddReceive(gradient, stage_.index + 1, StreamOf(kReceiveGradients));
      plan_.Gradient(node) = gradient;
    });
  }
}

}  // namespace rehearse
