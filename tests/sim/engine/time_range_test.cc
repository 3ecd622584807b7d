// Steps that take longer than the clock can count, 9.22e18 ps. Links have 1 B/ps unless said
// otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/sim/play.h"

namespace rehearse {
namespace time_range_test {

using ::testing::HasSubstr;

constexpr int64_t kDay = int64_t{86'400} * 1'000'000'000'000;

class TimeRangeTest : public PlayTest {
 protected:
  // The op that is under way when the clock ends.
  uint32_t OpThatIsTooLong() {
    try {
      Play();
    } catch (const StepTooLong& error) {
      EXPECT_THAT(error.what(), HasSubstr("the step exceeds 106 days"));
      why_ = error.why();
      return error.op();
    }
    return 1000;
  }

  std::string why_;
};

TEST_F(TimeRangeTest, DelaysThatTogetherAreTooLongAreAnErrorThatNamesTheOneUnderWay) {
  TaskId before = Delay(50 * kDay);
  for (int i = 0; i < 3; ++i) {
    const TaskId next = Delay(30 * kDay);  // ends on day 80, 110, 140
    builder_.AddEdge(before, next);
    before = next;
  }
  EXPECT_EQ(OpThatIsTooLong(), 2u);
  EXPECT_EQ(why_, "");
}

TEST_F(TimeRangeTest, ADelayBeyondTheRangeIsAnError) {
  Delay(1);
  Delay(kBeyondTime.picoseconds());
  EXPECT_EQ(OpThatIsTooLong(), 1u);
}

// 1e9 B at 1e-12 B/ps would take 1e21 ps.
TEST_F(TimeRangeTest, ATransferThatTakesTooLongIsNamedWithItsSlowestLink) {
  Move(1000, Over({{Link(), 1}}));
  Move(1e9, Over({{Link(1e-12), 1}, {Link(), 1}}));
  EXPECT_EQ(OpThatIsTooLong(), 1u);
  EXPECT_EQ(why_, "953.7 MiB over link link of 1 B/s");
}

// 200 steps of a day each, played and jumped over.
TEST_F(TimeRangeTest, StepsThatTogetherAreTooLongAreAnErrorAlsoWhereTheyAreJumpedOver) {
  const TaskId flow = Move(static_cast<double>(kDay), Over({{Link(), 1}}), 0, 200);
  builder_.Chain(flow, flow);
  const Program program = builder_.Build();
  for (const bool jump : {false, true}) {
    SimulationOptions options;
    options.jump = jump;
    EXPECT_THROW(Simulate(program, 1, options), StepTooLong) << jump;
  }
}

// At its rate from 400 on, the remaining 600 B would take 6e20 ps; from 1000 on they take 600.
TEST_F(TimeRangeTest, ATransferThatIsTooSlowForAWhileOnlyEndsInTime) {
  const LinkId link = Link();
  Move(1000, Over({{link, 1}}));
  builder_.AddLinkChange({Time(400), link, 1e-18});
  builder_.AddLinkChange({Time(1000), link, 1});
  Play();
  EXPECT_EQ(End(0), 1600);
}

// A delay of 60 days that its processor's transfers slow down to a tenth.
TEST_F(TimeRangeTest, ASlowedDelayThatIsTooLongIsAnError) {
  const uint32_t processor = builder_.AddProcessor({});
  const TaskId delay = Delay(60 * kDay);
  builder_.SetOwner(delay, {processor, 9});
  const TaskId flow = Move(static_cast<double>(100 * kDay), Over({{Link(), 1}}));
  builder_.SetParties(flow, builder_.AddPartySet({processor}));
  EXPECT_EQ(OpThatIsTooLong(), 0u);
}

TEST_F(TimeRangeTest, AStepJustWithinTheRangeIsPlayed) {
  const TaskId first = Delay(kBeyondTime.picoseconds() - 2);
  builder_.AddEdge(first, Delay(1));
  Play();
  EXPECT_EQ(Step(), kBeyondTime.picoseconds() - 1);
}

}  // namespace time_range_test
}  // namespace rehearse
