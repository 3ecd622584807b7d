#include "sim/engine/task_spans.h"

#include <algorithm>
#include <utility>

namespace rehearse {

TaskSpans::TaskSpans(const Program& program, std::vector<TaskState> tasks,
                     std::vector<Time> kept_ends)
    : specs_(program.spans),
      program_tasks_(program.tasks),
      series_(program.series),
      delays_(program.delays),
      tasks_(std::move(tasks)),
      kept_ends_(std::move(kept_ends)) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (i == 0 || specs_[i].rank != specs_[i - 1].rank) begin_.push_back(i);
  }
  begin_.push_back(specs_.size());
}

uint32_t TaskSpans::SizeOf(const SpanSpec& spec) const {
  const Task& task = program_tasks_[spec.begin.index()];
  return task.kind == TaskKind::kSeries ? series_[task.payload].size() : 1;
}

size_t TaskSpans::SizeOf(std::span<const SpanSpec> specs) const {
  size_t count = 0;
  for (const SpanSpec& spec : specs) count += SizeOf(spec);
  return count;
}

Span* TaskSpans::Write(const SpanSpec& spec, Span* to) const {
  const TaskState& state = tasks_[spec.begin.index()];
  const bool ready_at_begin = !spec.ready.IsSet() || spec.ready == spec.begin;
  Span span{.rank = spec.rank,
            .op = spec.op,
            .ready = ready_at_begin ? state.start : tasks_[spec.ready.index()].end,
            .begin = state.start,
            .end = tasks_[spec.end.index()].end};
  const Task& task = program_tasks_[spec.begin.index()];
  if (task.kind == TaskKind::kSeries) {
    const Series& series = series_[task.payload];
    const Time end = span.end;
    const bool is_kept = state.kept_ends != Id<TaskTag>::kNone;
    for (uint32_t i = 0; i + 1 < series.size(); ++i) {
      span.end = is_kept ? kept_ends_[state.kept_ends + i] : span.begin + delays_[series.first + i];
      *to++ = span;
      ++span.op;
      span.ready = span.begin = span.end;
    }
    span.end = end;
  }
  *to++ = span;
  return to;
}

std::span<const Span> TaskSpans::At(size_t i, std::vector<Span>* room) const {
  const auto specs = specs_.subspan(begin_[i], begin_[i + 1] - begin_[i]);
  room->resize(SizeOf(specs));
  Span* to = room->data();
  for (const SpanSpec& spec : specs) to = Write(spec, to);
  return *room;
}

std::vector<Span> TaskSpans::All() const {
  std::vector<Span> spans(SizeOf(specs_));
  Span* to = spans.data();
  for (const SpanSpec& spec : specs_) to = Write(spec, to);
  return spans;
}

Time TaskSpans::Step() const {
  Time step;
  for (const SpanSpec& spec : specs_) step = std::max(step, tasks_[spec.end.index()].end);
  return step;
}

}  // namespace rehearse
