#include "sim/engine/ops_of_tasks.h"

namespace rehearse {

OpsOfTasks::OpsOfTasks(const Program& program)
    : end_(program.tasks.size(), Program::kNone), first_span_(program.tasks.size() + 1, 0) {
  for (const SpanSpec& span : program.spans) ++first_span_[span.end.index() + 1];
  for (size_t i = 1; i < first_span_.size(); ++i) first_span_[i] += first_span_[i - 1];
  spans_.resize(program.spans.size());
  std::vector<uint32_t> next(first_span_.begin(), first_span_.end() - 1);
  for (uint32_t i = 0; i < program.spans.size(); ++i) {
    const uint32_t end = program.spans[i].end.index();
    spans_[next[end]++] = i;
    end_[end] = end;
  }
  // Follow first successors to the next end, then note it for all tasks on the way.
  std::vector<uint32_t> way;
  for (uint32_t task = 0; task < end_.size(); ++task) {
    uint32_t at = task;
    while (end_[at] == Program::kNone &&
           program.successor_begin[at] < program.successor_begin[at + 1]) {
      way.push_back(at);
      at = program.successors[program.successor_begin[at]].index();
    }
    for (const uint32_t before : way) end_[before] = end_[at];
    way.clear();
  }
}

std::span<const uint32_t> OpsOfTasks::Of(TaskId task) const {
  const uint32_t end = end_[task.index()];
  if (end == Program::kNone) return {};
  return {spans_.data() + first_span_[end], spans_.data() + first_span_[end + 1]};
}

}  // namespace rehearse
