#include "workloads/planner/actions.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

namespace rehearse {

const char* Name(ActionKind kind) {
  constexpr std::array<const char*, kActionKinds> kNames = {
      "forward",         "recomputation", "backward", "input gradient",
      "weight gradient", "synchronise",   "update"};
  return kNames[static_cast<size_t>(kind)];
}

std::string Describe(const Action& action) {
  if (action.kind == ActionKind::kSynchronize || action.kind == ActionKind::kUpdate) {
    return fmt::format("{} on stage {}", Name(action.kind), action.stage);
  }
  return fmt::format("{} of micro-batch {} on stage {}", Name(action.kind), action.micro_batch,
                     action.stage);
}

std::vector<Action> OfStage(const std::vector<Action>& actions, uint32_t stage) {
  std::vector<Action> own;
  for (const Action& action : actions) {
    if (action.stage == stage) own.push_back(action);
  }
  return own;
}

// ---- the check ----------------------------------------------------------------------------------

namespace {

using Kind = ActionKind;

bool EndsStep(Kind kind) { return kind == Kind::kSynchronize || kind == Kind::kUpdate; }

class ActionCheck {
 public:
  ActionCheck(const std::vector<Action>& actions, uint32_t stages, uint32_t micro_batches,
              const Place& place)
      : actions_(actions), stages_(stages), micro_batches_(micro_batches), place_(place) {
    for (auto& of_kind : places_) of_kind.resize(size_t{stages} * micro_batches);
  }

  void Run() {
    for (uint32_t i = 0; i < actions_.size(); ++i) Enter(i);
    for (uint32_t stage = 0; stage < stages_; ++stage) {
      for (uint32_t index = 0; index < micro_batches_; ++index) CheckMicroBatch(stage, index);
      CheckEnd(stage);
    }
    for (uint32_t stage = 0; stage + 1 < stages_; ++stage) {
      CheckThatOrdersAgree(stage, Orders(stage, true), stage + 1, Orders(stage + 1, true));
      CheckThatOrdersAgree(stage + 1, Orders(stage + 1, false), stage, Orders(stage, false));
    }
    CheckThatItFinishes();
  }

 private:
  using PlaceInList = std::optional<uint32_t>;

  PlaceInList& At(Kind kind, uint32_t stage, uint32_t micro_batch) {
    return places_[static_cast<size_t>(kind)][size_t{stage} * micro_batches_ + micro_batch];
  }
  // The gradient that the stage before waits for.
  PlaceInList BackAt(uint32_t stage, uint32_t micro_batch) {
    const PlaceInList& together = At(Kind::kBackward, stage, micro_batch);
    return together ? together : At(Kind::kInputGradient, stage, micro_batch);
  }

