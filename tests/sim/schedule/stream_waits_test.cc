#include "sim/schedule/stream_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace stream_waits_test {

using ::testing::ElementsAre;

Op OpOn(uint32_t stream, std::vector<uint32_t> after) {
  Op op;
  op.stream = StreamId(stream);
  for (const uint32_t earlier : after) op.after.emplace_back(earlier);
  return op;
}

Role RoleOf(std::vector<Op> ops) {
  Role role;
  role.streams = {{"a", StreamKind::kCompute}, {"b", StreamKind::kCompute}};
  role.ops = std::move(ops);
  return role;
}

TEST(StreamWaitsTest, AnOpOfItsOwnStreamIsNotWaitedFor) {
  const StreamWaits waits =
      StreamWaitsOf(RoleOf({OpOn(0, {}), OpOn(0, {0}), OpOn(1, {1}), OpOn(0, {0, 1})}));
  EXPECT_THAT(waits.waits, ElementsAre(false, false, true, false));
  EXPECT_THAT(waits.awaited, ElementsAre(false, true, false, false));
}

// Ops 2 and 3 have copies. Op 2 is after op 1 on the other stream, each copy of op 2 after the op 3
// before it, which nothing else waits for.
TEST(StreamWaitsTest, WhatACopyWaitsForInTheOneBeforeIsWaitedFor) {
  Role role = RoleOf({OpOn(0, {}), OpOn(1, {}), OpOn(0, {1}), OpOn(1, {})});
  role.repeats = {{.begin = 2, .end = 4, .times = 2}};
  const StreamWaits waits = StreamWaitsOf(role);
  EXPECT_THAT(waits.waits, ElementsAre(false, false, true, false));
  EXPECT_THAT(waits.awaited, ElementsAre(false, true, false, true));
}

// Before a body of two ops there is only one, which the first op of each copy is after.
TEST(StreamWaitsTest, ThereMayBeLessBeforeABodyThanItIsLong) {
  Role role = RoleOf({OpOn(1, {}), OpOn(0, {0}), OpOn(1, {})});
  role.repeats = {{.begin = 1, .end = 3, .times = 2}};
  const StreamWaits waits = StreamWaitsOf(role);
  EXPECT_THAT(waits.waits, ElementsAre(false, true, false));
  EXPECT_THAT(waits.awaited, ElementsAre(true, false, true));
}

}  // namespace stream_waits_test
}  // namespace rehearse
