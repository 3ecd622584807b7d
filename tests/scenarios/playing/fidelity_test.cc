// Every result says what its fidelity leaves out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace fidelity_test {

using ::testing::HasSubstr;

TEST(FidelityTest, AFormulaSaysThatItKnowsNoSharedLinks) {
  // Four groups of two, each across the two nodes, with one NIC per node: they share it, or do not
  // notice each other.
  const std::string one_nic =
      R"(edits=[{"links": "node?/nic1", "down": true}, {"links": "node?/nic2", "down": true},
                {"links": "node?/nic3", "down": true}])";
  const std::string across =
      R"(strategy={"kind": "4d", "column": 4, "row": 1, "depth": 2, "data": 1,
                   "transpose_alternate_layers": true, "overlap_all_reduce": false,
                   "overlap_reduce_scatter": false, "overlap_all_gather": false,
                   "cached_layers": 0})";
  const Rehearsal shared = testing::Play({across, one_nic});
  const Rehearsal alone = testing::Play({across, one_nic, "simulator.fidelity=formula"});
  EXPECT_GT(shared.result.step / alone.result.step, 1.5);
  EXPECT_THAT(alone.result.left_out, HasSubstr("links that several collectives share"));
  EXPECT_THAT(ToText(alone.result, false),
              HasSubstr("Left out by fidelity formula: links that several collectives share"));
  EXPECT_EQ(ToJson(alone.result).at("left_out"), alone.result.left_out);
}

TEST(FidelityTest, OthersSayWhatTheyLeaveOutAsWell) {
  for (const char* fidelity : {"fluid", "step"}) {
    const Rehearsal played = testing::Play({std::string("simulator.fidelity=") + fidelity});
    EXPECT_THAT(ToText(played.result, false),
                HasSubstr(std::string("Left out by fidelity ") + fidelity));
    EXPECT_THAT(played.result.left_out, HasSubstr("queues in switches"));
  }
}

}  // namespace fidelity_test
}  // namespace rehearse
