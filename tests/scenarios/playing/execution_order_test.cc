// What ran is what was simulated: every rank begins its ops in the simulator's order.
#include "tests/support/execution_order.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "real/backends/rank_plan.h"
#include "real/execution/check.h"
#include "scenarios/readers/scenario.h"
#include "scenarios/trials/random_step.h"
#include "sim/base/json_document.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace execution_order_test {

// 4D, SBP, ATP, Megatron, FSDP, stages, experts and pairs on two ranks and four, with streams and
// without.
TEST(ExecutionOrderTest, EachRankBeginsItsOpsInTheSimulatorsOrder) {
  for (const uint32_t ranks : {2u, 4u}) {
    const auto steps = DrawSteps(3, ranks, ranks, StepUse::kJudging, Flops(1e6), Flops(4e8));
    ASSERT_EQ(steps.size(), 8u);
    for (const RandomStep& step : steps) {
      const Scenario scenario = ReadScenario(JsonDocument::FromText(step.scenario, step.name));
      EXPECT_EQ(OrderOfStreams(step.schedule, Simulated(step.schedule, scenario)),
                OrderOfStreams(step.schedule, Measured(step.schedule, StreamUse::kThreads)))
          << step.name;
      const bool has_stages = step.strategy == "stages" || step.strategy == "pairs";
      if (has_stages) continue;  // neighbours wait for each other's messages
      const Schedule blocking = OnOneStream(step.schedule);
      EXPECT_EQ(OrderOfStreams(blocking, Simulated(blocking, scenario)),
                OrderOfStreams(blocking, Measured(step.schedule, StreamUse::kBlocking)))
          << step.name;
    }
  }
}

// Random pairs, as `trust` draws them: nobody waits for ever, no buffer is read before it is
// written, and the numbers are the serial step's.
TEST(ExecutionOrderTest, RandomPairsComputeWhatOneRankDoes) {
  constexpr uint64_t kSeed = 5;
  std::set<std::string> kinds;
  for (const uint32_t ranks : {2u, 4u}) {
    for (uint32_t network = 0; network < 6; ++network) {
      for (const RandomStep& step :
           DrawSteps(11, network, ranks, StepUse::kJudging, Flops(1e6), Flops(4e8))) {
        if (step.strategy != "pairs") continue;
        SCOPED_TRACE(step.scenario);
        CheckSchedule(step.schedule);
        CheckBuffers(step.schedule);
        const Scenario scenario = ReadScenario(JsonDocument::FromText(step.scenario, step.name));
        EXPECT_EQ(OrderOfStreams(step.schedule, Simulated(step.schedule, scenario)),
                  OrderOfStreams(step.schedule, Measured(step.schedule, StreamUse::kThreads)));
        const auto& workload = std::get<Workload>(scenario.jobs.front().work);
        const Schedule serial = PlanSerialStep(*workload.network, workload.training, 1);
        const CheckReport report =
            ExecuteAndCompare(ComputeSerially(serial, kSeed), step.schedule, kSeed);
        EXPECT_TRUE(report.Passes(1e-10)) << DescribeDifferences(report);
        kinds.insert(step.name.substr(0, step.name.find(" h")));
      }
    }
  }
  EXPECT_GE(kinds.size(), 7u);  // stages, order, table
}

}  // namespace execution_order_test
}  // namespace rehearse
