#include "sim/schedule/memory.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace rehearse {
namespace memory_test {

BufferId AddBuffer(Role& role, BufferKind kind, double bytes) {
  role.buffers.push_back({"b" + std::to_string(role.buffers.size()), kind, Bytes(bytes)});
  return BufferId(static_cast<uint32_t>(role.buffers.size() - 1));
}

void AddOp(Role& role, std::vector<BufferId> reads, std::vector<BufferId> writes) {
  Op op;
  op.name = "op";
  op.stream = StreamId(0);
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  role.ops.push_back(std::move(op));
}

TEST(MemoryTest, WhatLivesAsLongAsTheStepIsSummed) {
  Role role;
  AddBuffer(role, BufferKind::kParameter, 10);
  AddBuffer(role, BufferKind::kParameter, 20);
  AddBuffer(role, BufferKind::kGradient, 5);
  AddBuffer(role, BufferKind::kOptimizer, 60);
  const MemoryUse use = MemoryOf(role);  // though no op touches them
  EXPECT_EQ(use.parameters, Bytes(30));
  EXPECT_EQ(use.gradients, Bytes(5));
  EXPECT_EQ(use.optimizer, Bytes(60));
  EXPECT_EQ(use.Total(), Bytes(95));
}

TEST(MemoryTest, AnActivationLivesFromItsFirstToItsLastUse) {
  Role role;
  const BufferId a = AddBuffer(role, BufferKind::kActivation, 10);
  const BufferId b = AddBuffer(role, BufferKind::kActivation, 20);
  const BufferId c = AddBuffer(role, BufferKind::kActivation, 40);
  AddOp(role, {}, {a});   // a: 10
  AddOp(role, {a}, {b});  // a, b: 30
  AddOp(role, {b}, {c});  // b, c: 60, a is gone
  AddOp(role, {c}, {});   // c: 40
  EXPECT_EQ(MemoryOf(role).activations, Bytes(60));
}

TEST(MemoryTest, WhatIsKeptForTheBackwardPassLivesInBetween) {
  Role role;
  const BufferId a = AddBuffer(role, BufferKind::kActivation, 10);
  const BufferId b = AddBuffer(role, BufferKind::kActivation, 20);
  AddOp(role, {}, {a});
  AddOp(role, {}, {b});  // a is not touched here, but needed later: 30
  AddOp(role, {a}, {});
  EXPECT_EQ(MemoryOf(role).activations, Bytes(30));
}

TEST(MemoryTest, ActivationsAndBuffersAreTakenAtTheSameMoment) {
  Role role;
  const BufferId activation = AddBuffer(role, BufferKind::kActivation, 100);
  const BufferId small = AddBuffer(role, BufferKind::kBuffer, 1);
  const BufferId large = AddBuffer(role, BufferKind::kBuffer, 90);
  AddOp(role, {activation}, {small});  // 100 + 1, the largest sum
  AddOp(role, {}, {large});            // 0 + 90, the largest buffer
  const MemoryUse use = MemoryOf(role);
  EXPECT_EQ(use.activations, Bytes(100));
  EXPECT_EQ(use.buffers, Bytes(1));
}

TEST(MemoryTest, AnActivationThatNoOpTouchesIsNotCounted) {
  Role role;
  AddBuffer(role, BufferKind::kActivation, 10);
  AddBuffer(role, BufferKind::kBuffer, 10);
  AddOp(role, {}, {});
  EXPECT_EQ(MemoryOf(role).Total(), Bytes(0));
}

TEST(MemoryTest, ABufferThatAnOpReadsAndWritesCountsOnce) {
  Role role;
  const BufferId a = AddBuffer(role, BufferKind::kActivation, 10);
  AddOp(role, {a}, {a});
  EXPECT_EQ(MemoryOf(role).activations, Bytes(10));
}

TEST(MemoryTest, TheFullestRankIsThatOfTheFullestRole) {
  Schedule schedule;
  schedule.roles.resize(3);
  AddBuffer(schedule.roles[0], BufferKind::kParameter, 10);
  AddBuffer(schedule.roles[1], BufferKind::kParameter, 30);
  AddBuffer(schedule.roles[2], BufferKind::kParameter, 90);  // no rank plays it
  schedule.role_of_rank = {0, 0, 1};
  EXPECT_EQ(MemoryOfFullestRank(schedule).parameters, Bytes(30));
}

}  // namespace memory_test
}  // namespace rehearse
