// What `rehearse init` writes can be played.
#include "scenarios/playing/first_scenario.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/prepare.h"
#include "scenarios/readers/scenario.h"
#include "scenarios/readers/strategy_reader.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace first_scenario_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Job> Played(const FirstScenarioRequest& request) {
  return Prepare(ReadScenario(JsonDocument::FromText(FirstScenario(request), "first.json")));
}

std::string Complaint(const FirstScenarioRequest& request) {
  try {
    FirstScenario(request);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(FirstScenarioTest, EveryStrategyHasOne) {
  for (const StrategyKind& kind : StrategyKinds())
    EXPECT_EQ(Played({"dgx-a100:nodes=2", "gpt-350m", kind.name}).size(), 1u) << kind.name;
}

TEST(FirstScenarioTest, ModelsOfImagesHaveOne) {
  for (const char* model : {"vgg-11", "u-net-50m", "autoddl-mlp"})
    EXPECT_EQ(Played({"dgx-a100", model, "data-parallel"}).size(), 1u) << model;
}

// Five axes deal 256 ranks in 495 ways; with those that keep more than four copies the model does
// not fit.
TEST(FirstScenarioTest, AMeshIsFoundAmongManyThatDoNotFit) {
  EXPECT_EQ(Played({"dgx-h100:nodes=32", "gpt-175b", "combined"}).size(), 1u);
}

TEST(FirstScenarioTest, WhereNoMeshFitsItSaysWhy) {
  EXPECT_THAT(
      Complaint({"dgx-a100", "gpt-20b", "data-parallel"}),
      AllOf(HasSubstr("no mesh of the 8 ranks of dgx-a100 works for gpt-20b with data-parallel"),
            HasSubstr("another --strategy"), HasSubstr("as in --cluster dgx-a100:nodes=2."),
            HasSubstr("What comes nearest is: data 8: out of memory: a rank needs"),
            Not(HasSubstr("--allow-oom")), Not(HasSubstr("/strategy:"))));
  // Tried later: 64 tensor ranks, which 8 groups of heads cannot be split into.
  EXPECT_THAT(Complaint({"dgx-h100:nodes=8", "mixtral-8x7b", "megatron"}),
              HasSubstr("What comes nearest is: tensor 8 x data 8: out of memory"));
}

TEST(FirstScenarioTest, NamesThatAreNotKnownAreRefused) {
  EXPECT_THAT(Complaint({"dgx-a100", "gtp-5b", "4d"}), HasSubstr("did you mean \"gpt-5b\"?"));
  EXPECT_THAT(Complaint({"dgx-a100", "gpt-5b", "fspd"}), HasSubstr("did you mean \"fsdp\"?"));
  EXPECT_THAT(Complaint({"dgx-a10", "gpt-5b", "fsdp"}), HasSubstr("did you mean \"dgx-a100\"?"));
}

}  // namespace first_scenario_test
}  // namespace rehearse
