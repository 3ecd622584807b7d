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
  void Touch(std::vector<BufferId> buffers, Work work = Compute{}) {
    Op op;
    op.name = "op";
    op.stream = StreamId(std::holds_alternative<Compute>(work) ? 0 : 1);
    op.work = std::move(work);
    op.writes = std::move(buffers);
    role_.ops.push_back(std::move(op));
  }
  AllocatedMemory Play(const AllocatorRules& rules = {}) const {
    return PlayAllocations(role_, rules);
  }

 private:
  static Role WithTwoStreams() {
    Role role;
    role.name = "rank";
    role.streams = {{"compute", StreamKind::kCompute}, {"shard", StreamKind::kCommunication}};
    return role;
  }

  Role role_ = WithTwoStreams();
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

// What is gathered comes from segments of the gathers' stream, be others free or not; an activation
// that a collective makes comes from those of the kernels.
TEST(CachingAllocatorTest, WhatIsGatheredLiesInSegmentsOfItsOwn) {
  const auto reserved = [](BufferKind kind) {
    Steps steps;
    const BufferId before = steps.Add(30);
    const BufferId gathered = steps.Add(30, kind);
    steps.Touch({before});
    steps.Touch({gathered}, Collective{.kind = CollectiveKind::kAllGather});
    return steps.Play().reserved;
  };
  EXPECT_EQ(reserved(BufferKind::kBuffer), Bytes(60 * kMebi));
  EXPECT_EQ(reserved(BufferKind::kActivation), Bytes(30 * kMebi));
}

// In a first step the state of two parameters of 20 MiB, twice as much, is made where an array of
// 80 lay. So that array needs 80 more in the second: 40 + 80 + 80 in all.
TEST(CachingAllocatorTest, AFirstStepMakesStateWhereItsArraysLay) {
  Steps steps;
  const BufferId weights[] = {steps.Add(20, BufferKind::kParameter),
                              steps.Add(20, BufferKind::kParameter)};
  const BufferId state = steps.Add(80, BufferKind::kOptimizer);
  const BufferId array = steps.Add(80);
  steps.Touch({weights[0], weights[1], array});
  steps.Touch({state});
  EXPECT_EQ(steps.Play().active, Bytes(200 * kMebi));
  EXPECT_EQ(steps.Play().reserved, Bytes(200 * kMebi));
}

}  // namespace caching_allocator_test
}  // namespace rehearse