  std::string Named(uint32_t index) const {
    return fmt::format("action {} ({})", index, Describe(actions_[index]));
  }
  template <typename... Arguments>
  [[noreturn]] void Fail(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    throw Error(place_, fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  void Enter(uint32_t index) {
    const Action& action = actions_[index];
    if (action.stage >= stages_) Fail("{}: there are {} stages", Named(index), stages_);
    if (action.micro_batch >= micro_batches_) {
      Fail("{}: there are {} micro-batches", Named(index), micro_batches_);
    }
    PlaceInList& own =
        At(action.kind, action.stage, EndsStep(action.kind) ? 0 : action.micro_batch);
    if (own) Fail("{} comes once more: {} is the same", Named(index), Named(*own));
    own = index;
  }

  void Need(uint32_t index, const PlaceInList& needed, const Action& what) const {
    if (!needed) Fail("{} needs the {}, which the list has not", Named(index), Describe(what));
    if (*needed > index) Fail("{} comes before {}, which it needs", Named(index), Named(*needed));
  }

  void CheckMicroBatch(uint32_t stage, uint32_t index) {
    const auto needs = [&](Kind kind, Kind needed) {
      if (At(kind, stage, index)) {
        Need(*At(kind, stage, index), At(needed, stage, index), {stage, index, needed});
      }
    };
    for (const Kind kind : {Kind::kRecompute, Kind::kBackward, Kind::kInputGradient}) {
      needs(kind, Kind::kForward);
    }
    needs(Kind::kWeightGradient, Kind::kInputGradient);
    const PlaceInList& together = At(Kind::kBackward, stage, index);
    const PlaceInList& apart = At(Kind::kInputGradient, stage, index);
    if (together && apart)
      Fail("{} makes the gradients of {} again", Named(*together), Named(*apart));
    if (!At(Kind::kForward, stage, index)) {
      Fail("the list has no {}", Describe({stage, index, Kind::kForward}));
    }
    if (!together && !apart) {
      Fail("{} has no backward pass", Named(*At(Kind::kForward, stage, index)));
    }
    if (apart && !At(Kind::kWeightGradient, stage, index)) {
      Fail("{} needs a {} behind it, which the list has not", Named(*apart),
           Describe({stage, index, Kind::kWeightGradient}));
    }
    const PlaceInList& again = At(Kind::kRecompute, stage, index);
    if (again) Need(*BackAt(stage, index), again, {});
  }

  void CheckEnd(uint32_t stage) {
    const PlaceInList& synchronize = At(Kind::kSynchronize, stage, 0);
    const PlaceInList& update = At(Kind::kUpdate, stage, 0);
    if (!update) Fail("the list has no {}", Describe({stage, 0, Kind::kUpdate}));
    Need(*update, synchronize, {stage, 0, Kind::kSynchronize});
    for (uint32_t index = 0; index < micro_batches_; ++index) {
      const Kind last = At(Kind::kBackward, stage, index) ? Kind::kBackward : Kind::kWeightGradient;
      Need(*synchronize, At(last, stage, index), {stage, index, last});
    }
  }

  // What the stage hands on (forward or back), in its order.
  std::vector<uint32_t> Orders(uint32_t stage, bool forward) {
    std::vector<uint32_t> order;
    for (uint32_t index = 0; index < micro_batches_; ++index) {
      order.push_back(forward ? *At(Kind::kForward, stage, index) : *BackAt(stage, index));
    }
    std::sort(order.begin(), order.end());
    return order;
  }

  void CheckThatOrdersAgree(uint32_t from, const std::vector<uint32_t>& sent, uint32_t to,
                            const std::vector<uint32_t>& taken) const {
    for (size_t i = 0; i < sent.size(); ++i) {
      if (actions_[sent[i]].micro_batch == actions_[taken[i]].micro_batch) continue;
      Fail("stage {} takes micro-batches in another order than stage {} hands them on: {} meets {}",
           to, from, Named(taken[i]), Named(sent[i]));
    }
  }

  // The action of another stage that an action waits for.
  PlaceInList NeededFromNeighbour(uint32_t index) {
    const Action& action = actions_[index];
    if (action.kind == Kind::kForward && action.stage > 0) {
      return At(Kind::kForward, action.stage - 1, action.micro_batch);
    }
    const bool goes_back = action.kind == Kind::kBackward || action.kind == Kind::kInputGradient;
    if (goes_back && action.stage + 1 < stages_) {
      return BackAt(action.stage + 1, action.micro_batch);
    }
    return std::nullopt;
  }

  // Stages in turn, each as far as it gets. Waits are between neighbours in a row, so that where
  // all that are left wait, some two wait for each other.
  void CheckThatItFinishes() {
    std::vector<std::vector<uint32_t>> of_stage(stages_);
    for (uint32_t i = 0; i < actions_.size(); ++i) of_stage[actions_[i].stage].push_back(i);
    std::vector<size_t> next(stages_);
    std::vector<bool> done(actions_.size());
    const auto head = [&](uint32_t stage) { return of_stage[stage][next[stage]]; };
    for (bool advances = true; advances;) {
      advances = false;
      for (uint32_t stage = 0; stage < stages_; ++stage) {
        for (; next[stage] < of_stage[stage].size(); ++next[stage]) {
          const PlaceInList needed = NeededFromNeighbour(head(stage));
          if (needed && !done[*needed]) break;
          done[head(stage)] = true;
          advances = true;
        }
      }
    }
    for (uint32_t stage = 0; stage + 1 < stages_; ++stage) {
      const bool both_wait =
          next[stage] < of_stage[stage].size() && next[stage + 1] < of_stage[stage + 1].size();
      if (!both_wait) continue;
      const uint32_t needed = *NeededFromNeighbour(head(stage));
      const uint32_t needed_there = *NeededFromNeighbour(head(stage + 1));
      if (actions_[needed].stage != stage + 1 || actions_[needed_there].stage != stage) continue;
      Fail(
          "stages {} and {} wait for each other: {} needs {}, which comes after {}, and that needs "
          "{}",
          stage, stage + 1, Named(head(stage)), Named(needed), Named(head(stage + 1)),
          Named(needed_there));
    }
  }

  const std::vector<Action>& actions_;
  const uint32_t stages_;
  const uint32_t micro_batches_;
  const Place& place_;
  std::array<std::vector<PlaceInList>, kActionKinds> places_;  // by kind, stage and micro-batch
};

}  // namespace

void CheckActions(const std::vector<Action>& actions, uint32_t stages, uint32_t micro_batches,
                  const Place& place) {
  CHECK_GE(stages, 1u);
  CHECK_GE(micro_batches, 1u);
  ActionCheck(actions, stages, micro_batches, place).Run();
}

// ---- generators ---------------------------------------------------------------------------------

namespace {

// Writes the list stage by stage.
class ActionList {
 public:
  void BeginStage(uint32_t stage) { stage_ = stage; }
  void Add(Kind kind, uint32_t micro_batch = 0) { actions_.push_back({stage_, micro_batch, kind}); }
  void EndStage() {
    Add(Kind::kSynchronize);
    Add(Kind::kUpdate);
  }
  std::vector<Action> Take() { return std::move(actions_); }

