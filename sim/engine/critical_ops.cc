#include "sim/engine/critical_ops.h"

#include <algorithm>

#include "sim/base/error.h"
#include "sim/engine/critical_path.h"

namespace rehearse {

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
