#include "sim/critical_ops.h"

#include <algorithm>

#include "sim/critical_path.h"
#include "sim/error.h"

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
  // Follow first successors to the next end, then tell all on the way.
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

CriticalOps FindCriticalOps(const Program& program, const std::vector<TaskTime>& times,
                            const OpsOfTasks& ops) {
  const CriticalPath tasks = FindCriticalPath(program, times);
  CriticalOps result;
  for (auto task = tasks.chain.rbegin(); task != tasks.chain.rend(); ++task) {
    const TaskTime& time = times[task->index()];
    if (time.start == time.end) continue;
    const std::span<const uint32_t> spans = ops.Of(*task);
    CHECK(!spans.empty());
    const auto goes_on = [&](uint32_t span) {
      return !result.path.empty() && program.spans[span].rank == result.path.back().rank;
    };
    const auto found = std::find_if(spans.begin(), spans.end(), goes_on);
    const SpanSpec& span = program.spans[found == spans.end() ? spans.front() : *found];
    result.path.push_back({span.rank, span.op, time.start, time.end});
  }
  std::reverse(result.path.begin(), result.path.end());
  for (const SpanSpec& span : program.spans) {
    result.slack.push_back(tasks.slack[span.end.index()]);
  }
  return result;
}

}  // namespace rehearse
