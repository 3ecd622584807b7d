#include "workloads/planner/pipeline_orders.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "sim/base/error.h"

namespace rehearse {

namespace {

using Kind = ActionKind;

// Writes the list rank by rank; the actions that end the step are on the stage last begun.
class ActionList {
 public:
  void BeginStage(uint32_t stage) { stage_ = stage; }
  void Add(Kind kind, uint32_t micro_batch = 0) { actions_.push_back({stage_, micro_batch, kind}); }
  void AddOf(uint32_t stage, Kind kind, uint32_t micro_batch) {
    actions_.push_back({stage, micro_batch, kind});
  }
  // The last one of a rank that is ahead by all passes: it waits for no gradient.
  void BeginsNoPair() { actions_.back().is_alone = true; }
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
  return BreadthFirst(stages, 1, micro_batches);
}

namespace {

// A stage is `a_rank` forward passes ahead of the next one, the last stage `more_ahead`.
std::vector<Action> OneForwardOneBackward(uint32_t stages, uint32_t micro_batches, uint32_t a_rank,
                                          uint32_t more_ahead) {
  ActionList list;
  for (uint32_t stage = 0; stage < stages; ++stage) {
    list.BeginStage(stage);
    const uint32_t ahead = std::min((stages - stage - 1) * a_rank + more_ahead, micro_batches);
    for (uint32_t index = 0; index < ahead; ++index) list.Add(Kind::kForward, index);
    if (more_ahead > 0 && ahead == micro_batches) list.BeginsNoPair();
    for (uint32_t index = 0; index < micro_batches; ++index) {
      if (index + ahead < micro_batches) list.Add(Kind::kForward, index + ahead);
      list.Add(Kind::kBackward, index);
    }
    list.EndStage();
  }
  return list.Take();
}

}  // namespace

std::vector<Action> OneForwardOneBackward(uint32_t stages, uint32_t micro_batches) {
  return OneForwardOneBackward(stages, micro_batches, 1, 0);
}

std::vector<Action> OneForwardOneBackwardInPairs(uint32_t stages, uint32_t micro_batches) {
  return OneForwardOneBackward(stages, micro_batches, 2, 1);
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

namespace {

std::vector<Action> Interleaved(uint32_t ranks, uint32_t a_rank, uint32_t micro_batches,
                                uint32_t more_ahead) {
  CHECK_GE(a_rank, 2u);
  CHECK_EQ(micro_batches % ranks, 0u);
  ActionList list;
  const uint32_t passes = micro_batches * a_rank;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    list.BeginStage(rank);
    // Rounds of p micro-batches go through one stage of the rank after the other.
    const auto add = [&](Kind kind, uint32_t pass) {
      const uint32_t nth = pass % (ranks * a_rank) / ranks;
      const uint32_t own = kind == Kind::kForward ? nth : a_rank - 1 - nth;
      const uint32_t micro_batch = pass / (ranks * a_rank) * ranks + pass % ranks;
      list.AddOf(own * ranks + rank, kind, micro_batch);
    };
    const uint32_t usual = (ranks - rank - 1) * 2 + (a_rank - 1) * ranks + more_ahead;
    const uint32_t ahead = std::min(usual, passes);
    for (uint32_t pass = 0; pass < ahead; ++pass) add(Kind::kForward, pass);
    if (more_ahead > 0 && ahead == passes) list.BeginsNoPair();
    for (uint32_t pass = 0; pass < passes; ++pass) {
      if (pass + ahead < passes) add(Kind::kForward, pass + ahead);
      add(Kind::kBackward, pass);
    }
    list.EndStage();
  }
  return list.Take();
}

}  // namespace

std::vector<Action> Interleaved(uint32_t ranks, uint32_t a_rank, uint32_t micro_batches) {
  return Interleaved(ranks, a_rank, micro_batches, 0);
}

std::vector<Action> InterleavedInPairs(uint32_t ranks, uint32_t a_rank, uint32_t micro_batches) {
  return Interleaved(ranks, a_rank, micro_batches, 1);
}

std::vector<Action> BreadthFirst(uint32_t ranks, uint32_t a_rank, uint32_t micro_batches) {
  ActionList list;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    list.BeginStage(rank);
    for (uint32_t own = 0; own < a_rank; ++own) {
      for (uint32_t index = 0; index < micro_batches; ++index) {
        list.AddOf(own * ranks + rank, Kind::kForward, index);
      }
    }
    for (uint32_t own = a_rank; own-- > 0;) {
      for (uint32_t index = 0; index < micro_batches; ++index) {
        list.AddOf(own * ranks + rank, Kind::kBackward, index);
      }
    }
    list.EndStage();
  }
  return list.Take();
}

// ---- weight gradients where a rank would wait ---------------------------------------------------

namespace {

struct Habits {
  bool forward_first = false;  // if both a forward pass and a gradient could be next
  // A weight gradient is made if anything else that could be next is further away than this share
  // of its time.
  double patience = 0;
  bool runs_far_ahead =
      true;  // before its first gradient a rank takes all micro-batches that it may keep
  // A forward pass is not begun if a gradient is expected before this share of it is done, as the
  // ranks before this one wait for that: only before the rank's first gradient, or always.
  double yields = 0;
  bool always_yields = false;
};

constexpr double kNever = std::numeric_limits<double>::infinity();

// Plays the pipeline; every rank decides when it is free.
class GreedyOrder {
 public:
  GreedyOrder(uint32_t stages, uint32_t micro_batches, uint32_t most, const StageTimes& times,
              const Habits& habits)
      : stages_(stages),
        micro_batches_(micro_batches),
        most_(most),
        times_(times),
        habits_(habits),
        ranks_(stages) {
    for (uint32_t s = 0; s < stages; ++s) {
      ranks_[s].values.assign(micro_batches, s == 0 ? 0 : kNever);
      ranks_[s].gradients.assign(micro_batches, kNever);
    }
  }

