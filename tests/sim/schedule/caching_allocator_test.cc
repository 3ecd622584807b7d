// The caching allocator's rules, by hand: what it reserves for arrays of known lives.
#include "sim/schedule/caching_allocator.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace caching_allocator_test {

constexpr double kMebi = 1024.0 * 1024;

// A role of ops that touch the buffers which they name.
class Steps {
 public:
  BufferId Add(double mebibytes, BufferKind kind = BufferKind::kActivation) {
    role_.buffers.push_back({.name = "array", .kind = kind, .bytes = Bytes(mebibytes * kMebi)});
    return BufferId(static_cast<uint32_t>(role_.buffers.size() - 1));
  }
  void Touch(std::vector<BufferId> buffers) {
    Op op;
    op.name = "op";
    op.stream = StreamId(0);
    op.work = Compute{};
    op.writes = std::move(buffers);
    role_.ops.push_back(std::move(op));
  }
  AllocatedMemory Play(const AllocatorRules& rules = {}) const {
    return PlayAllocations(role_, rules);
  }

 private:
  Role role_{.name = "rank", .streams = {{"compute", StreamKind::kCompute}}};
};

TEST(CachingAllocatorTest, SegmentsAreOfTheKindThatTheArrayAsksFor) {
  // 0.25 MiB from a segment of 2, 4 MiB from one of 20, 11 MiB and 300 bytes from one of 12.
  const double sizes[] = {0.25, 4, 11 + 300 / kMebi};
  const double segments[] = {2, 20, 12};
  for (size_t i = 0; i < 3; ++i) {
    Steps steps;
    steps.Touch({steps.Add(sizes[i])});
    EXPECT_EQ(steps.Play().reserved, Bytes(segments[i] * kMebi));
  }
}

TEST(CachingAllocatorTest, SizesAreMultiplesOf512Bytes) {
  Steps steps;
  steps.Touch({steps.Add(1 / kMebi)});
  EXPECT_EQ(steps.Play().active, Bytes(512));
}

TEST(CachingAllocatorTest, WhatIsFreedServesTheNextArrayOfItsSize) {
  Steps steps;
  const BufferId first = steps.Add(40);
  const BufferId second = steps.Add(40);
  steps.Touch({first});
  steps.Touch({second});
  EXPECT_EQ(steps.Play().reserved, Bytes(40 * kMebi));
}

// 40 MiB are free but in two segments; 30 more need a third.
TEST(CachingAllocatorTest, FreeBlocksOfTwoSegmentsAreNotJoined) {
  Steps steps;
  const BufferId first = steps.Add(20);
  const BufferId second = steps.Add(20);
  const BufferId third = steps.Add(30);
  steps.Touch({first, second});
  steps.Touch({third});
  EXPECT_EQ(steps.Play().active, Bytes(40 * kMebi));
  EXPECT_EQ(steps.Play().reserved, Bytes(70 * kMebi));
  // Neighbours in one segment are joined.
  EXPECT_EQ(steps.Play({.expandable = true}).reserved, Bytes(40 * kMebi));
}

TEST(CachingAllocatorTest, ASegmentGrowsAtItsEndByPagesOf20Mebibytes) {
  Steps steps;
  const BufferId first = steps.Add(20);
  const BufferId second = steps.Add(10);
  const BufferId third = steps.Add(30);
  steps.Touch({first, second});
  steps.Touch({second, third});  // the first block is free, but too small
  const AllocatedMemory played = steps.Play({.expandable = true});
  EXPECT_EQ(played.active, Bytes(40 * kMebi));
  EXPECT_EQ(played.reserved, Bytes(60 * kMebi));
  // Its pages are given back where the device is full.
  EXPECT_TRUE(steps.Play({.expandable = true, .room = Bytes(44 * kMebi)}).fits);
}

TEST(CachingAllocatorTest, AFullDeviceGetsFreeSegmentsBackFirst) {
  Steps steps;
  const BufferId first = steps.Add(20);
  const BufferId second = steps.Add(30);
  steps.Touch({first});
  steps.Touch({second});
  const AllocatedMemory played = steps.Play({.room = Bytes(32 * kMebi)});
  EXPECT_TRUE(played.fits);
  EXPECT_EQ(played.reserved, Bytes(30 * kMebi));
  EXPECT_FALSE(steps.Play({.room = Bytes(29 * kMebi)}).fits);
}

TEST(CachingAllocatorTest, WhatLivesThroughoutIsNotGivenBack) {
  Steps steps;
  steps.Add(100, BufferKind::kOptimizer);
  const BufferId first = steps.Add(20);
  const BufferId second = steps.Add(30);
  steps.Touch({first});
  steps.Touch({second});
  EXPECT_EQ(steps.Play({.room = Bytes(132 * kMebi)}).reserved, Bytes(130 * kMebi));
}

}  // namespace caching_allocator_test
}  // namespace rehearse
