#include "workloads/planner/actions.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::vector<uint32_t> StagePlaces::StagesOf(uint32_t rank) const {
  std::vector<uint32_t> own;
  for (uint32_t stage = 0; stage < stages(); ++stage) {
    if (rank_of[stage] == rank) own.push_back(stage);
  }
  return own;
}

bool StagePlaces::IsLooped() const {
  if (copies > 1 || !HasSeveralOnARank()) return false;
  for (uint32_t stage = 0; stage < stages(); ++stage)
    if (rank_of[stage] != stage % ranks) return false;
  return true;
}

StagePlaces OneStageARank(uint32_t stages) { return Looped(stages, 1); }

StagePlaces Looped(uint32_t ranks, uint32_t a_rank) {
  StagePlaces places{ranks, 1, {}};
  for (uint32_t stage = 0; stage < ranks * a_rank; ++stage) places.rank_of.push_back(stage % ranks);
  return places;
}

StagePlaces VShaped(uint32_t ranks) {
  StagePlaces places{ranks, 1, {}};
  for (uint32_t rank = 0; rank < ranks; ++rank) places.rank_of.push_back(rank);
  for (uint32_t rank = ranks; rank-- > 0;) places.rank_of.push_back(rank);
  return places;
}

StagePlaces BothWays(uint32_t ranks) {
  StagePlaces places = VShaped(ranks);
  places.copies = 2;
  return places;
}

