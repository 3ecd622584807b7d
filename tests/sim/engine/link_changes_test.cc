// Links that change while transfers are in flight. Links have 1 B/ps, so that bytes
// are picoseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/engine/simulate.h"
#include "tests/sim/play.h"

namespace rehearse {
namespace link_changes_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

using LinkChangesTest = PlayTest;

TEST_F(LinkChangesTest, ATransferInFlightIsRatedAnew) {
  // 1000 bytes: 400 in the first 400 ps, then 100 at half speed until 600, then 500 at full speed.
  const LinkId link = Link();
  Move(1000, Over({{link, 1}}));
  builder_.AddLinkChange({Time(400), link, 0.5});
  builder_.AddLinkChange({Time(600), link, 1});
  Play();
  EXPECT_EQ(End(0), 1100);
  EXPECT_EQ(Carried(link), 1000);
}

TEST_F(LinkChangesTest, AChangeAtTheBeginningHoldsFromTheBeginning) {
  const LinkId link = Link();
  Move(100, Over({{link, 1}}));
  builder_.AddLinkChange({Time(0), link, 0.25});
  Play();
  EXPECT_EQ(End(0), 400);
}

TEST_F(LinkChangesTest, OfTwoChangesAtOneTimeTheLastCounts) {
  const LinkId link = Link();
  Move(100, Over({{link, 1}}));
  builder_.AddLinkChange({Time(50), link, 0});
  builder_.AddLinkChange({Time(50), link, 0.5});
  Play();
  EXPECT_EQ(End(0), 150);
}

TEST_F(LinkChangesTest, ATransferWaitsForAFailedLinkToRecover) {
  // 300 bytes by 300; nothing until 1000; the other 700 until 1700. The second begins in between.
  const LinkId link = Link();
  Move(1000, Over({{link, 1}}));
  const LinkId other = Link();
  const TaskId wait = Delay(500);
  builder_.AddEdge(wait, Move(100, Over({{link, 1}, {other, 1}})));
  builder_.AddLinkChange({Time(300), link, 0});
  builder_.AddLinkChange({Time(1000), link, 1});
  Play();
  // From 1000 on both share the link: the second's 100 take 200, the first has 600 left at 1200.
  EXPECT_EQ(End(2), 1200);
  EXPECT_EQ(End(0), 1800);
}

TEST_F(LinkChangesTest, ATransferIsReroutedAndItsBytesAreBookedWhereTheyWent) {
  // 300 over `link`, then at half speed over `detour`: 200 from 300 to 700, when `link` is back for
  // the other 500.
  const LinkId link = Link();
  const LinkId detour = Link(0.5);
  const TaskId flow = Move(1000, Over({{link, 2}}));
  builder_.SetAlternative(flow, Over({{detour, 1}}));
  builder_.AddLinkChange({Time(600), link, 0});
  builder_.AddLinkChange({Time(1000), link, 1});
  Play();
  // Twice over `link` at 1/2: 300 by 600. 200 over the detour by 1000; 500 at 1/2 take 1000.
  EXPECT_EQ(End(0), 2000);
  EXPECT_EQ(Carried(link), 2 * 800);
  EXPECT_EQ(Carried(detour), 200);
}

TEST_F(LinkChangesTest, AReroutedTransferTakesItsShareFromThoseOnTheDetour) {
  // The first moves 100 alone, then shares the detour: its 100 left take 200, until 300. The second
  // has done 100 alone and 100 beside it, and has 100 left.
  const LinkId link = Link();
  const LinkId detour = Link();
  const TaskId flow = Move(200, Over({{link, 1}}));
  builder_.SetAlternative(flow, Over({{detour, 1}}));
  Move(300, Over({{detour, 1}}));
  builder_.AddLinkChange({Time(100), link, 0});
  Play();
  EXPECT_EQ(End(0), 300);
  EXPECT_EQ(End(1), 400);
  EXPECT_EQ(Carried(detour), 400);
}

TEST_F(LinkChangesTest, LaterStepsTakeTheDetourTooAndAreStillJumpedOver) {
  // 1000 steps of 100. Link fails at 250: two steps and a half over it, the rest over the detour.
  const LinkId link = Link();
  const LinkId detour = Link();
  const TaskId flow = Move(100, Over({{link, 1}}), 0, 1000);
  builder_.SetAlternative(flow, Over({{detour, 1}}));
  builder_.AddLinkChange({Time(250), link, 0});
  Play();
  EXPECT_EQ(End(0), 100'000);
  EXPECT_EQ(Carried(link), 250);
  EXPECT_EQ(Carried(detour), 99'750);
  EXPECT_GT(simulation_.stats.jumped, 900u);
}

TEST_F(LinkChangesTest, ASteadyRingSeesAChangeAtItsTime) {
  // Steps of 100 until 50'000, 500 of them; then of 200.
  const LinkId link = Link();
  const TaskId edge = Move(100, Over({{link, 1}}), 0, 1000);
  builder_.Chain(edge, edge);
  builder_.AddLinkChange({Time(50'000), link, 0.5});
  Play();
  EXPECT_EQ(End(0), 500 * 100 + 500 * 200);
}

TEST_F(LinkChangesTest, ATransferThatIsStuckForEverIsNamedWithItsLink) {
  Delay(10);
  const LinkId link = builder_.AddLink({"node3.nic0", "network", BytesPerSecond(1e12)});
  Move(1000, Over({{link, 1}}));
  builder_.AddLinkChange({Time(300), link, 0});
  try {
    Play();
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("node3.nic0"), HasSubstr("op 1 of rank 0")));
  }
}

TEST_F(LinkChangesTest, ChangesAfterTheEndDoNotMakeTheStepLonger) {
  const LinkId link = Link();
  Move(100, Over({{link, 1}}));
  builder_.AddLinkChange({Time(1'000'000), link, 0});
  Play();
  EXPECT_EQ(Step(), 100);
}

TEST_F(LinkChangesTest, NothingWithoutMeaning) {
  const LinkId link = Link();
  const uint32_t set = Over({{link, 1}});
  const uint32_t empty = Over({});
  const TaskId flow = Move(100, set);
  EXPECT_THROW(builder_.AddLinkChange({Time(-1), link, 1}), InternalError);
  EXPECT_THROW(builder_.AddLinkChange({Time(0), link, -1}), InternalError);
  EXPECT_THROW(builder_.AddLinkChange({Time(0), LinkId(7), 1}), InternalError);
  EXPECT_THROW(builder_.SetAlternative(flow, empty), InternalError);
  EXPECT_THROW(builder_.SetAlternative(flow, 7), InternalError);
  EXPECT_THROW(builder_.SetAlternative(Move(100, empty), set), InternalError);
}

}  // namespace link_changes_test
}  // namespace rehearse
