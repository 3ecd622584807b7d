// Headroom of a scenario, and conditions on memory of a search.
#include "scenarios/readers/memory_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/search_options.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace memory_options_test {

using rehearse::testing::ReadSmall;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MistakeOf(const std::vector<std::string>& changes) {
  try {
    Rehearse(ReadSmall(changes));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(MemoryOptionsTest, HeadroomIsAShareOfTheDevice) {
  EXPECT_EQ(ReadSmall({R"(memory={"headroom": "5%"})"}).memory.headroom_share, 0.05);
  EXPECT_EQ(ReadSmall({}).memory.headroom_share, 0);
  for (const char* headroom : {"101%", "100%", "-1%", "5", "5GiB", "nan%"}) {
    EXPECT_THAT(MistakeOf({std::string(R"(memory={"headroom": ")") + headroom + "\"}"}),
                AllOf(HasSubstr("/memory/headroom"), HasSubstr("less than \"100%\"")))
        << headroom;
  }
}

TEST(MemoryOptionsTest, AStepMustLeaveTheHeadroom) {
  EXPECT_EQ(MistakeOf({R"(memory={"headroom": "5%"})"}), "none");
  EXPECT_THAT(MistakeOf({R"(memory={"headroom": "99.99%"})"}),
              AllOf(HasSubstr("out of memory: a rank needs"), HasSubstr("must stay free")));
}

SpaceConstraint Constraint(const std::string& json) {
  const JsonDocument document = JsonDocument::FromText(json, "search.json");
  return ConstraintFields().Read(document.Root());
}

std::string MistakeIn(const std::string& json) {
  try {
    Constraint(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(MemoryOptionsTest, ASearchBoundsMemoryByShareOrSize) {
  const SpaceConstraint share = Constraint(R"({"memory": {"at_most": "90%"}})");
  EXPECT_TRUE(share.memory->Allows(Bytes(90), Bytes(100)));
  EXPECT_FALSE(share.memory->Allows(Bytes(91), Bytes(100)));
  EXPECT_EQ(share.Text(), "memory is at most 90%");
  const SpaceConstraint size = Constraint(R"({"memory": {"at_most": "70GiB"}})");
  EXPECT_FALSE(size.memory->Allows(Bytes(71.0 * 1024 * 1024 * 1024), Bytes(1e12)));
}

TEST(MemoryOptionsTest, OtherConditionsAreRefused) {
  EXPECT_THAT(MistakeIn(R"({"memory": {"at_most": "120%"}})"), HasSubstr("at most \"100%\""));
  EXPECT_THAT(MistakeIn(R"({"memory": {"at_most": "much"}})"), HasSubstr("such as \"90%\""));
  EXPECT_THAT(MistakeIn(R"({"latency": {"at_most": "90%"}})"), HasSubstr("latency"));
  EXPECT_THAT(MistakeIn(R"({"memory": {"at_most": "90%"}, "product": ["a"], "at_most": 2})"),
              HasSubstr("a condition of its own"));
  EXPECT_THAT(MistakeIn(R"({"at_most": 2})"), HasSubstr("expected \"product\" or \"memory\""));
}

}  // namespace memory_options_test
}  // namespace rehearse
