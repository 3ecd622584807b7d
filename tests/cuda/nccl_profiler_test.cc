// What NCCL reports about its choices, with the fake one (tests/doubles/nccl_profiler.h says what
// that chooses).
#include "real/cuda/nccl_profiler.h"

#include <map>
#include <thread>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/cuda/cuda_backend.h"
#include "tests/support/gpu_double.h"
#include "tests/support/gpu_run.h"
#include "tests/support/gpu_schedules.h"

namespace rehearse {
namespace nccl_profiler_test {

using ::testing::IsEmpty;

class NcclProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    door_ = gpu_double::OpenGpuDouble();
    door_->Reset();
  }

  // Of rank 0, by the op's name.
  static std::map<std::string, LibraryChoice> ChoicesOf(const Schedule& schedule) {
    const RunResult result = RunStep(schedule, OnGpus({}, 8));
    std::map<std::string, LibraryChoice> choices;
    for (const LibraryChoice& choice : result.choices[0])
      choices[schedule.roles[0].ops[choice.op].name] = choice;
    return choices;
  }

  gpu_double::Door* door_ = nullptr;
};

TEST_F(NcclProfilerTest, EveryVersionOfTheInterfaceTellsAlgorithmProtocolAndChannels) {
  const std::map<int, int> interface_of_nccl = {{22403, 2}, {22605, 3}, {22703, 4}, {22809, 5}};
  for (const auto& [nccl, interface] : interface_of_nccl) {
    door_->control().nccl_version = nccl;
    const std::map<std::string, LibraryChoice> choices = ChoicesOf(EveryCollective(2));
    EXPECT_EQ(ReadNcclProfilerState(LoadGpuLibraries()).interface, interface);
    // 4 rows of 6 columns in fp32: 96 bytes, for which a tree is taken; an all-gather never takes
    // one.
    EXPECT_EQ(AlgorithmOf(choices.at("sum")), "tree") << nccl;
    EXPECT_EQ(ProtocolOf(choices.at("sum")), "ll");
    EXPECT_EQ(choices.at("sum").channels, 1u);
    EXPECT_EQ(AlgorithmOf(choices.at("gather")), "ring");
    EXPECT_EQ(ProtocolOf(choices.at("gather")), "simple");
    EXPECT_EQ(choices.at("gather").channels, 2u);
    // An all-to-all is sends and receives, which report their channels since version 4.
    EXPECT_EQ(AlgorithmOf(choices.at("exchange")), "messages");
    EXPECT_EQ(choices.at("exchange").channels, interface >= 4 ? 1u : 0u);
    EXPECT_EQ(choices.count("copy"), 0u);
    EXPECT_THAT(door_->Findings(), IsEmpty());
  }
}

TEST_F(NcclProfilerTest, OfAGroupNcclTellsWhenItIsClosed) {
  // The all-gather twice, into another buffer, as one op.
  Schedule schedule = EveryCollective(2);
  Role& role = schedule.roles[0];
  for (Op& op : role.ops) {
    if (op.name != "gather") continue;
    role.buffers.push_back(role.buffers[op.writes[0].index()]);
    role.buffers.back().name = "gathered again";
    op.reads.push_back(op.reads[0]);
    op.writes.emplace_back(static_cast<uint32_t>(role.buffers.size() - 1));
    std::get<Collective>(op.work).bytes *= 2;
  }
  const std::map<std::string, LibraryChoice> choices = ChoicesOf(schedule);
  ASSERT_EQ(choices.count("gather"), 1u);
  EXPECT_EQ(AlgorithmOf(choices.at("gather")), "ring");
  EXPECT_EQ(choices.at("gather").channels, 2u);
  EXPECT_THAT(door_->Findings(), IsEmpty());
}

TEST_F(NcclProfilerTest, OneRankAndNcclWithoutTheInterfaceTellNothing) {
  EXPECT_THAT(ChoicesOf(EveryCollective(1)), IsEmpty());
  door_->control().nccl_version = 22105;
  EXPECT_THAT(ChoicesOf(EveryCollective(2)), IsEmpty());
}

// A graph's replays report their operations on a thread of CUDA's.
TEST_F(NcclProfilerTest, WhatIsToldOnAnotherThreadIsNotTheOps) {
  struct Table {
    const char* name;
    void* init;
    int (*start)(void*, void**, void*);
  };
  const auto* table =
      static_cast<const Table*>(dlsym(dlopen(nullptr, RTLD_NOW), "ncclProfiler_v5"));
  ASSERT_NE(table, nullptr);
  uint64_t event[16] = {1 << 2};  // a message
  const auto tell = [&] {
    void* handle = nullptr;
    EXPECT_EQ(table->start(nullptr, &handle, event), 0);
    EXPECT_NE(handle, nullptr);
  };
  NcclListener listener;
  std::thread(tell).join();
  EXPECT_FALSE(listener.has_heard());
  tell();
  EXPECT_TRUE(listener.has_heard());
}

}  // namespace nccl_profiler_test
}  // namespace rehearse
