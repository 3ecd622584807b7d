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

void TaskSpans::Append(const SpanSpec& spec, std::vector<Span>* spans) const {
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
      spans->push_back(span);
      ++span.op;
      span.ready = span.begin = span.end;
    }
    span.end = end;
  }
  spans->push_back(span);
}

std::span<const Span> TaskSpans::At(size_t i, std::vector<Span>* room) const {
  room->clear();
  const auto specs = specs_.subspan(begin_[i], begin_[i + 1] - begin_[i]);
  for (const SpanSpec& spec : specs) Append(spec, room);
  return *room;
}

std::vector<Span> TaskSpans::All() const {
  size_t count = 0;
  for (const SpanSpec& spec : specs_) count += SizeOf(spec);
  std::vector<Span> spans;
  spans.reserve(count);
  for (const SpanSpec& spec : specs_) Append(spec, &spans);
  return spans;
}

Time TaskSpans::Step() const {
  Time step;
  for (const SpanSpec& spec : specs_) step = std::max(step, tasks_[spec.end.index()].end);
  return step;
}

}  // namespace rehearse
