#include "sim/schedule/communicator.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace communicator_test {

using ::testing::ElementsAre;

std::vector<uint32_t> Members(const Communicator& communicator, uint32_t group) {
  std::vector<uint32_t> ranks;
  for (uint32_t member = 0; member < communicator.size(); ++member)
    ranks.push_back(communicator.Rank(group, member));
  return ranks;
}

TEST(CommunicatorTest, TheInnermostAxisHasNeighbouringRanks) {
  // Mesh of 2 (stride 1) x 3 (stride 2): the groups of the first axis are {0,1}, {2,3}, {4,5}.
  const Communicator inner = Communicator::Strided("column", {{2, 1}}, {{3, 2}});
  EXPECT_EQ(inner.name(), "column");
  EXPECT_EQ(inner.size(), 2u);
  EXPECT_EQ(inner.group_count(), 3u);
  EXPECT_THAT(Members(inner, 0), ElementsAre(0, 1));
  EXPECT_THAT(Members(inner, 2), ElementsAre(4, 5));
}

TEST(CommunicatorTest, AnOuterAxisHasItsStride) {
  const Communicator outer = Communicator::Strided("row", {{3, 2}}, {{2, 1}});
  EXPECT_EQ(outer.size(), 3u);
  EXPECT_THAT(Members(outer, 0), ElementsAre(0, 2, 4));
  EXPECT_THAT(Members(outer, 1), ElementsAre(1, 3, 5));
}

TEST(CommunicatorTest, SeveralAxesNestFirstFastest) {
  // Mesh 2 x 2 x 2; members run over the axes of stride 4 and 1, in this order.
  const Communicator both = Communicator::Strided("both", {{2, 4}, {2, 1}}, {{2, 2}});
  EXPECT_THAT(Members(both, 0), ElementsAre(0, 4, 1, 5));
  EXPECT_THAT(Members(both, 1), ElementsAre(2, 6, 3, 7));
}

TEST(CommunicatorTest, AnAxisOfOneCoordinateIsIgnored) {
  // Whatever its stride.
  const Communicator one = Communicator::Strided("data", {{1, 99}}, {{4, 1}});
  EXPECT_EQ(one.size(), 1u);
  EXPECT_EQ(one.group_count(), 4u);
  EXPECT_EQ(one.Rank(3, 0), 3u);
  EXPECT_EQ(one.PositionOf(3)->group, 3u);
  EXPECT_EQ(Communicator::Strided("none", {{1, 0}}, {}).PositionOf(0)->member, 0u);
}

TEST(CommunicatorTest, ARankBeyondTheMeshIsInNoGroup) {
  const Communicator strided = Communicator::Strided("row", {{3, 2}}, {{2, 1}});
  EXPECT_TRUE(strided.PositionOf(5).has_value());
  EXPECT_FALSE(strided.PositionOf(6).has_value());
}

TEST(CommunicatorTest, AMeshThatIsNotDenseIsAFaultOfOurs) {
  EXPECT_THROW(Communicator::Strided("gap", {{2, 1}}, {{2, 3}}), InternalError);
  EXPECT_THROW(Communicator::Strided("overlap", {{2, 1}}, {{2, 1}}), InternalError);
  EXPECT_THROW(Communicator::Strided("shifted", {{2, 2}}, {}), InternalError);
  EXPECT_THROW(Communicator::Strided("empty", {{0, 1}}, {}), InternalError);
  // 2^16 x 2^16 ranks do not fit 32 bits.
  EXPECT_THROW(Communicator::Strided("huge", {{65536, 1}}, {{65536, 65536}}), InternalError);
}

