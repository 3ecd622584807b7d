#include "sim/engine/link_relevance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/play.h"

namespace rehearse {
namespace link_relevance_test {

using ::testing::ElementsAre;

class LinkRelevanceTest : public PlayTest {
 protected:
  std::vector<LinkRole> Roles() { return FindRelevantLinks(builder_.Build()).role; }
};

TEST_F(LinkRelevanceTest, TheTightestLinkIsTheAnchorOfEqualOnesTheFirst) {
  const LinkId a = Link(2);
  const LinkId b = Link(2);
  Move(1, Over({{b, 1}, {a, 1}}));
  EXPECT_THAT(Roles(), ElementsAre(LinkRole::kAnchor, LinkRole::kRedundant));
}

TEST_F(LinkRelevanceTest, ALinkThatIsCrossedTwiceIsHalfAsWide) {
  const LinkId a = Link(2);
  const LinkId b = Link(3);
  Move(1, Over({{a, 1}, {b, 2}}));
  // At most 3 / 2 on a.
  EXPECT_THAT(Roles(), ElementsAre(LinkRole::kRedundant, LinkRole::kAnchor));
}

TEST_F(LinkRelevanceTest, ACoreAsWideAsItsFeedersIsRedundantANarrowerOneLazy) {
  const LinkId a = Link(2);
  const LinkId b = Link(3);
  const LinkId wide = Link(5);
  const LinkId narrow = Link(4.9);
  Move(1, Over({{a, 1}, {wide, 1}, {narrow, 1}}));
  Move(1, Over({{b, 1}, {wide, 1}, {narrow, 1}}));
  // However many flows come through the same feeder.
  Move(1, Over({{b, 1}, {wide, 1}}));
  EXPECT_THAT(Roles(), ElementsAre(LinkRole::kAnchor, LinkRole::kAnchor, LinkRole::kRedundant,
                                   LinkRole::kLazy));
}

TEST_F(LinkRelevanceTest, ALinkThatChangesIsNeverRedundantAndFeedsWithItsLargestCapacity) {
  const LinkId a = Link(2);
  const LinkId b = Link(3);
  const LinkId core = Link(5);
  const LinkId other = Link(9);
  Move(1, Over({{a, 1}, {core, 1}, {other, 1}}));
  Move(1, Over({{b, 1}, {core, 1}}));
  builder_.AddLinkChange({Time(5), a, 1.5});
  builder_.AddLinkChange({Time(5), other, 0.1});
  // 1.5·2 + 3 > 5; `other` would be redundant at 9.
  EXPECT_THAT(Roles(),
              ElementsAre(LinkRole::kAnchor, LinkRole::kAnchor, LinkRole::kLazy, LinkRole::kLazy));
}

TEST_F(LinkRelevanceTest, AlternativesCountAndUnusedSetsDoNot) {
  const LinkId a = Link(2);
  const LinkId b = Link(3);
  const LinkId unused = Link(3);
  const TaskId flow = Move(1, Over({{a, 1}}));
  builder_.SetAlternative(flow, Over({{b, 1}}));
  Over({{unused, 1}});
  EXPECT_THAT(Roles(), ElementsAre(LinkRole::kAnchor, LinkRole::kAnchor, LinkRole::kRedundant));
}

TEST_F(LinkRelevanceTest, AnchorsComeBeforeLazyLinks) {
  const LinkId core = Link(2);
  const LinkId a = Link(1);
  const LinkId b = Link(1.5);
  Move(1, Over({{core, 1}, {a, 1}}));
  Move(1, Over({{core, 1}, {b, 1}}));
  const LinkRelevance relevance = FindRelevantLinks(builder_.Build());
  ASSERT_EQ(relevance.All(0).size(), 2u);
  EXPECT_EQ(relevance.Anchors(0)[0].link, a);
  EXPECT_EQ(relevance.Lazy(0)[0].link, core);
  EXPECT_TRUE(relevance.has_lazy);
}

TEST_F(LinkRelevanceTest, ALinkIsRedundantWhereAnotherIsAsFullWhateverFlows) {
  // Two rings of one each; cables that both cross. The second ring crosses one of them twice, which
  // makes it fuller than all but the last, which the first ring crosses three times.
  const LinkId a = Link(1);
  const LinkId b = Link(1);
  const LinkId both = Link(1.5);
  const LinkId twin = Link(1.5);
  const LinkId fuller = Link(2.1);
  const LinkId other = Link(3.1);
  Move(1, Over({{a, 1}, {both, 1}, {twin, 1}, {fuller, 2}, {other, 1}}));
  Move(1, Over({{b, 1}, {both, 1}, {twin, 1}, {fuller, 1}, {other, 3}}));
  // 1/1.5 = 0.67 of `both` and its twin by each; 0.95 and 0.48 of `fuller`, 0.32 and 0.97 of
  // `other`: none is above another in both, except the twins.
  EXPECT_THAT(Roles(), ElementsAre(LinkRole::kAnchor, LinkRole::kAnchor, LinkRole::kLazy,
                                   LinkRole::kRedundant, LinkRole::kLazy, LinkRole::kLazy));
}

TEST_F(LinkRelevanceTest, ALinkWithFewerFlowsIsRedundantBesideOneThatHasThemAll) {
  const LinkId a = Link(1);
  const LinkId b = Link(1);
  const LinkId c = Link(1);
  const LinkId two = Link(1.9);
  const LinkId three = Link(1.9);
  Move(1, Over({{a, 1}, {two, 1}, {three, 1}}));
  Move(1, Over({{b, 1}, {two, 1}, {three, 1}}));
  Move(1, Over({{c, 1}, {three, 1}}));
  EXPECT_THAT(Roles(), ElementsAre(LinkRole::kAnchor, LinkRole::kAnchor, LinkRole::kAnchor,
                                   LinkRole::kRedundant, LinkRole::kLazy));
}

// The core binds while three feeders of 1 move (4 > 2.5 with the ring of two), and not otherwise.
TEST_F(LinkRelevanceTest, ALazyLinkHoldsBackWhenItIsOverloaded) {
  const LinkId core = Link(2.5);
  for (int i = 0; i < 3; ++i) Move(100 * (i + 1), Over({{Link(1), 1}, {core, 1}}));
  Play({.record_bottlenecks = true});
  // Three at 2.5/3 until the first has its 100, at 120; then two at 1: 100 and 200 left.
  EXPECT_EQ(End(0), 120);
  EXPECT_EQ(End(1), 220);
  EXPECT_EQ(End(2), 320);
  EXPECT_EQ(simulation_.bottlenecks[0].link, core);
  EXPECT_EQ(simulation_.bottlenecks[0].share, 1);
  // The third is held back by its own link, link 3, for 200 of 320.
  EXPECT_EQ(simulation_.bottlenecks[2].link, LinkId(3));
  EXPECT_DOUBLE_EQ(simulation_.bottlenecks[2].share, 200.0 / 320);
}

}  // namespace link_relevance_test
}  // namespace rehearse
