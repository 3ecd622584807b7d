#include "sim/engine/critical_ops.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace critical_ops_test {

// Two ranks compute (10 and 30), meet, move 20 bytes at 1 B/ps, and compute again (5 and 8). Rank 1
// was waited for: its kernel until 30, the transfer until 50, and its last kernel until 58. Rank
// 0's first kernel could have taken 20 longer, its last one 3.
class CriticalOpsTest : public ::testing::Test {
 protected:
  CriticalOpsTest() {
    ProgramBuilder builder;
    const LinkId link = builder.AddLink({"link", "test", BytesPerSecond(1e12)});
    const uint32_t uses = builder.AddUseSet({{link, 1}});
    const TaskId begin = builder.AddJoin();
    Flow flow;
    flow.bytes = 20;
    flow.use_set = uses;
    const TaskId transfer = builder.AddFlow(flow);
    const TaskId end = builder.AddJoin();
    builder.AddEdge(begin, transfer);
    builder.AddEdge(transfer, end);
    const int64_t first[] = {10, 30};
    const int64_t last[] = {5, 8};
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const TaskId before = builder.AddDelay(Time(first[rank]));
      const TaskId arrival = builder.AddJoin();
      const TaskId after = builder.AddDelay(Time(last[rank]));
      builder.AddEdge(before, arrival);
      builder.AddEdge(arrival, begin);
      builder.AddEdge(end, after);
      builder.AddSpan({rank, 0, TaskId(), before, before});
      builder.AddSpan({rank, 1, arrival, begin, end});
      builder.AddSpan({rank, 2, TaskId(), after, after});
    }
    transfer_ = transfer;
    program_ = builder.Build();
    simulation_ = Simulate(program_, 2, {.record_tasks = true});
  }

  TaskId transfer_;
  Program program_;
  Simulation simulation_;
};

TEST_F(CriticalOpsTest, ATransferWorksForTheOpsOfAllItsRanks) {
  const OpsOfTasks ops(program_);
  const auto spans = ops.Of(transfer_);
  ASSERT_EQ(spans.size(), 2u);
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_EQ(program_.spans[spans[rank]].rank, rank);
    EXPECT_EQ(program_.spans[spans[rank]].op, 1u);
  }
}

TEST_F(CriticalOpsTest, ThePathNamesTheRankThatWasWaitedFor) {
  const CriticalOps critical = FindCriticalOps(program_, simulation_.tasks, OpsOfTasks(program_));
  ASSERT_EQ(critical.path.size(), 3u);
  EXPECT_EQ(FindPathOfOps(program_, simulation_.tasks, OpsOfTasks(program_)).size(), 3u);
  const int64_t times[] = {0, 30, 50, 58};
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(critical.path[i].rank, 1u);
    EXPECT_EQ(critical.path[i].op, i);
    EXPECT_EQ(critical.path[i].begin.picoseconds(), times[i]);
    EXPECT_EQ(critical.path[i].end.picoseconds(), times[i + 1]);
  }
}

TEST_F(CriticalOpsTest, SlackIsTheSpareTimeOfEachOp) {
  const CriticalOps critical = FindCriticalOps(program_, simulation_.tasks, OpsOfTasks(program_));
  std::vector<int64_t> slack;
  for (const Time time : critical.slack) slack.push_back(time.picoseconds());
  EXPECT_EQ(slack, (std::vector<int64_t>{20, 0, 3, 0, 0, 0}));
}

}  // namespace critical_ops_test
}  // namespace rehearse
