#include "scenarios/playing/typical_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace typical_step_test {

// One device that is as slow as the slowest: a simulation of it adds about what the result says,
// and never more.
TEST(TypicalStepTest, IsAStepInWhichOneDeviceIsSlow) {
  const Result even = testing::Play().result;
  ASSERT_TRUE(even.typical);
  const Result uneven =
      testing::Play({fmt::format("simulator.perturbation={{\"stragglers\": [{{\"devices\": "
                                 "\"node0/gpu0\", \"compute_time\": \"{:.9f}x\"}}]}}",
                                 even.typical->slowest)})
          .result;
  EXPECT_FALSE(uneven.typical);  // the scenario says who is slow
  const double said = (even.typical->median - even.step).value();
  const double simulated = (uneven.step - even.step).value();
  EXPECT_LE(simulated, said * (1 + 1e-6));
  EXPECT_GE(simulated, 0.8 * said);
}

}  // namespace typical_step_test
}  // namespace rehearse