  // Whether everything was done: ranks that yield may all wait.
  bool Run() {
    for (uint32_t left = 3 * stages_ * micro_batches_; left > 0; --left) {
      // The rank that may begin first does: nothing that becomes known later comes earlier.
      uint32_t next = 0;
      Choice first;
      for (uint32_t s = 0; s < stages_; ++s) {
        const Choice choice = Next(s);
        if (choice.begin < first.begin) {
          next = s;
          first = choice;
        }
      }
      if (first.begin == kNever) return false;
      Do(next, first);
    }
    return true;
  }

  // The time from first to last action of the rank that takes longest.
  double LongestRank() const {
    double longest = 0;
    for (const Rank& rank : ranks_) longest = std::max(longest, rank.free - rank.begin);
    return longest;
  }
  std::vector<Action> Take() const {
    ActionList list;
    for (uint32_t s = 0; s < stages_; ++s) {
      list.BeginStage(s);
      for (const auto& [kind, index] : ranks_[s].done) list.Add(kind, index);
      list.EndStage();
    }
    return list.Take();
  }

 private:
  struct Rank {
    std::vector<double> values;  // by micro-batch: when they are there
    std::vector<double> gradients;
    uint32_t forward = 0;  // how many are done
    uint32_t input = 0;
    uint32_t weight = 0;
    double begin = kNever;
    double free = 0;
    std::vector<std::pair<Kind, uint32_t>> done;
  };
  struct Choice {
    Kind kind = Kind::kForward;
    double begin = kNever;
  };

  Choice Next(uint32_t s) const {
    const Rank& rank = ranks_[s];
    const bool may_take = rank.forward < micro_batches_ && HasRoom(rank) &&
                          (habits_.runs_far_ahead || rank.input > 0 || rank.forward < stages_ - s);
    const double forward = may_take ? std::max(rank.free, rank.values[rank.forward]) : kNever;
    const bool has_gradients = rank.input < rank.forward;
    const double input = has_gradients ? std::max(rank.free, rank.gradients[rank.input]) : kNever;
    Choice choice = {Kind::kInputGradient, input};
    if (forward < input || (forward == input && habits_.forward_first)) {
      const bool may_yield =
          habits_.yields > 0 && has_gradients && (habits_.always_yields || rank.input == 0);
      const double room = habits_.yields * times_.forward * (1 - 1e-9);
      const bool yields = may_yield && ExpectedGradient(s) < forward + room;
      if (!yields) choice = {Kind::kForward, forward};
    }
    if (rank.weight == rank.input || choice.begin <= rank.free) return choice;
    // What is not yet sent is expected after what the sender does now.
    const double expected = std::min({choice.begin, may_take ? ExpectedValue(s) : kNever,
                                      has_gradients ? ExpectedGradient(s) : kNever});
    const double room = habits_.patience * times_.weight_gradient;
    if (expected < rank.free + room * (1 - 1e-9)) return choice;
    return {Kind::kWeightGradient, rank.free};
  }

  // Whether one more micro-batch fits.
  bool HasRoom(const Rank& rank) const {
    const double whole = rank.forward - rank.input;
    const double rest = rank.input - rank.weight;
    return whole + times_.kept_for_weights * rest + 1 <= most_ + 1e-9;
  }

