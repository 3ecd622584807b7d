// What rehearse run says about collectives that are far from what the wires allow.
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace far_from_bound_test {

using ::testing::HasSubstr;
using ::testing::Not;

class FarFromBoundTest : public ProgramTest {
 protected:
  std::string Run(const std::string& changes) const {
    const Outcome outcome = Execute("run " + Shipped("strategy-data-parallel") + " " + changes);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(FarFromBoundTest, ARingOnATorusIsNamedWithWhatWouldBeQuicker) {
  const std::string on_torus = "--set cluster=tpu-v4:x=4,y=2,z=2 ";
  EXPECT_THAT(Run(on_torus + "--set simulator.algorithm=ring"),
              HasSubstr("data all-reduce of 400 MiB over 16 ranks, ring"));
  EXPECT_THAT(Run(on_torus + "--set simulator.algorithm=ring"),
              HasSubstr("% of the bound by all devices; algorithm bucket would take"));
  EXPECT_THAT(Run(on_torus), Not(HasSubstr("Far from what the wires allow")));
}

TEST_F(FarFromBoundTest, RingsOfSeveralBoxesAreNearEnough) {
  EXPECT_THAT(Run(""), Not(HasSubstr("Far from what the wires allow")));
}

}  // namespace far_from_bound_test
}  // namespace rehearse