TEST(CommunicatorTest, ExplicitGroupsAreAsListed) {
  const Communicator listed = Communicator::Explicit("pairs", {{5, 1}, {0, 7}});
  EXPECT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed.group_count(), 2u);
  EXPECT_THAT(Members(listed, 0), ElementsAre(5, 1));
  EXPECT_THAT(Members(listed, 1), ElementsAre(0, 7));
  EXPECT_EQ(listed.PositionOf(1)->group, 0u);
  EXPECT_EQ(listed.PositionOf(1)->member, 1u);
  EXPECT_FALSE(listed.PositionOf(2).has_value());
  EXPECT_FALSE(listed.PositionOf(8).has_value());
}

TEST(CommunicatorTest, BadExplicitGroupsAreAFaultOfOurs) {
  EXPECT_THROW(Communicator::Explicit("none", {}), InternalError);
  EXPECT_THROW(Communicator::Explicit("empty", {{}}), InternalError);
  EXPECT_THROW(Communicator::Explicit("unequal", {{0, 1}, {2}}), InternalError);
  EXPECT_THROW(Communicator::Explicit("twice", {{0, 1}, {1, 2}}), InternalError);
  EXPECT_THROW(Communicator::Explicit("twice", {{3, 3}}), InternalError);
}

TEST(CommunicatorTest, AGroupOrMemberThatDoesNotExistIsAFaultOfOurs) {
  const Communicator strided = Communicator::Strided("row", {{3, 2}}, {{2, 1}});
  EXPECT_THROW(strided.Rank(2, 0), InternalError);
  EXPECT_THROW(strided.Rank(0, 3), InternalError);
}

// Rank and PositionOf are inverses, and every rank of a mesh occurs once.
void AssertIsBijection(const Communicator& communicator) {
  std::set<uint32_t> seen;
  for (uint32_t group = 0; group < communicator.group_count(); ++group) {
    for (uint32_t member = 0; member < communicator.size(); ++member) {
      const uint32_t rank = communicator.Rank(group, member);
      RC_ASSERT(seen.insert(rank).second);
      const auto position = communicator.PositionOf(rank);
      RC_ASSERT(position.has_value());
      RC_ASSERT(position->group == group);
      RC_ASSERT(position->member == member);
    }
  }
  RC_ASSERT(seen.size() == size_t{communicator.size()} * communicator.group_count());
}

RC_GTEST_PROP(CommunicatorTest, EveryRankOfAMeshHasOnePosition, ()) {
  // A mesh of up to 4 axes, dealt to members and groups in any order.
  std::vector<StridedAxis> axes;
  uint32_t stride = 1;
  for (const uint32_t extent :
       *rc::gen::container<std::vector<uint32_t>>(4, rc::gen::inRange(1u, 5u))) {
    axes.push_back({extent, stride});
    stride *= extent;
  }
  std::vector<StridedAxis> member_axes;
  std::vector<StridedAxis> group_axes;
  while (!axes.empty()) {
    const auto next = *rc::gen::inRange<size_t>(0, axes.size());
    (*rc::gen::arbitrary<bool>() ? member_axes : group_axes).push_back(axes[next]);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(next));
  }
  const Communicator communicator = Communicator::Strided("mesh", member_axes, group_axes);
  RC_ASSERT(communicator.size() * communicator.group_count() == stride);
  RC_ASSERT(!communicator.PositionOf(stride).has_value());
  AssertIsBijection(communicator);
}

RC_GTEST_PROP(CommunicatorTest, EveryListedRankHasOnePosition, ()) {
  const auto ranks = *rc::gen::unique<std::vector<uint32_t>>(rc::gen::inRange(0u, 1000u));
  const auto size = *rc::gen::inRange<size_t>(1, 5);
  std::vector<std::vector<uint32_t>> groups;
  for (size_t first = 0; first + size <= ranks.size(); first += size)
    groups.emplace_back(ranks.begin() + static_cast<std::ptrdiff_t>(first),
                        ranks.begin() + static_cast<std::ptrdiff_t>(first + size));
  RC_PRE(!groups.empty());
  AssertIsBijection(Communicator::Explicit("listed", groups));
}

}  // namespace communicator_test
}  // namespace rehearse
