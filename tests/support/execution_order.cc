#include "tests/support/execution_order.h"

#include <algorithm>
#include <utility>

#include "collectives/lowering/lower.h"
#include "real/transports/transport_threads.h"
#include "sim/engine/simulate.h"

namespace rehearse {

std::vector<std::vector<uint32_t>> OrderOfStreams(const Schedule& schedule,
                                                  const Timeline& timeline) {
  std::vector<std::vector<uint32_t>> order;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const Role& role = schedule.roles[schedule.role_of_rank[rank]];
    const auto [first, last] = timeline.SpansOf(rank);
    std::vector<Span> spans(timeline.spans.begin() + first, timeline.spans.begin() + last);
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.ready < b.ready; });
    const size_t begin = order.size();
    order.resize(begin + role.streams.size());
    for (const Span& span : spans)
      order[begin + role.ops[span.op].stream.index()].push_back(span.op);
  }
  return order;
}

Timeline Simulated(const Schedule& schedule, const Scenario& scenario) {
  Router router(*scenario.cluster);
  LowerOptions options = scenario.lowering;
  options.fold = false;
  return Simulate(Lower(schedule, router, options).program, schedule.ranks()).timeline;
}

Execution OnThreads(const Schedule& schedule, StreamUse streams) {
  ExecutionOptions options;
  options.warm_ups = 0;
  options.repeats = 1;
  options.streams = streams;
  Execution execution;
  RunAsThreads(schedule.ranks(), [&](Transport& transport) {
    Execution own = Execute(schedule, transport, options);
    if (transport.rank() == 0) execution = std::move(own);
  });
  return execution;
}

Timeline Measured(const Schedule& schedule, StreamUse streams) {
  return OnThreads(schedule, streams).repeats[0];
}

}  // namespace rehearse
