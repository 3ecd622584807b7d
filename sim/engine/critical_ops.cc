#include "sim/engine/critical_ops.h"

#include <algorithm>

#include "sim/base/error.h"
#include "sim/engine/critical_path.h"

namespace rehearse {

namespace {

std::vector<PathSegment> OpsOn(const std::vector<TaskId>& chain, const Program& program,
                               const std::vector<TaskTime>& times, const OpsOfTasks& ops) {
  std::vector<PathSegment> path;
  for (auto task = chain.rbegin(); task != chain.rend(); ++task) {
    const TaskTime& time = times[task->index()];
    if (time.start == time.end) continue;
    const std::span<const uint32_t> spans = ops.Of(*task);
    CHECK(!spans.empty());
    const auto goes_on = [&](uint32_t span) {
      return !path.empty() && program.spans[span].rank == path.back().rank;
    };
    const auto found = std::find_if(spans.begin(), spans.end(), goes_on);
    const SpanSpec& span = program.spans[found == spans.end() ? spans.front() : *found];
    path.push_back({span.rank, span.op, time.start, time.end});
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

CriticalOps FindCriticalOps(const Program& program, const std::vector<TaskTime>& times,
                            const OpsOfTasks& ops) {
  const CriticalPath tasks = FindCriticalPath(program, times);
  CriticalOps result;
  result.path = OpsOn(tasks.chain, program, times, ops);
  for (const SpanSpec& span : program.spans) {
    result.slack.push_back(tasks.slack[span.end.index()]);
  }
  return result;
}

std::vector<PathSegment> FindPathOfOps(const Program& program, const std::vector<TaskTime>& times,
                                       const OpsOfTasks& ops) {
  return OpsOn(FindCriticalChain(program, times), program, times, ops);
}

}  // namespace rehearse
