// What ran is what was simulated: every rank begins its ops in the order in which the simulator
// lets it begin them.
#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "collectives/lowering/lower.h"
#include "real/backends/rank_plan.h"
#include "real/execution/execute.h"
#include "real/transports/transport_threads.h"
#include "scenarios/readers/scenario.h"
#include "scenarios/trials/random_step.h"
#include "sim/base/json_document.h"
#include "sim/engine/simulate.h"

namespace rehearse {
namespace {

// The ops of each stream of each rank, as they began; those of one instant in list order.
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

Timeline Measured(const Schedule& schedule, StreamUse streams) {
  ExecutionOptions options;
  options.warm_ups = 0;
  options.repeats = 1;
  options.streams = streams;
  Execution execution;
  RunAsThreads(schedule.ranks(), [&](Transport& transport) {
    Execution own = Execute(schedule, transport, options);
    if (transport.rank() == 0) execution = std::move(own);
  });
  return execution.repeats[0];
}

// 4D, SBP, ATP, Megatron and FSDP on two ranks and four, with streams and without.
TEST(ExecutionOrderTest, EachRankBeginsItsOpsInTheSimulatorsOrder) {
  for (const uint32_t ranks : {2u, 4u}) {
    const auto steps = DrawSteps(3, ranks, ranks, StepUse::kJudging, Flops(1e6), Flops(1e8));
    ASSERT_EQ(steps.size(), 5u);
    for (const RandomStep& step : steps) {
      const Scenario scenario = ReadScenario(JsonDocument::FromText(step.scenario, step.name));
      EXPECT_EQ(OrderOfStreams(step.schedule, Simulated(step.schedule, scenario)),
                OrderOfStreams(step.schedule, Measured(step.schedule, StreamUse::kThreads)))
          << step.name;
      const Schedule blocking = OnOneStream(step.schedule);
      EXPECT_EQ(OrderOfStreams(blocking, Simulated(blocking, scenario)),
                OrderOfStreams(blocking, Measured(step.schedule, StreamUse::kBlocking)))
          << step.name;
    }
  }
}

}  // namespace
}  // namespace rehearse
