// What ran is what was simulated: every rank begins its ops in the simulator's order.
#include "tests/support/execution_order.h"

#include <gtest/gtest.h>

#include "real/backends/rank_plan.h"
#include "scenarios/readers/scenario.h"
#include "scenarios/trials/random_step.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace execution_order_test {

// 4D, SBP, ATP, Megatron, FSDP, stages and experts on two ranks and four, with streams and without.
TEST(ExecutionOrderTest, EachRankBeginsItsOpsInTheSimulatorsOrder) {
  for (const uint32_t ranks : {2u, 4u}) {
    const auto steps = DrawSteps(3, ranks, ranks, StepUse::kJudging, Flops(1e6), Flops(1e8));
    ASSERT_EQ(steps.size(), 7u);
    for (const RandomStep& step : steps) {
      const Scenario scenario = ReadScenario(JsonDocument::FromText(step.scenario, step.name));
      EXPECT_EQ(OrderOfStreams(step.schedule, Simulated(step.schedule, scenario)),
                OrderOfStreams(step.schedule, Measured(step.schedule, StreamUse::kThreads)))
          << step.name;
      if (step.strategy == "stages") continue;  // neighbours wait for each other's messages
      const Schedule blocking = OnOneStream(step.schedule);
      EXPECT_EQ(OrderOfStreams(blocking, Simulated(blocking, scenario)),
                OrderOfStreams(blocking, Measured(step.schedule, StreamUse::kBlocking)))
          << step.name;
    }
  }
}

}  // namespace execution_order_test
}  // namespace rehearse