  // The earliest times at which the next value and the next gradient will be there.
  double ExpectedValue(uint32_t s) const {
    const uint32_t index = ranks_[s].forward;
    double at = 0;
    uint32_t from = s;
    while (ranks_[from].values[index] == kNever) --from;
    at = ranks_[from].values[index];
    for (; from < s; ++from) {
      at = std::max(at, ranks_[from].free) + times_.forward + times_.message;
    }
    return at;
  }
  double ExpectedGradient(uint32_t s) const {
    const uint32_t index = ranks_[s].input;
    uint32_t from = s;
    while (from < stages_ && ranks_[from].gradients[index] == kNever) ++from;
    if (from == stages_) return kNever;
    double at = ranks_[from].gradients[index];
    for (; from > s; --from) {
      at = std::max(at, ranks_[from].free) + times_.input_gradient + times_.message;
    }
    return at;
  }

  void Do(uint32_t s, const Choice& choice) {
    Rank& rank = ranks_[s];
    rank.begin = std::min(rank.begin, choice.begin);
    if (choice.kind == Kind::kForward) {
      rank.free = choice.begin + times_.forward;
      rank.done.emplace_back(choice.kind, rank.forward);
      if (s + 1 < stages_) ranks_[s + 1].values[rank.forward] = rank.free + times_.message;
      if (s + 1 == stages_) rank.gradients[rank.forward] = rank.free;
      ++rank.forward;
    } else if (choice.kind == Kind::kInputGradient) {
      rank.free = choice.begin + times_.input_gradient;
      rank.done.emplace_back(choice.kind, rank.input);
      if (s > 0) ranks_[s - 1].gradients[rank.input] = rank.free + times_.message;
      ++rank.input;
    } else {
      rank.free = choice.begin + times_.weight_gradient;
      rank.done.emplace_back(choice.kind, rank.weight);
      ++rank.weight;
    }
  }

  const uint32_t stages_;
  const uint32_t micro_batches_;
  const uint32_t most_;
  const StageTimes times_;
  const Habits habits_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::vector<Action> ZeroBubbleByTimes(uint32_t stages, uint32_t micro_batches, uint32_t most,
                                      const StageTimes& times) {
  CHECK_GE(most, 1u);
  constexpr std::array<double, 5> kPatience = {0, 0.25, 0.5, 0.75, 1};
  std::vector<Habits> all;
  const auto add = [&](bool runs_far) {
    for (const double patience : kPatience) {
      for (const bool forward_first : {false, true}) {
        all.push_back(
            {.forward_first = forward_first, .patience = patience, .runs_far_ahead = runs_far});
      }
    }
  };
  // Of orders that take equally long, one with as many forward passes before the first gradient as
  // the memory allows ("in the warm-up phase, within the memory limit, we schedule as many F passes
  // as possible", section 3.1).
  add(/*runs_far=*/true);
  for (const double patience : kPatience) {
    for (const double yields : {0.25, 0.5, 1.}) {
      for (const bool always : {false, true})
        all.push_back({.patience = patience, .yields = yields, .always_yields = always});
    }
  }
  add(/*runs_far=*/false);
  std::vector<Action> best;
  double shortest = kNever;
  for (const Habits& habits : all) {
    GreedyOrder order(stages, micro_batches, most, times, habits);
    if (!order.Run() || order.LongestRank() >= shortest) continue;
    shortest = order.LongestRank();
    best = order.Take();
  }
  return best;
}

std::vector<Action> ZeroBubbleH2(uint32_t stages, uint32_t micro_batches) {
  return ZeroBubbleByTimes(stages, micro_batches, 2 * stages - 1, {});
}

// ---- there and back -----------------------------------------------------------------------------

namespace {

// What one rank does with its two stages; weight gradients that are put off wait in a queue.
class TwoStages {
 public:
  TwoStages(ActionList* list, uint32_t stage_0, uint32_t first_0, uint32_t stage_1,
            uint32_t first_1)
      : list_(*list), parts_{{{stage_0, first_0, first_0}, {stage_1, first_1, first_1}}} {}

  void Forward(uint32_t part) {
    list_.AddOf(parts_[part].stage, Kind::kForward, parts_[part].forward++);
  }
  void Backward(uint32_t part, bool puts_off = false) {
    Part& own = parts_[part];
    const uint32_t index = own.backward++;
    list_.AddOf(own.stage, puts_off ? Kind::kInputGradient : Kind::kBackward, index);
    if (puts_off) weights_.emplace_back(own.stage, index);
  }
  void Weight() {
    CHECK(!weights_.empty());
    list_.AddOf(weights_.front().first, Kind::kWeightGradient, weights_.front().second);
    weights_.pop_front();
  }
  uint32_t waiting() const { return static_cast<uint32_t>(weights_.size()); }

 private:
  struct Part {
    uint32_t stage;
    uint32_t forward;   // the next micro-batch
    uint32_t backward;  // likewise
  };

