#include "sim/engine/ops_of_tasks.h"

#include <utility>

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
  // The first successor that leads to an end counts: in a folded step a rank's part of a collective
  // may end in a task that no op waits for, since another rank like it stands for it.
  enum : uint8_t { kNew, kOnTheWay, kKnown };
  std::vector<uint8_t> state(end_.size(), kNew);
  std::vector<std::pair<uint32_t, uint32_t>> way;  // tasks, and the successor that is looked at
  for (uint32_t task = 0; task < end_.size(); ++task) {
    if (state[task] == kNew) way.emplace_back(task, program.successor_begin[task]);
    while (!way.empty()) {
      auto& [at, next_successor] = way.back();
      state[at] = kOnTheWay;
      if (end_[at] == Program::kNone && next_successor < program.successor_begin[at + 1]) {
        const uint32_t to = program.successors[next_successor].index();
        if (state[to] == kNew && end_[to] == Program::kNone) {
          way.emplace_back(to, program.successor_begin[to]);
          continue;
        }
        end_[at] = end_[to];
        ++next_successor;
        continue;
      }
      state[at] = kKnown;
      way.pop_back();
    }
  }
}

std::span<const uint32_t> OpsOfTasks::Of(TaskId task) const {
  const uint32_t end = end_[task.index()];
  if (end == Program::kNone) return {};
  return {spans_.data() + first_span_[end], spans_.data() + first_span_[end + 1]};
}

}  // namespace rehearse
