#include "sim/engine/contention.h"

#include <gtest/gtest.h>

#include "tests/sim/play.h"

namespace rehearse {
namespace contention_test {

class ContentionTest : public PlayTest {
 protected:
  std::vector<HoldingLink> Find(const std::vector<uint32_t>& groups) {
    Play({.record_bottlenecks = true, .record_tasks = true});
    return FindHoldingLinks(program_, simulation_, groups);
  }
};

// Two flows of 100 and 300 bytes share a link of 1 B/ps: both run at half speed until the first
// ends at 200, the other alone until 400. A third flow has a link of its own, of 2 B/ps, for 50.
TEST_F(ContentionTest, TheLinksThatHeldFlowsBackLongestFirstWithTheirSharers) {
  const LinkId shared = Link();
  const LinkId own = Link(2);
  Move(100, Over({{shared, 1}}));
  Move(300, Over({{shared, 1}}));
  Move(100, Over({{own, 1}}));
  const std::vector<HoldingLink> links = Find({7, 8, 7});
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].link, shared);
  EXPECT_EQ(links[0].time.picoseconds(), 400);
  EXPECT_EQ(links[0].most_at_once, 2u);
  ASSERT_EQ(links[0].sharers.size(), 2u);
  EXPECT_EQ(links[0].sharers[0].group, 8u);  // carried more
  EXPECT_EQ(links[0].sharers[0].bytes.value(), 300);
  EXPECT_EQ(links[0].sharers[1].group, 7u);
  EXPECT_EQ(links[0].sharers[1].most_at_once, 1u);
  EXPECT_EQ(links[1].link, own);
  EXPECT_EQ(links[1].time.picoseconds(), 50);
  EXPECT_EQ(links[1].most_at_once, 1u);  // a bottleneck, but nobody else is there
}

// A folded flow that stands for three transfers over the link, and another flow of the same group
// before it.
TEST_F(ContentionTest, FlowsCountAsOftenAsTheyCross) {
  const LinkId link = Link();
  const TaskId first = Move(100, Over({{link, 1}}));
  const TaskId second = Move(100, Over({{link, 3}}));
  builder_.AddEdge(first, second);
  const std::vector<HoldingLink> links = Find({0, 0});
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].time.picoseconds(), 400);
  EXPECT_EQ(links[0].most_at_once, 3u);
  EXPECT_EQ(links[0].sharers[0].most_at_once, 3u);
  EXPECT_EQ(links[0].sharers[0].bytes.value(), 400);
}

// The link fails at 50 for good; the flow continues on the detour, at a quarter of its rate, until
// 50 + 4·150.
TEST_F(ContentionTest, ADetourThatHoldsAFlowBackIsALinkOfIts) {
  const LinkId link = Link();
  const LinkId detour = Link(0.25);
  const TaskId flow = Move(200, Over({{link, 1}}));
  builder_.SetAlternative(flow, Over({{detour, 1}}));
  builder_.AddLinkChange({Time(50), link, 0});
  const std::vector<HoldingLink> links = Find({0});
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].link, detour);
  EXPECT_EQ(links[0].time.picoseconds(), 650);
}

}  // namespace contention_test
}  // namespace rehearse
