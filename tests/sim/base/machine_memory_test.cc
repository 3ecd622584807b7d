#include "sim/base/machine_memory.h"

#include <gtest/gtest.h>

#include "sim/base/output_file.h"
#include "tests/support/temporary_folder.h"

namespace rehearse {
namespace machine_memory_test {

class MachineMemoryTest : public testing::Test {
 protected:
  void Say(const std::string& path, const std::string& text) {
    const std::string whole = folder_.path().string() + path;
    MakeFolder(whole.substr(0, whole.rfind('/')));
    WriteFileAtomically(whole, text);
  }
  std::optional<uint64_t> Free() const { return FreeMemoryBelow(folder_.path().string()); }

  TemporaryFolder folder_;
};

TEST_F(MachineMemoryTest, IsUnknownWhereNothingSaysIt) { EXPECT_EQ(Free(), std::nullopt); }

TEST_F(MachineMemoryTest, IsWhatTheKernelCallsAvailable) {
  Say("/proc/meminfo", "MemTotal:  24000 kB\nMemFree: 5 kB\nMemAvailable:   20000 kB\n");
  EXPECT_EQ(Free(), 20000 * 1024);
}

TEST_F(MachineMemoryTest, IsWhatTheTightestGroupLeaves) {
  Say("/proc/meminfo", "MemAvailable: 20000 kB\n");
  Say("/proc/self/cgroup", "0::/batch/job\n");
  Say("/sys/fs/cgroup/batch/job/memory.max", "max\n");
  Say("/sys/fs/cgroup/batch/job/memory.current", "1000000\n");
  EXPECT_EQ(Free(), 20000 * 1024);
  // The group around it has a limit; a part of what it took are files that nobody uses.
  Say("/sys/fs/cgroup/batch/memory.max", "9000000\n");
  Say("/sys/fs/cgroup/batch/memory.current", "5000000\n");
  EXPECT_EQ(Free(), 4000000);
  Say("/sys/fs/cgroup/batch/memory.stat", "anon 3000000\ninactive_file 1500000\n");
  EXPECT_EQ(Free(), 5500000);
  Say("/sys/fs/cgroup/batch/memory.current", "15000000\n");
  EXPECT_EQ(Free(), 0);
}

TEST_F(MachineMemoryTest, KnowsGroupsOfTheFirstVersion) {
  Say("/proc/self/cgroup", "7:cpu,cpuacct:/x\n5:memory:/job\n");
  Say("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8000\n");
  Say("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3000\n");
  EXPECT_EQ(Free(), 5000);
}

TEST_F(MachineMemoryTest, OfThisMachineIsSomething) {
  const std::optional<uint64_t> left = FreeMemory();
  if (!left) GTEST_SKIP() << "this system does not say";
  EXPECT_GT(*left, 1'000'000);
}

}  // namespace machine_memory_test
}  // namespace rehearse
