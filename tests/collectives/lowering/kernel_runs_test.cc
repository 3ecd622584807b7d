#include "collectives/lowering/kernel_runs.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace kernel_runs_test {

Op Kernel(std::vector<OpId> after = {}) {
  Op op;
  op.stream = StreamId(0);
  op.work = Compute{};
  op.after = std::move(after);
  return op;
}

Op AllReduce(std::vector<OpId> after) {
  Op op;
  op.stream = StreamId(1);
  op.work = Collective{};
  op.after = std::move(after);
  return op;
}

// Two kernels, a collective after them, a third kernel, which it does not hold up, and a fourth,
// which waits for it.
Role Example() {
  Role role;
  role.streams = {{"compute"}, {"data", StreamKind::kCommunication}};
  role.ops = {Kernel(), Kernel(), AllReduce({OpId(1)}), Kernel(), Kernel({OpId(2)})};
  return role;
}

TEST(KernelRunsTest, EndWhereStreamsWaitForEachOther) {
  const KernelRuns runs = FindRuns(Example(), true);
  EXPECT_EQ(runs.length, (std::vector<uint32_t>{2, 1, 1, 1, 1}));
  EXPECT_EQ(runs.waits, (std::vector<bool>{false, false, true, false, true}));
  EXPECT_EQ(runs.count, 4u);
}

TEST(KernelRunsTest, AreSingleOpsIfThereAreNoSeries) {
  const KernelRuns runs = FindRuns(Example(), false);
  EXPECT_EQ(runs.length, std::vector<uint32_t>(5, 1));
  EXPECT_EQ(runs.count, 5u);
}

// The body is a run of its own, and so are its ten copies and what comes behind.
TEST(KernelRunsTest, OfCopiesCountLikeTheFirst) {
  Role role;
  role.streams = {{"compute"}};
  role.ops = {Kernel(), Kernel(), Kernel(), Kernel()};
  role.repeats = {{.begin = 1, .end = 3, .times = 10}};
  const KernelRuns runs = FindRuns(role, true);
  EXPECT_EQ(runs.length, (std::vector<uint32_t>{1, 2, 1, 1}));
  EXPECT_EQ(runs.count, 13u);
}

}  // namespace kernel_runs_test
}  // namespace rehearse