std::vector<Action> OfRank(const std::vector<Action>& actions, const StagePlaces& places,
                           uint32_t rank) {
  std::vector<Action> own;
  for (const Action& action : actions) {
    if (places.rank_of[action.stage] == rank) own.push_back(action);
  }
  return own;
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
  ActionCheck(const std::vector<Action>& actions, const StagePlaces& places, uint32_t micro_batches,
              const Place& place)
      : actions_(actions),
        places_(places),
        stages_(places.stages()),
        micro_batches_(micro_batches),
        place_(place) {
    for (auto& of_kind : found_) of_kind.resize(size_t{stages_} * micro_batches);
  }

  void Run() {
    for (uint32_t i = 0; i < actions_.size(); ++i) Enter(i);
    for (uint32_t stage = 0; stage < stages_; ++stage) {
      for (uint32_t index = 0; index < micro_batches_; ++index) {
        if (IsOfCopy(stage, index)) CheckMicroBatch(stage, index);
      }
    }
    for (uint32_t rank = 0; rank < places_.ranks; ++rank) CheckEnd(rank);
    CheckThatOrdersAgree();
    CheckThatItFinishes();
  }

 private:
  using PlaceInList = std::optional<uint32_t>;

  PlaceInList& At(Kind kind, uint32_t stage, uint32_t micro_batch) {
    return found_[static_cast<size_t>(kind)][size_t{stage} * micro_batches_ + micro_batch];
  }
  // The gradient that the previous stage waits for.
  PlaceInList BackAt(uint32_t stage, uint32_t micro_batch) {
    const PlaceInList& together = At(Kind::kBackward, stage, micro_batch);
    return together ? together : At(Kind::kInputGradient, stage, micro_batch);
  }

  bool IsOfCopy(uint32_t stage, uint32_t micro_batch) const {
    return places_.CopyOfMicroBatch(micro_batch, micro_batches_) == places_.CopyOf(stage);
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
    if (!EndsStep(action.kind) && !IsOfCopy(action.stage, action.micro_batch)) {
      Fail(
          "{}: the stage belongs to the other copy of the model, which takes the {} half of the "
          "micro-batches",
          Named(index), places_.CopyOf(action.stage) == 0 ? "first" : "second");
    }
    PlaceInList& own =
        At(action.kind, action.stage, EndsStep(action.kind) ? 0 : action.micro_batch);
    if (own) Fail("{} comes once more: {} is the same", Named(index), Named(*own));
    own = index;
  }

  void Need(uint32_t index, const PlaceInList& needed, const Action& what) const {
    if (!needed)
      Fail("{} needs the {}, which the list does not have", Named(index), Describe(what));
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
      Fail("{} needs a {} after it, which the list does not have", Named(*apart),
           Describe({stage, index, Kind::kWeightGradient}));
    }
    const PlaceInList& again = At(Kind::kRecompute, stage, index);
    if (again) Need(*BackAt(stage, index), again, {});
    // Checked for the same rank; those of others are waited for.
    for (const uint32_t own : {*At(Kind::kForward, stage, index), *BackAt(stage, index)}) {
      const std::optional<Action> from = Neighbour(own);
      if (from && RankOf(from->stage) == RankOf(stage)) Need(own, NeededOfNeighbour(own), *from);
    }
  }

  uint32_t RankOf(uint32_t stage) const { return places_.rank_of[stage]; }

  void CheckEnd(uint32_t rank) {
    const std::vector<uint32_t> own = places_.StagesOf(rank);
    const PlaceInList& synchronize = At(Kind::kSynchronize, own.front(), 0);
    const PlaceInList& update = At(Kind::kUpdate, own.front(), 0);
    if (!update) Fail("the list has no {}", Describe({own.front(), 0, Kind::kUpdate}));
    Need(*update, synchronize, {own.front(), 0, Kind::kSynchronize});
    for (const uint32_t stage : own) {
      for (uint32_t index = 0; index < micro_batches_; ++index) {
        if (!IsOfCopy(stage, index)) continue;
        const Kind last =
            At(Kind::kBackward, stage, index) ? Kind::kBackward : Kind::kWeightGradient;
        Need(*synchronize, At(last, stage, index), {stage, index, last});
      }
    }
  }

  // The action of another stage that an action waits for, whatever kind of backward it is.
  std::optional<Action> Neighbour(uint32_t index) const {
    const Action& action = actions_[index];
    if (action.kind == Kind::kForward && !places_.IsFirstOfCopy(action.stage)) {
      return Action{action.stage - 1, action.micro_batch, Kind::kForward};
    }
    if (GoesBack(action.kind) && !places_.IsLastOfCopy(action.stage)) {
      return Action{action.stage + 1, action.micro_batch, Kind::kBackward};
    }
    return std::nullopt;
  }
  PlaceInList NeededOfNeighbour(uint32_t index) {
    const std::optional<Action> needed = Neighbour(index);
    if (!needed) return std::nullopt;
    return needed->kind == Kind::kForward ? At(Kind::kForward, needed->stage, needed->micro_batch)
                                          : BackAt(needed->stage, needed->micro_batch);
  }

  // Compares what each rank passes to another, forward or back, with what that one takes, in order.
  void CheckThatOrdersAgree() {
    using Way = std::tuple<uint32_t, uint32_t, bool>;
    std::map<Way, std::vector<uint32_t>> sent;
    std::map<Way, std::vector<uint32_t>> taken;
    for (uint32_t i = 0; i < actions_.size(); ++i) {
      const Action& action = actions_[i];
      const bool back = GoesBack(action.kind);
      if (!back && action.kind != Kind::kForward) continue;
      if (const std::optional<Action> from = Neighbour(i)) {
        taken[{RankOf(from->stage), RankOf(action.stage), back}].push_back(i);
      }
      const bool ends =
          back ? places_.IsFirstOfCopy(action.stage) : places_.IsLastOfCopy(action.stage);
      if (ends) continue;
      const uint32_t to = back ? action.stage - 1 : action.stage + 1;
      sent[{RankOf(action.stage), RankOf(to), back}].push_back(i);
    }
    for (const auto& [way, out] : sent) {
      if (std::get<0>(way) == std::get<1>(way)) continue;
      const std::vector<uint32_t>& in = taken[way];
      for (size_t i = 0; i < out.size(); ++i) {
        if (NeededOfNeighbour(in[i]) == out[i]) continue;
        Fail(
            "rank {} of the pipeline takes micro-batches in another order than rank {} passes them "
            "on: {} meets {}",
            std::get<1>(way), std::get<0>(way), Named(in[i]), Named(out[i]));
      }
    }
  }

  // Plays the ranks in turn, each as far as it gets.
  void CheckThatItFinishes() {
    std::vector<std::vector<uint32_t>> of_rank(places_.ranks);
    for (uint32_t i = 0; i < actions_.size(); ++i) of_rank[RankOf(actions_[i].stage)].push_back(i);
    std::vector<size_t> next(places_.ranks);
    std::vector<bool> done(actions_.size());
    for (bool advances = true; advances;) {
      advances = false;
      for (uint32_t rank = 0; rank < places_.ranks; ++rank) {
        for (; next[rank] < of_rank[rank].size(); ++next[rank]) {
          const uint32_t head = of_rank[rank][next[rank]];
          const PlaceInList needed = NeededOfNeighbour(head);
          if (needed && !done[*needed]) break;
          done[head] = true;
          advances = true;
        }
      }
    }
    for (uint32_t rank = 0; rank < places_.ranks; ++rank) {
      if (next[rank] < of_rank[rank].size()) FailWithRing(rank, of_rank, next);
    }
  }

  // Goes from a waiting rank to the one that it waits for, until one comes up again.
  [[noreturn]] void FailWithRing(uint32_t rank, const std::vector<std::vector<uint32_t>>& of_rank,
                                 const std::vector<size_t>& next) {
    const auto head = [&](uint32_t waiting) { return of_rank[waiting][next[waiting]]; };
    const auto rank_of_needed = [&](uint32_t waiting) {
      return RankOf(actions_[*NeededOfNeighbour(head(waiting))].stage);
    };
    for (uint32_t i = 0; i < places_.ranks; ++i) rank = rank_of_needed(rank);
    std::vector<uint32_t> ring = {rank};
    for (uint32_t other = rank_of_needed(rank); other != rank; other = rank_of_needed(other)) {
      ring.push_back(other);
    }
    std::rotate(ring.begin(), std::min_element(ring.begin(), ring.end()), ring.end());
    std::string text = Named(head(ring.front()));
    for (size_t i = 0; i < ring.size(); ++i) {
      text += fmt::format(" needs {}", Named(*NeededOfNeighbour(head(ring[i]))));
      if (i + 1 == ring.size()) continue;
      text += fmt::format(", which comes after {}, and that", Named(head(ring[i + 1])));
    }
    std::sort(ring.begin(), ring.end());
    Fail("ranks {} of the pipeline wait for each other: {}", fmt::join(ring, ", "), text);
  }

  const std::vector<Action>& actions_;
  const StagePlaces& places_;
  const uint32_t stages_;
  const uint32_t micro_batches_;
  const Place& place_;
  std::array<std::vector<PlaceInList>, kActionKinds> found_;  // by kind, stage and micro-batch
};

}  // namespace

void CheckActions(const std::vector<Action>& actions, const StagePlaces& places,
                  uint32_t micro_batches, const Place& place) {
  CHECK_GE(places.stages(), places.ranks);
  CHECK_GE(micro_batches, 1u);
  ActionCheck(actions, places, micro_batches, place).Run();
}

void CheckActions(const std::vector<Action>& actions, uint32_t stages, uint32_t micro_batches,
                  const Place& place) {
  CheckActions(actions, OneStageARank(stages), micro_batches, place);
}

}  // namespace rehearse
