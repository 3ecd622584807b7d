// Scenarios whose step takes longer than the clock can count are the user's mistake, reported in
// one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/sweeping/sweep.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/scenarios/small_study.h"

namespace rehearse {
namespace time_range_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kTooLong = "the step exceeds 106 days, the most that the clock can hold";
constexpr const char* kSlowNics = R"(edits=[{"links": "node*/nic*", "bandwidth": "1e-5Bps"}])";

// The depth's shards, some 100 KiB, at 1e-5 B/s times 0.79: three hundred years.
TEST(ScenarioTimeRangeTest, ASlowLinkIsNamedWithTheOpThatWaitsForIt) {
  EXPECT_THAT(testing::ErrorOf({kSlowNics}),
              AllOf(StartsWith("small.json: "), HasSubstr(kTooLong),
                    HasSubstr("is not done by then: "), HasSubstr("/nic"), HasSubstr(" B/s")));
}

TEST(ScenarioTimeRangeTest, EveryFidelitySaysSo) {
  for (const char* fidelity : {"formula", "fluid", "step"}) {
    EXPECT_THAT(testing::ErrorOf({kSlowNics, std::string("simulator.fidelity=") + fidelity}),
                HasSubstr(kTooLong))
        << fidelity;
  }
}

// 1e12 times a kernel of some microseconds or more.
TEST(ScenarioTimeRangeTest, AStragglersKernelIsNamed) {
  EXPECT_THAT(testing::ErrorOf({R"(simulator.perturbation={"stragglers":
                                   [{"devices": "node0/gpu1", "compute_time": "1e12x"}]})"}),
              AllOf(HasSubstr(kTooLong), HasSubstr("of rank 1 (")));
}

TEST(ScenarioTimeRangeTest, TimesAndFactorsBeyondAllUseAreRefusedWhereTheyStand) {
  EXPECT_THAT(
      testing::ErrorOf({R"(simulator.perturbation={"events":
                  [{"at": "9300000s", "links": "node1/nic0", "fail": true}]})"}),
      HasSubstr("/simulator/perturbation/events/0/at: found \"9300000s\", expected a time of "
                "at most 106 days"));
  EXPECT_THAT(testing::ErrorOf({R"(simulator.perturbation={"events":
                  [{"at": "1ms", "links": "node1/nic0", "bandwidth": "1e300x"}]})"}),
              HasSubstr("/simulator/perturbation/events/0/bandwidth: would give link"));
  EXPECT_THAT(testing::ErrorOf({R"(simulator.perturbation={"stragglers":
                  [{"devices": "node0/gpu1", "compute_time": "1e300x"}]})"}),
              HasSubstr("/simulator/perturbation/stragglers/0/compute_time: "));
  EXPECT_THAT(testing::ErrorOf({R"(edits=[{"links": "**", "bandwidth": "1e30GBps"}])"}),
              HasSubstr("/edits/0/bandwidth: found \"1e30GBps\""));
}

// The point fails, like one that does not fit; the others have their results.
TEST(ScenarioTimeRangeTest, OnePointOfASweepFailsAndNotTheSweep) {
  const Study study = SmallStudy(
      R"("grid": [{"path": "edits", "values": [[],
                   [{"links": "node*/nic*", "bandwidth": "1e-5Bps"}]]}])");
  const Sweep sweep = PlayStudy(study, {});
  ASSERT_EQ(sweep.points.size(), 2u);
  EXPECT_EQ(sweep.points[0].error, "");
  EXPECT_GT(sweep.points[0].result["step_seconds"].get<double>(), 0);
  EXPECT_THAT(sweep.points[1].error, HasSubstr(kTooLong));
}

}  // namespace time_range_test
}  // namespace rehearse
