#include "sim/engine/critical_path.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// The inverse of Program::successors; predecessors in the order of their ids.
struct Predecessors {
  std::vector<uint32_t> begin;
  std::vector<uint32_t> tasks;

  explicit Predecessors(const Program& program) : begin(program.tasks.size() + 1, 0) {
    for (size_t i = 0; i < program.tasks.size(); ++i) {
      begin[i + 1] = begin[i] + program.predecessor_count[i];
    }
    tasks.resize(program.successors.size());
    std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
    for (uint32_t task = 0; task < program.tasks.size(); ++task) {
      for (uint32_t i = program.successor_begin[task]; i < program.successor_begin[task + 1]; ++i) {
        tasks[next[program.successors[i].index()]++] = task;
      }
    }
  }
};

// `times` is not empty.
uint32_t LastOf(const std::vector<TaskTime>& times) {
  uint32_t last = 0;
  for (uint32_t task = 0; task < times.size(); ++task) {
    if (times[task].end >= times[last].end) last = task;
  }
  return last;
}

std::vector<TaskId> ChainTo(uint32_t last, const Predecessors& predecessors,
                            const std::vector<TaskTime>& times) {
  std::vector<TaskId> chain = {TaskId(last)};
  for (uint32_t task = last; predecessors.begin[task] < predecessors.begin[task + 1];) {
    const auto first = predecessors.tasks.begin() + predecessors.begin[task];
    const auto end = predecessors.tasks.begin() + predecessors.begin[task + 1];
    const uint32_t awaited = *std::max_element(
        first, end, [&](uint32_t a, uint32_t b) { return times[a].end < times[b].end; });
    CHECK(times[awaited].end == times[task].start);
    chain.push_back(TaskId(awaited));
    task = awaited;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// Dijkstra's algorithm from the end of the step back over edges and chains; none has a negative
// length.
std::vector<Time> SlackOf(const Program& program, const Predecessors& predecessors,
                          const std::vector<TaskTime>& times, Time end_of_step) {
  using Entry = std::pair<Time, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::vector<Time> slack;
  for (uint32_t task = 0; task < times.size(); ++task) {
    slack.push_back(end_of_step - times[task].end);
    queue.emplace(slack.back(), task);
  }
  const auto shorten = [&](uint32_t task, Time to) {
    if (to >= slack[task]) return;
    slack[task] = to;
    queue.emplace(to, task);
  };
  while (!queue.empty()) {
    const auto [spare, task] = queue.top();
    queue.pop();
    if (spare > slack[task]) continue;
    for (uint32_t i = predecessors.begin[task]; i < predecessors.begin[task + 1]; ++i) {
      const uint32_t before = predecessors.tasks[i];
      shorten(before, spare + times[task].start - times[before].end);
    }
    if (program.tasks[task].kind != TaskKind::kFlow) continue;
    const Flow& flow = program.flows[program.tasks[task].payload];
    if (flow.upstream.IsSet() && flow.steps > 1) shorten(flow.upstream.index(), spare);
  }
  return slack;
}

}  // namespace

CriticalPath FindCriticalPath(const Program& program, const std::vector<TaskTime>& times) {
  CHECK_EQ(times.size(), program.tasks.size());
  CriticalPath path;
  if (times.empty()) return path;
  const Predecessors predecessors(program);
  const uint32_t last = LastOf(times);
  path.chain = ChainTo(last, predecessors, times);
  path.slack = SlackOf(program, predecessors, times, times[last].end);
  return path;
}

std::vector<TaskId> FindCriticalChain(const Program& program, const std::vector<TaskTime>& times) {
  CHECK_EQ(times.size(), program.tasks.size());
  if (times.empty()) return {};
  return ChainTo(LastOf(times), Predecessors(program), times);
}

}  // namespace rehearse
