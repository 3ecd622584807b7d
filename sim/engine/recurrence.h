// Copies of the same work that need not be played: equal micro-batches of a long step.
//
// A program whose tasks are mostly copies (CopiedTasks) comes to a steady state: the engine is in
// the same state as a few copies before, up to the numbers of the tasks and the time. Let f move
// each task k copies on. If the state at B is that at A = B - P under f, and what happened from A
// to B did not reach the tasks behind the copies, then in a program with j·k copies more the same
// happens j times more, each time P later:
//   what happened until B     is as it was,
//   what happens after B      belongs to tasks j·k copies on, and is j·P later,
//   in between                lies what happened from A to B, repeatedly.
// Nothing is estimated: all times are those that playing every copy gives, to the last bit.
//
// The state (Player::StateOf in sim/engine/player_recurrence.cc) consists of the tasks that have
// ended, and for each that is under way when its event is due, how far it is and how fast. Rates
// follow from which flows move (sim/engine/transfer_network.h), what tasks wait for from which have
// ended, and what slows them from which are under way. The numbers are compared as they are, not as
// a hash.
//
// States are not compared while chains of steps are jumped over (sim/engine/step_periods.h), and no
// copies may be left out of a program with link changes, whose times are absolute. Whoever leaves
// copies out must know that those left out would be equal to those that are there: compute jitter,
// which differs from op to op, forbids it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/clock.h"
#include "sim/engine/program.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timeline.h"
#include "sim/schedule/alike.h"

namespace rehearse {

// Looks for a state that has been there before, each time that the first rank has begun with
// another copy. Refers to the program. Not thread-safe.
class RecurrenceSearch {
 public:
  // The most copies in a period. What is left out should be a multiple of all numbers up to it.
  static constexpr uint32_t kMostCopies = 4;
  static constexpr uint32_t kMultiple = 12;

  RecurrenceSearch(const Program& program, uint32_t left_out);

  // Whether it still looks. It ends with what it has found, or with the copies.
  bool IsLooking() const { return left_out_ > 0 && !found_ && copy_ + 1 < count_; }
  // When this task has ended, the state is to be told.
  uint32_t marker() const { return marker_; }
  // Which copy the marker is of.
  uint32_t copy() const { return copy_; }
  // A state at this time, or nothing if it cannot be compared. Returns how many copies ago it has
  // been there, or 0.
  uint32_t Compare(std::optional<std::vector<uint64_t>> state, Time now);
  // When it was there.
  Time TimeBefore(uint32_t copies) const { return kept_[copies].at; }
  void Accept(const Recurrence& found) { found_ = found; }
  // On to the next marker.
  void GoOn();

  const std::optional<Recurrence>& found() const { return found_; }

 private:
  struct Kept {
    std::optional<std::vector<uint64_t>> state;
    Time at;
  };

  uint32_t left_out_;
  uint32_t count_ = 0;
  uint32_t size_ = 0;
  uint32_t copy_ = 0;
  uint32_t marker_ = 0;
  std::vector<Kept> kept_;  // at the last markers, the latest first
  std::optional<Recurrence> found_;
};

// What a rank does in the whole step: so many ops, then `count` copies of `size` ops, then some
// more.
struct CopiedOps {
  uint32_t before = 0;
  uint32_t size = 0;
  uint32_t count = 0;
  uint32_t behind = 0;

  uint32_t all() const { return before + count * size + behind; }
};

// The spans of the whole step, worked out rank by rank from the timeline of the one with `left_out`
// copies fewer on each rank. Refers to its spans.
class SpansWithCopies : public SpansByRank {
 public:
  // `of_rank`: of all ranks that have spans.
  SpansWithCopies(const SpansByRank& few, std::vector<CopiedOps> of_rank,
                  const Recurrence& recurrence, uint32_t left_out);

  size_t count() const override { return few_.count(); }
  uint32_t RankAt(size_t i) const override { return few_.RankAt(i); }
  std::span<const Span> At(size_t i, std::vector<Span>* room) const override;

  // How many there are of all ranks.
  size_t SpanCount() const;
  // Adds those of the i-th rank.
  void Append(size_t i, std::vector<Span>* spans) const;

 private:
  const CopiedOps& OpsAt(size_t i) const { return of_rank_[few_.RankAt(i)]; }

  const SpansByRank& few_;
  const std::vector<CopiedOps> of_rank_;
  const Recurrence recurrence_;
  const uint32_t left_out_;
};

// When the whole step ends, from the same.
Time StepWithCopies(const Timeline& few, const Recurrence& recurrence, uint32_t left_out);
// Its timeline, with all spans.
Timeline WithCopies(const Timeline& few, std::vector<CopiedOps> of_rank,
                    const Recurrence& recurrence, uint32_t left_out);

// What is recorded is recorded of every copy, and states are compared only where steps of flows are
// jumped over.
Alike AlikeUnder(const SimulationOptions& options);

}  // namespace rehearse
