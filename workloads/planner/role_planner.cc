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
      parameters_(step.network, step.strategy, step.training, step.rests, stages, &builder_),
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
  std::vector<Mark> marks;  // where the last three blocks begin
  std::optional<Repeat> repeat;
  for (uint32_t i = 0; i < actions.size(); ++i) {
    if (period && !repeat && i >= period->begin && (i - period->begin) % period->length == 0) {
      // The last block is planned, as it may differ in what it awaits for the next action and in
      // what is done beside the last gradients.
      const uint32_t left = (std::max(period->end, i) - i) / period->length;
      marks.push_back(MarkHere());
      if (left >= 2) repeat = BodyBetween(marks, period->micro_batches);
      if (repeat) {
        repeat->times = left - 1;
        builder_.AddRepeat(*repeat);
        const uint32_t skipped = repeat->times * period->micro_batches;
        for (StagePlanner& stage : stages_) stage.SkipMicroBatches(skipped);
        parameters_.SkipMicroBatches(skipped);
        i += repeat->times * period->length;
      }
    }
    PlannerOf(actions[i]).Await(actions[i]);
    if (step_.overlaps_messages && i + 1 < actions.size()) {
      PlannerOf(actions[i + 1]).Await(actions[i + 1]);
    }
    Do(actions[i], last_gradients[actions[i].stage] == i);
  }
  for (const StagePlanner& stage : stages_) CHECK(stage.HasNone());
  if (repeat && !CanBeSaid(builder_.role(), *repeat)) return std::nullopt;
  return builder_.Build();
}

StagePlanner& RolePlanner::PlannerOf(const Action& action) {
  return *std::find_if(stages_.begin(), stages_.end(), [&](const StagePlanner& planner) {
    return planner.stage().index == action.stage;
  });
}

void RolePlanner::Do(const Action& action, bool makes_last_gradients) {
  StagePlanner& planner = PlannerOf(action);
  parameters_.BeginAction(planner.stage(), action.micro_batch, makes_last_gradients);
  if (action.kind == ActionKind::kSynchronize) {
    parameters_.Synchronize();
  } else if (action.kind == ActionKind::kUpdate) {
    parameters_.Update();
  } else {
    planner.Do(action);
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

// The last block, if the one before it is the same and the following ones will be.
std::optional<Repeat> RolePlanner::BodyBetween(const std::vector<Mark>& marks,
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
  std::vector<std::vector<uint32_t>> later = begin.micro_batches;
  for (std::vector<uint32_t>& of_stage : later) {
    for (uint32_t& index : of_stage) index += micro_batches;
  }
  const uint32_t before = 2 * body.first_buffer - std::min(body.end_buffer, 2 * body.first_buffer);
  const bool holds_only_new = std::all_of(
      stages_.begin(), stages_.end(),
      [&](const StagePlanner& stage) { return stage.HoldsOnlyFrom(body.first_buffer); });
  if (!are_as_many || later != end.micro_batches || !holds_only_new ||
      !parameters_.HoldsNothingOf(before, body.first_buffer) ||
      !IsLikePieceBefore(builder_.role(), body)) {
    return std::nullopt;
  }
  return body;
}

}  // namespace rehearse
