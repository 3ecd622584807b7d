#include "sim/schedule/done_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace done_ops_test {

using ::testing::ElementsAre;

std::vector<uint32_t> PlacesOf(const DoneOps& ops) {
  std::vector<uint32_t> places;
  for (const DoneOp& done : ops) places.push_back(done.place);
  return places;
}

TEST(DoneOpsTest, WithoutRepeatsPositionsArePlaces) {
  const std::vector<Repeat> none;
  EXPECT_THAT(PlacesOf(DoneOps(none, 3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(PlacesOf(DoneOps(none, 0)), ElementsAre());
}

TEST(DoneOpsTest, CopiesComeRightAfterWhatTheyCopy) {
  const std::vector<Repeat> repeats = {{.begin = 1, .end = 3, .times = 2}};
  EXPECT_THAT(PlacesOf(DoneOps(repeats, 4)), ElementsAre(0, 1, 2, 1, 2, 1, 2, 3));
}

// One by one and asked for: the same, also where repeats are neighbours, are done once, or stand
// first or last.
TEST(DoneOpsTest, OpsInOrderAreThoseAtTheirPositions) {
  const std::vector<Repeat> repeats = {{.begin = 0, .end = 2, .times = 3, .micro_batches = 2},
                                       {.begin = 2, .end = 3, .times = 0},
                                       {.begin = 4, .end = 5, .times = 4},
                                       {.begin = 6, .end = 9, .times = 1, .micro_batches = 5}};
  const DoneOps ops(repeats, 9);
  ASSERT_EQ(ops.size(), 9u + 3 * 2 + 4 + 3);
  std::vector<uint32_t> times(9);
  uint32_t position = 0;
  for (const DoneOp& done : ops) {
    SCOPED_TRACE(position);
    const DoneOp at = ops.At(position);
    EXPECT_EQ(done.position, position);
    EXPECT_EQ(at.position, position);
    EXPECT_EQ(done.place, at.place);
    EXPECT_EQ(done.copy, at.copy);
    EXPECT_EQ(done.repeats_before, at.repeats_before);
    ++times[done.place];
    ++position;
  }
  EXPECT_EQ(position, ops.size());
  for (uint32_t place = 0; place < 9; ++place) EXPECT_EQ(ops.TimesOf(place), times[place]) << place;
  EXPECT_EQ(ops.MicroBatchesLater(ops.At(5)), 4);   // the second copy of the first repeat
  EXPECT_EQ(ops.MicroBatchesLater(ops.At(21)), 5);  // the only copy of the last
  EXPECT_EQ(ops.MicroBatchesLater(ops.At(8)), 0);
}

}  // namespace done_ops_test
}  // namespace rehearse
