#include "workloads/planner/role_planner.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace rehearse {
namespace {

std::string RoleName(const Stage& stage, const StepCommunicators& communicators) {
  return communicators.pipeline_ranks() == 1 ? "rank" : fmt::format("stage {}", stage.rank);
}

bool MakesWeightGradients(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient;
}

}  // namespace

RolePlanner::RolePlanner(const StepSetup& step, const std::vector<const Stage*>& stages,
                         StepCommunicators* communicators, const Place& place)
    : step_(step),
      builder_(RoleName(*stages.front(), *communicators), communicators, step.training.precision,
               step.strategy.costs, place),
      parameters_(step.network, step.strategy, step.training, step.rests, stages,
                  {communicators->pipeline_ranks() > 1 ? step.validation : kAdamOnce,
                   step.aligns_data_traffic},
                  &builder_),
      plan_{step.network, step.strategy, step.training, builder_, parameters_},
      streams_(&builder_) {
  plan_.expert_rank = step.expert_rank;
  builder_.set_runs_chunks(step.strategy.chunks > 1, !step.strategy.chunks_overlap_backward);
  builder_.set_host_launch(step.training.host_launch);
  if (const auto& context = step.strategy.context)
    builder_.set_sequences(context->axis, step.network.sequence, context->balanced);
  stages_.reserve(stages.size());
  for (const Stage* stage : stages) stages_.emplace_back(step, *stage, &plan_, &streams_);
  // Neighbours on one rank: at the turn of a V, or all of a pipeline of one rank. The last stage of
  // one copy of the model passes nothing to the first of the other.
  for (size_t i = 0; i + 1 < stages_.size(); ++i) {
    const bool are_neighbours = stages[i]->index + 1 == stages[i + 1]->index;
    if (!are_neighbours || stages[i]->leaves.empty()) continue;
    stages_[i].set_behind(&stages_[i + 1]);
    stages_[i + 1].set_before(&stages_[i]);
  }
}

std::optional<Role> RolePlanner::Run(const std::vector<Action>& actions,
                                     const std::optional<PeriodicActions>& period) {
  std::map<uint32_t, size_t> last_gradients;  // by stage
  for (size_t i = 0; i < actions.size(); ++i) {
    if (MakesWeightGradients(actions[i])) last_gradients[actions[i].stage] = i;
  }
  DataTraffic traffic = DataTrafficOf(actions);
  parameters_.update.SendState();
  std::vector<BufferId> kept_messages;
  TouchMessages("keep", &kept_messages);
  std::vector<Mark> marks;  // where blocks begin
  std::optional<Repeat> repeat;
  for (uint32_t i = 0; i < actions.size(); ++i) {
    if (period && !repeat && i >= period->begin && (i - period->begin) % period->length == 0) {
      // The last block is planned, as it may differ in what it awaits for the next action and in
      // what is done beside the last gradients.
      const uint32_t left = (std::max(period->end, i) - i) / period->length;
      marks.push_back(MarkHere());
      if (left >= 2) repeat = BodyBetween(marks, *period);
      if (repeat) {
        repeat->times = left - 1;
        builder_.AddRepeat(*repeat);
        const uint32_t skipped = repeat->times * period->micro_batches;
        for (StagePlanner& stage : stages_) stage.SkipMicroBatches(skipped);
        parameters_.gathering.SkipMicroBatches(skipped);
        i += repeat->times * period->length;
      }
    }
    BeginGathers(actions[i], i, &traffic);
    PlannerOf(actions[i]).Await(actions[i]);
    const bool begins_block = period && !repeat && i + 1 >= period->begin &&
                              (i + 1 - period->begin) % period->length == 0;
    if (i + 1 < actions.size() && !begins_block && ArePaired(actions[i], actions[i + 1])) {
      const Action& backward = actions[i + 1];
      PlannerOf(backward).Await(backward);
      if (step_.overlaps_messages) AwaitFrom(actions, i + 2);
      DoTogether(actions[i], backward, last_gradients[backward.stage] == i + 1);
      BeginSums(++i, &traffic);
      continue;
    }
    if (step_.overlaps_messages) AwaitFrom(actions, i + 1);
    Do(actions[i], last_gradients[actions[i].stage] == i);
    BeginSums(i, &traffic);
  }
  TouchMessages("kept", &kept_messages);
  for (const StagePlanner& stage : stages_) CHECK(stage.HasNone());
  if (repeat && !CanBeSaid(builder_.role(), *repeat)) return std::nullopt;
  return builder_.Build();
}

void RolePlanner::TouchMessages(const char* what, std::vector<BufferId>* kept) {
  if (!step_.keeps_messages) return;
  const Tag tag = builder_.tag();
  builder_.set_tag({kept->empty() ? Phase::kForward : Phase::kUpdate, -1, 0});
  if (kept->empty()) {
    for (const StagePlanner& stage : stages_)
      for (const Tensor& tensor : stage.KeptMessages()) kept->push_back(tensor.buffer);
  }
  for (const BufferId buffer : *kept)
    builder_.AddMemoryOp(what, Kernel::kCopy, KernelCost{0, 0}, {buffer}, {buffer});
  builder_.set_tag(tag);
}

