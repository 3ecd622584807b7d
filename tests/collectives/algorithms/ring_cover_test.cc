#include "collectives/algorithms/ring_cover.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace rehearse {
namespace ring_cover_test {

TEST(RingCoverTest, EveryDirectedPairIsInOneRing) {
  for (const uint32_t size : {2u, 3u, 5u, 7u, 8u}) {
    const auto rings = RingsOfAllPairs(size);
    ASSERT_EQ(rings.size(), size - 1) << size;
    std::set<std::pair<uint32_t, uint32_t>> pairs;
    for (const auto& ring : rings) {
      ASSERT_EQ(ring.size(), size);
      for (const uint32_t member : ring) ASSERT_LT(member, size);
      for (uint32_t i = 0; i < size; ++i) pairs.emplace(ring[i], ring[(i + 1) % size]);
    }
    EXPECT_EQ(pairs.size(), size * (size - 1)) << size;
  }
}

// The two exceptions.
TEST(RingCoverTest, FourAndSixRanksHaveNone) {
  EXPECT_TRUE(RingsOfAllPairs(4).empty());
  EXPECT_TRUE(RingsOfAllPairs(6).empty());
}

}  // namespace ring_cover_test
}  // namespace rehearse
