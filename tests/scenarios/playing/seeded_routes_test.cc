// Steps whose routes a seed decides are shown as a range with its median.
#include "scenarios/playing/seeded_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/explaining/explanation.h"
#include "sim/base/json_document.h"
#include "sim/report/result.h"

namespace rehearse {
namespace seeded_routes_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A small MLP, data parallel on 16 machines of 4 GPUs with a NIC each. A leaf has the NICs of one
// machine: four rings from each to the next share its four cables upwards.
std::string ScenarioText(const std::string& simulator) {
  return R"({"name": "hashed",
  "cluster": {"name": "small", "nodes": 16,
    "node": {"kind": "nvswitch", "devices": 4, "device": "a100-40g",
      "nvlink": {"bandwidth": "300GBps", "latency": "2us"},
      "pcie": {"bandwidth": "32GBps", "latency": "1us"}, "sockets": 1, "pcie_switches": 4,
      "nics": 4, "cable": {"bandwidth": "25GBps", "latency": "1us"}},
    "fabric": {"kind": "fat-tree", "radix": 8, "cable": {"bandwidth": "25GBps", "latency": "1us"}}},
  "model": {"kind": "mlp", "sizes": [8192, 8192, 8192, 8192]},
  "training": {"batch": 1024, "recomputation": "none"},
  "strategy": {"kind": "data-parallel", "data": 64, "overlap_gradients": true},
  "simulator": )" +
         simulator + "}";
}

Scenario ScenarioWith(const std::string& simulator) {
  return ReadScenario(JsonDocument::FromText(ScenarioText(simulator), "a.json"));
}

std::string ErrorWith(const std::string& simulator) {
  try {
    ScenarioWith(simulator);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SeededRoutesTest, TheStepIsThatOfTheMedianSeedAndTheRangeStandsBesideIt) {
  const Result result = Rehearse(ScenarioWith(R"({"routing": "ecmp"})")).result;
  ASSERT_TRUE(result.routes.has_value());
  const RouteSpread& routes = *result.routes;
  ASSERT_EQ(routes.steps.size(), 8u);
  for (size_t i = 1; i < 8; ++i) EXPECT_LE(routes.steps[i - 1].step, routes.steps[i].step);
  EXPECT_EQ(result.step, routes.steps[3].step);
  EXPECT_EQ(routes.seed, routes.steps[3].seed);
  EXPECT_LT(routes.steps.front().step, routes.steps.back().step);
  EXPECT_LE(routes.sprayed, routes.steps.front().step);
  EXPECT_GT(routes.worst_share, 1);
  const std::vector<std::string> lines = RouteLines(result);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("ecmp with 1 queue pair"), HasSubstr("over 8 seeds")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("collisions cost"), HasSubstr(routes.worst_link)));
}

TEST(SeededRoutesTest, ASeedThatIsGivenIsTheOnlyOne) {
  const Result all = Rehearse(ScenarioWith(R"({"routing": "ecmp"})")).result;
  const uint64_t seed = all.routes->steps.back().seed;
  const Result one =
      Rehearse(ScenarioWith(R"({"routing": "ecmp", "routing_seed": )" + std::to_string(seed) + "}"))
          .result;
  ASSERT_EQ(one.routes->steps.size(), 1u);
  EXPECT_EQ(one.step, all.routes->steps.back().step);
  EXPECT_EQ(one.routes->sprayed, all.routes->sprayed);
}

TEST(SeededRoutesTest, SprayedStepsHaveNoSeed) {
  const Result sprayed = Rehearse(ScenarioWith("{}")).result;
  EXPECT_FALSE(sprayed.routes.has_value());
  EXPECT_TRUE(RouteLines(sprayed).empty());
  const Result hashed = Rehearse(ScenarioWith(R"({"routing": "ecmp"})")).result;
  EXPECT_EQ(sprayed.step, hashed.routes->sprayed);
}

TEST(SeededRoutesTest, MoreQueuePairsComeNearerToSpray) {
  const auto median = [](const char* queue_pairs) {
    return Rehearse(ScenarioWith(std::string(R"({"routing": "ecmp", "queue_pairs": )") +
                                 queue_pairs + "}"))
        .result;
  };
  const Result one = median("1");
  const Result many = median("64");
  EXPECT_LT(many.step, one.step);
  EXPECT_GE(many.step, many.routes->sprayed);
}

TEST(SeededRoutesTest, ExplainsTheMedianStepToo) {
  const Scenario scenario = ScenarioWith(R"({"routing": "ecmp"})");
  const Explanation explanation = Explain(scenario);
  EXPECT_EQ(explanation.result.step, Rehearse(scenario).result.step);
  EXPECT_THAT(ToText(explanation, 5, false), HasSubstr("collisions cost"));
}

TEST(SeededRoutesTest, ARoutingThatTheFabricCannotHaveIsNamedWithThoseThatItCan) {
  EXPECT_THAT(ErrorWith(R"({"routing": "valiant"})"),
              AllOf(HasSubstr("/simulator/routing"), HasSubstr("a fat tree cannot have"),
                    HasSubstr("spray, flowlet, ecmp")));
  EXPECT_THAT(ErrorWith(R"({"routing": "ecmp", "queue_pairs": 0})"),
              AllOf(HasSubstr("/simulator/queue_pairs"), HasSubstr("0"), HasSubstr("1 to 128")));
  EXPECT_THAT(ErrorWith(R"({"queue_pairs": 4})"),
              AllOf(HasSubstr("/simulator/queue_pairs"), HasSubstr("\"ecmp\"")));
}

}  // namespace seeded_routes_test
}  // namespace rehearse