 private:
  uint32_t stage_ = 0;
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Action> OneAfterAnother(uint32_t stages, uint32_t micro_batches) {
  ActionList list;
  for (uint32_t stage = 0; stage < stages; ++stage) {
    list.BeginStage(stage);
    for (uint32_t index = 0; index < micro_batches; ++index) {
      list.Add(Kind::kForward, index);
      list.Add(Kind::kBackward, index);
    }
    list.EndStage();
  }
  return list.Take();
}

std::vector<Action> GPipe(uint32_t stages, uint32_t micro_batches) {
  ActionList list;
  for (uint32_t stage = 0; stage < stages; ++stage) {
    list.BeginStage(stage);
    for (uint32_t index = 0; index < micro_batches; ++index) list.Add(Kind::kForward, index);
    for (uint32_t index = 0; index < micro_batches; ++index) list.Add(Kind::kBackward, index);
    list.EndStage();
  }
  return list.Take();
}

std::vector<Action> OneForwardOneBackward(uint32_t stages, uint32_t micro_batches) {
  ActionList list;
  for (uint32_t stage = 0; stage < stages; ++stage) {
    list.BeginStage(stage);
    const uint32_t ahead = std::min(stages - stage - 1, micro_batches);
    for (uint32_t index = 0; index < ahead; ++index) list.Add(Kind::kForward, index);
    for (uint32_t index = 0; index < micro_batches; ++index) {
      if (index + ahead < micro_batches) list.Add(Kind::kForward, index + ahead);
      list.Add(Kind::kBackward, index);
    }
    list.EndStage();
  }
  return list.Take();
}

std::vector<Action> ZeroBubbleH1(uint32_t stages, uint32_t micro_batches) {
  ActionList list;
  for (uint32_t stage = 0; stage < stages; ++stage) {
    list.BeginStage(stage);
    const uint32_t ahead = std::min(stages - stage - 1, micro_batches);
    for (uint32_t index = 0; index < ahead; ++index) list.Add(Kind::kForward, index);
    for (uint32_t index = 0; index < micro_batches; ++index) {
      if (index + ahead < micro_batches) list.Add(Kind::kForward, index + ahead);
      list.Add(Kind::kInputGradient, index);
      if (index >= stage) list.Add(Kind::kWeightGradient, index - stage);
    }
    const uint32_t left = std::min(stage, micro_batches);
    for (uint32_t index = micro_batches - left; index < micro_batches; ++index) {
      list.Add(Kind::kWeightGradient, index);
    }
    list.EndStage();
  }
  return list.Take();
}

}  // namespace rehearse