// Gathers and sums of whole stages, as Megatron-LM's interleaved schedule begins them
// (param_sync_func and grad_sync_func in NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/
// schedules.py). A rank gathers its first two stages when it begins, and each of the others when it
// begins the one before it; it sums a stage when its gradients are complete. The r-th rank gathers
// r micro-batches earlier and sums r later, so that all ranks are slowed down at the same time.
RolePlanner::DataTraffic RolePlanner::DataTrafficOf(const std::vector<Action>& actions) const {
  DataTraffic traffic;
  if (!step_.aligns_data_traffic) return traffic;
  std::vector<size_t> forwards;
  std::vector<size_t> gradients;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].kind == ActionKind::kForward) forwards.push_back(i);
    if (MakesWeightGradients(actions[i])) gradients.push_back(i);
  }
  if (forwards.empty() || gradients.empty()) return traffic;
  const size_t rank = stages_.front().stage().index;
  traffic.gathers = {{forwards.front(), 0}, {forwards.front(), 1}};
  for (uint32_t local = 0; local < stages_.size(); ++local) {
    const auto is_of_stage = [&](size_t i) {
      return actions[i].stage == stages_[local].stage().index;
    };
    const auto first = std::find_if(forwards.begin(), forwards.end(), is_of_stage);
    if (local > 0 && local + 1 < stages_.size() && first != forwards.end()) {
      const auto position = static_cast<size_t>(first - forwards.begin());
      traffic.gathers.emplace(forwards[position - std::min(position, rank)], local + 1);
    }
    const auto last = std::find_if(gradients.rbegin(), gradients.rend(), is_of_stage);
    if (last == gradients.rend()) continue;
    const auto position = static_cast<size_t>(gradients.rend() - last) - 1;
    traffic.sums.emplace(gradients[std::min(position + rank, gradients.size() - 1)], local);
  }
  return traffic;
}

void RolePlanner::BeginGathers(const Action& action, size_t position, DataTraffic* traffic) {
  const Tag tag = builder_.tag();
  builder_.set_tag({Phase::kForward, -1, static_cast<int32_t>(action.micro_batch)});
  auto& gathers = traffic->gathers;
  for (; !gathers.empty() && gathers.begin()->first <= position; gathers.erase(gathers.begin()))
    parameters_.gathering.GatherStage(gathers.begin()->second);
  builder_.set_tag(tag);
}

void RolePlanner::BeginSums(size_t position, DataTraffic* traffic) {
  auto& sums = traffic->sums;
  for (; !sums.empty() && sums.begin()->first <= position; sums.erase(sums.begin()))
    parameters_.gradients.SumStage(sums.begin()->second);
}

StagePlanner& RolePlanner::PlannerOf(const Action& action) {
  return *std::find_if(stages_.begin(), stages_.end(), [&](const StagePlanner& planner) {
    return planner.stage().index == action.stage;
  });
}

void RolePlanner::Do(const Action& action, bool makes_last_gradients) {
  StagePlanner& planner = PlannerOf(action);
  if (action.kind == ActionKind::kSynchronize) {
    builder_.set_tag({Phase::kSynchronize, -1, 0});
    parameters_.update.ReturnState();
    parameters_.gradients.Synchronize();
  } else if (action.kind == ActionKind::kUpdate) {
    builder_.set_tag({Phase::kUpdate, -1, 0});
    parameters_.update.Update();
    parameters_.gathering.GatherUpdated();
  } else {
    planner.Do(action, makes_last_gradients);
    if (!notes_slots_ || action.kind != ActionKind::kForward) return;
    const auto noted = planner.NotedSlots(action.micro_batch);
    noted_.insert(noted_.end(), noted.begin(), noted.end());
  }
}

bool RolePlanner::ArePaired(const Action& forward, const Action& backward) const {
  return step_.pairs_passes && forward.kind == ActionKind::kForward && !forward.is_alone &&
         GoesBack(backward.kind) && forward.micro_batch != backward.micro_batch;
}

namespace {

bool SendsTokens(const Op& op) {
  const auto* collective = std::get_if<Collective>(&op.work);
  return collective != nullptr && collective->kind == CollectiveKind::kAllToAll;
}

}  // namespace

// Awaits what comes next: an action, or both of a pair.
void RolePlanner::AwaitFrom(const std::vector<Action>& actions, size_t next) {
  if (next >= actions.size()) return;
  PlannerOf(actions[next]).Await(actions[next]);
  if (next + 1 < actions.size() && ArePaired(actions[next], actions[next + 1]))
    PlannerOf(actions[next + 1]).Await(actions[next + 1]);
}

struct RolePlanner::Side {
  Action action;
  bool makes_last_gradients = false;
  bool puts_off_weights = false;
  std::vector<StagePlanner::Part> parts;
  size_t next = 0;

  bool IsDone() const { return next == parts.size(); }
};

void RolePlanner::DoNext(Side* side) {
  PlannerOf(side->action).Enter(side->action, side->makes_last_gradients, side->puts_off_weights);
  side->parts[side->next++].work();
}