  ActionList& list_;
  std::array<Part, 2> parts_;
  std::deque<std::pair<uint32_t, uint32_t>> weights_;
};

// The eight parts of DualPipe's order (Fig. 5 of arXiv 2412.19437, from left to right), for the
// rank that is `from_end` ranks from the end where its part 0 begins, out of `way` ranks to where
// the other part does; each takes `each` micro-batches.
void AddDualPipe(uint32_t from_end, uint32_t way, uint32_t each, TwoStages* rank) {
  const uint32_t behind = way - from_end - 1;
  for (uint32_t i = 0; i < 2 * behind; ++i) rank->Forward(0);
  for (uint32_t i = 0; i <= from_end; ++i) {
    rank->Forward(0);
    rank->Forward(1);
  }
  for (uint32_t i = 0; i < behind; ++i) {
    rank->Backward(1, /*puts_off=*/true);
    rank->Weight();
    rank->Forward(1);
  }
  for (uint32_t i = 0; i < each - 2 * way + from_end + 1; ++i) {
    rank->Forward(0);
    rank->Backward(1);
    rank->Forward(1);
    rank->Backward(0);
  }
  for (uint32_t i = 0; i < behind; ++i) {
    rank->Backward(1);
    rank->Forward(1);
    rank->Backward(0);
  }
  // From the middle on weight gradients fill the time at the end.
  for (uint32_t i = 0; i < 2 * (from_end + 1); ++i) {
    rank->Backward(i % 2 == 0 ? 1 : 0, /*puts_off=*/i > from_end);
  }
  for (uint32_t i = 0; i < behind; ++i) {
    rank->Weight();
    rank->Backward(0, /*puts_off=*/true);
  }
  while (rank->waiting() > 0) rank->Weight();
}

}  // namespace

std::vector<Action> ZeroBubbleV(uint32_t ranks, uint32_t micro_batches) {
  CHECK_GE(micro_batches, 2 * ranks);
  ActionList list;
  for (uint32_t r = 0; r < ranks; ++r) {
    list.BeginStage(r);
    TwoStages rank(&list, r, 0, 2 * ranks - 1 - r, 0);
    uint32_t down = 0;  // forward passes of part 0, of part 1
    uint32_t up = 0;
    const auto go_down = [&] { rank.Forward(0), ++down; };
    const auto go_up = [&] { rank.Forward(1), ++up; };
    const auto go_back = [&](uint32_t part) {
      rank.Backward(part, /*puts_off=*/true);
      rank.Weight();
    };
    for (uint32_t i = 0; i < 2 * (ranks - r) - 1; ++i) go_down();
    for (uint32_t i = 0; i < r; ++i) {
      go_up();
      go_down();
    }
    for (uint32_t i = 0; i < ranks - r; ++i) {
      go_up();
      go_back(1);
    }
    while (up < micro_batches) {
      if (down < micro_batches) go_down();
      go_back(0);
      go_up();
      go_back(1);
    }
    for (uint32_t i = 0; i < r; ++i) {
      rank.Backward(0, /*puts_off=*/true);
      rank.Backward(1, /*puts_off=*/true);
    }
    for (uint32_t i = 0; i < ranks - r; ++i) {
      rank.Backward(0, /*puts_off=*/true);
      rank.Weight();
    }
    while (rank.waiting() > 0) rank.Weight();
    list.EndStage();
  }
  return list.Take();
}

std::vector<Action> DualPipe(uint32_t ranks, uint32_t micro_batches) {
  CHECK_EQ(ranks % 2, 0u);
  CHECK_EQ(micro_batches % 2, 0u);
  CHECK_GE(micro_batches, 2 * ranks);
  ActionList list;
  const uint32_t half = micro_batches / 2;
  for (uint32_t r = 0; r < ranks; ++r) {
    list.BeginStage(r);
    const uint32_t other = 2 * ranks - 1 - r;
    const bool is_near = r < ranks / 2;  // near where the first copy begins
    TwoStages rank(&list, is_near ? r : other, is_near ? 0 : half, is_near ? other : r,
                   is_near ? half : 0);
    AddDualPipe(is_near ? r : ranks - 1 - r, ranks / 2, half, &rank);
    list.EndStage();
  }
  return list.Take();
}

std::vector<Action> DualPipeV(uint32_t ranks, uint32_t micro_batches) {
  CHECK_GE(micro_batches, 2 * ranks);
  ActionList list;
  for (uint32_t r = 0; r < ranks; ++r) {
    list.BeginStage(r);
    TwoStages rank(&list, r, 0, 2 * ranks - 1 - r, 0);
    AddDualPipe(r, ranks, micro_batches, &rank);
    list.EndStage();
  }
  return list.Take();
}

}  // namespace rehearse
