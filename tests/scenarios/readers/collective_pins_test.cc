#include "scenarios/readers/collective_pins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/json_document.h"
#include "tests/support/places.h"

namespace rehearse {
namespace collective_pins_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The shipped scenario on four Perlmutter nodes, with these keys in its "simulator".
Scenario With(const std::string& simulator) {
  JsonDocument document =
      JsonDocument::FromFile(SourceDir() + "/scenarios/axonn-gpt20b-perlmutter.json");
  document.Set("simulator=" + simulator);
  return ReadScenario(document);
}

std::string MistakeOf(const std::string& simulator) {
  try {
    Rehearse(With(simulator));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Algorithm and protocol of every collective of the first role on this axis, each once.
std::vector<std::string> PinsOn(const std::string& simulator, const std::string& axis) {
  const Schedule schedule = Rehearse(With(simulator)).schedule;
  std::vector<std::string> words;
  for (const Op& op : schedule.roles.front().ops) {
    const auto* const collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr ||
        schedule.communicators[collective->communicator.index()].name() != axis)
      continue;
    const std::string word = std::string(Name(collective->kind)) + " " +
                             Name(collective->algorithm) + " " + Name(collective->protocol);
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  std::sort(words.begin(), words.end());
  return words;
}

using Words = std::vector<std::string>;

TEST(CollectivePinsTest, NothingPinnedIsWhatTheLibraryChooses) {
  EXPECT_EQ(PinsOn("{}", "row"), Words{"all-reduce auto auto"});
  const Result result = Rehearse(With("{}")).result;
  EXPECT_FALSE(result.chosen.empty());
}

// As NCCL would pin them, or as a schedule says.
TEST(CollectivePinsTest, WithoutAProtocolThereAreRingsOnBareLinks) {
  const Result bare = Rehearse(With(R"({"protocol": "none"})")).result;
  EXPECT_TRUE(bare.chosen.empty());
  EXPECT_EQ(Rehearse(With(R"({"algorithm": "ring", "protocol": "none"})")).result.timeline_hash,
            bare.timeline_hash);
}

TEST(CollectivePinsTest, OneGivenMakesTheOtherAuto) {
  EXPECT_EQ(PinsOn(R"({"algorithm": "Ring"})", "row"), Words{"all-reduce ring auto"});
  EXPECT_EQ(PinsOn(R"({"protocol": "simple"})", "row"), Words{"all-reduce auto simple"});
}

TEST(CollectivePinsTest, TheLastEntryThatFitsCounts) {
  const std::string simulator = R"({"algorithm": "auto",
      "collectives": [{"kind": "all-reduce", "algorithm": "tree", "protocol": "auto"},
                      {"axis": "row", "kind": "all-reduce", "algorithm": "ring", "protocol": "none"}]})";
  EXPECT_EQ(PinsOn(simulator, "row"), Words{"all-reduce ring none"});
  EXPECT_EQ(PinsOn(simulator, "column"), Words{"all-reduce tree auto"});
  // Weights are gathered and scattered; gradients of biases and norms, which are not
  // sharded, summed.
  EXPECT_EQ(PinsOn(simulator, "depth"),
            (Words{"all-gather auto auto", "all-reduce tree auto", "reduce-scatter auto auto"}));
}

TEST(CollectivePinsTest, MistakesSayWhere) {
  EXPECT_THAT(MistakeOf(R"({"algorithm": "rin"})"), HasSubstr("/simulator/algorithm"));
  EXPECT_THAT(MistakeOf(R"({"protocol": "ll12"})"), HasSubstr("/simulator/protocol"));
  EXPECT_THAT(MistakeOf(R"({"collectives": [{}]})"), HasSubstr("/simulator/collectives/0"));
  EXPECT_THAT(MistakeOf(R"({"communication_multiprocessors": 4000})"),
              AllOf(HasSubstr("/simulator/communication_multiprocessors"), HasSubstr("4000"),
                    HasSubstr("expected fewer than")));
  EXPECT_THAT(MistakeOf(R"({"communication_multiprocessors": 8, "slowdown": {"gemm": 0.1}})"),
              HasSubstr("expected one of them"));
  EXPECT_THAT(MistakeOf(R"({"collectives": [{"algorithm": "ring"}]})"),
              HasSubstr("selects nothing"));
  EXPECT_THAT(MistakeOf(R"({"collectives": [{"axis": "rwo", "algorithm": "ring"}]})"),
              HasSubstr("row"));
  EXPECT_THAT(MistakeOf(R"({"algorithm": "tree"})"), HasSubstr("cannot do all-gather"));
  EXPECT_THAT(MistakeOf(R"({"algoritm": "tree"})"), HasSubstr("algorithm"));
}

}  // namespace collective_pins_test
}  // namespace rehearse