void RolePlanner::DoTogether(const Action& forward, const Action& backward,
                             bool makes_last_gradients) {
  const bool is_apart =
      backward.kind == ActionKind::kBackward && PutsWeightsApart(step_.pair_order);
  Side sides[] = {
      {forward, false, false, PlannerOf(forward).PartsOf(forward, true)},
      {backward, makes_last_gradients, is_apart, PlannerOf(backward).PartsOf(backward, true)}};
  // Kernels behind what is sent would wait until a neighbour takes it, and that may be in a pair,
  // too: then both are sent once everything is computed, as Megatron-LM's combined 1F1B does.
  const bool sends_at_end = !step_.overlaps_messages || step_.batches_messages;
  std::vector<StagePlanner::Part> ends;
  for (Side& side : sides) {
    if (!sends_at_end) break;
    ends.push_back(std::move(side.parts.back()));
    side.parts.pop_back();
  }
  builder_.set_runs_chunks(true, false);
  if (step_.pair_order.empty()) {
    TakeTurns(sides);
  } else {
    FollowOrder(sides);
  }
  if (is_apart && sends_at_end) {
    PlannerOf(backward).Enter(backward, makes_last_gradients);
    PlannerOf(backward).MakePutOff();
  }
  for (size_t side = 0; side < ends.size(); ++side) {
    sides[side].parts.push_back(std::move(ends[side]));
    DoNext(&sides[side]);
  }
  if (is_apart) {
    PlannerOf(backward).Enter(backward, makes_last_gradients);
    PlannerOf(backward).EndApart(backward);
  }
  builder_.set_runs_chunks(false, false);
}

// Either goes on until it has sent tokens, and then it is the other's turn.
void RolePlanner::TakeTurns(Side* sides) {
  const std::vector<Op>& ops = builder_.role().ops;
  for (size_t turn = 0; !sides[0].IsDone() || !sides[1].IsDone(); turn = 1 - turn) {
    Side& side = sides[turn];
    for (bool has_sent = false; !has_sent && !side.IsDone();) {
      const auto first_op = static_cast<ptrdiff_t>(ops.size());
      DoNext(&side);
      has_sent = std::any_of(ops.begin() + first_op, ops.end(), SendsTokens);
    }
  }
}

void RolePlanner::FollowOrder(Side* sides) {
  while (!sides[0].IsDone() || !sides[1].IsDone()) {
    for (const PassPart part : step_.pair_order) {
      if (IsOfWeights(part)) {
        if (!sides[1].puts_off_weights) continue;
        PlannerOf(sides[1].action).Enter(sides[1].action, sides[1].makes_last_gradients);
        PlannerOf(sides[1].action).MakePutOff();
        continue;
      }
      Side& side = sides[IsForward(part) ? 0 : 1];
      while (!side.IsDone() && side.parts[side.next].kind == part) DoNext(&side);
    }
  }
}

// ---- blocks that repeat -------------------------------------------------------------------------

RolePlanner::Mark RolePlanner::MarkHere() const {
  Mark mark;
  mark.op = static_cast<uint32_t>(builder_.role().ops.size());
  mark.buffer = static_cast<uint32_t>(builder_.role().buffers.size());
  for (const StagePlanner& stage : stages_) mark.micro_batches.push_back(stage.UnderWay());
  return mark;
}

// The last block, if the ones before it are the same and the following ones will be.
std::optional<Repeat> RolePlanner::BodyBetween(const std::vector<Mark>& marks,
                                               const PeriodicActions& period) const {
  const uint32_t back = period.blocks_back;
  if (marks.size() < back + 2) return std::nullopt;
  const Mark& begin = marks[marks.size() - 2];
  const Mark& end = marks.back();
  Repeat body;
  body.begin = begin.op;
  body.end = end.op;
  body.first_buffer = begin.buffer;
  body.end_buffer = end.buffer;
  body.micro_batches = static_cast<int32_t>(period.micro_batches * step_.strategy.chunks);
  body.back = back;
  // All pieces that it refers to have as many ops and buffers.
  bool are_as_many = true;
  for (uint32_t piece = 1; piece <= back; ++piece) {
    const Mark& before = marks[marks.size() - 2 - piece];
    are_as_many = are_as_many && before.op + piece * body.size() == body.begin &&
                  before.buffer + piece * body.buffers() == body.first_buffer;
  }
  if (!are_as_many) return std::nullopt;
  std::vector<std::vector<uint32_t>> later = begin.micro_batches;
  for (std::vector<uint32_t>& of_stage : later) {
    for (uint32_t& index : of_stage) index += period.micro_batches;
  }
  const bool holds_only_new = std::all_of(
      stages_.begin(), stages_.end(),
      [&](const StagePlanner& stage) { return stage.HoldsOnlyFrom(body.FirstBuffer()); });
  if (later != end.micro_batches || !holds_only_new ||
      !parameters_.HoldsNothingOf(body.FirstBuffer() - body.buffers(), body.first_buffer) ||
      !IsLikePiecesBefore(builder_.role(), body)) {
    return std::nullopt;
  }
  return body;
}

}  // namespace rehearse
