// The spans of a program that has been played, made of when its tasks began and ended, rank by
// rank: a span takes as much memory as a task and all its edges, and there may be several for each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/clock.h"
#include "sim/engine/program.h"
#include "sim/engine/timeline.h"

namespace rehearse {

// Kept together, because an event touches all of it.
struct TaskState {
  static constexpr Time kNotDone = Time(-1);

  Time start;
  Time end = kNotDone;
  uint32_t waiting_for = 0;                 // predecessors that have not ended
  uint32_t kept_ends = Id<TaskTag>::kNone;  // of a series: from there on among the kept ends
};

// Refers to the program's arrays, which must stay where they are; the program itself may move.
class TaskSpans : public SpansByRank {
 public:
  TaskSpans(const Program& program, std::vector<TaskState> tasks, std::vector<Time> kept_ends);

  size_t count() const override { return begin_.size() - 1; }
  uint32_t RankAt(size_t i) const override { return specs_[begin_[i]].rank; }
  std::span<const Span> At(size_t i, std::vector<Span>* room) const override;

  // All of them.
  std::vector<Span> All() const;
  // The end of the last one.
  Time Step() const;

 private:
  uint32_t SizeOf(const SpanSpec& spec) const;
  size_t SizeOf(std::span<const SpanSpec> specs) const;
  // Returns where the next one's go.
  Span* Write(const SpanSpec& spec, Span* to) const;

  std::span<const SpanSpec> specs_;
  std::span<const Task> program_tasks_;
  std::span<const Series> series_;
  std::span<const Time> delays_;
  const std::vector<TaskState> tasks_;
  const std::vector<Time> kept_ends_;
  std::vector<size_t> begin_;  // of each rank's specs, and the end of the last's
};

}  // namespace rehearse
