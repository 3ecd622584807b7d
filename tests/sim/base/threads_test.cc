#include "sim/base/threads.h"

#include <atomic>
#include <chrono>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/sanitizers.h"

namespace rehearse {
namespace threads_test {

TEST(ThreadsTest, AllAreJoined) {
  std::atomic<int> done = 0;
  {
    Threads threads;
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(threads.TryAdd([&] { ++done; }));
    EXPECT_EQ(threads.size(), 5u);
  }
  EXPECT_EQ(done, 5);
}

TEST(ThreadsDeathTest, WhereThereIsNoRoomThereIsNoThread) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes more addresses than the limit leaves";
  const auto fill = [] {
    const rlimit little{rlim_t{256} << 20, rlim_t{256} << 20};  // 31 stacks of 8 MiB at most
    setrlimit(RLIMIT_AS, &little);
    std::atomic<bool> ends = false;
    Threads threads;
    bool is_full = false;
    while (!is_full && threads.size() < 1000)
      is_full = !threads.TryAdd([&] {
        while (!ends) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    ends = true;
    threads.Join();
    _exit(is_full ? 0 : 1);
  };
  EXPECT_EXIT(fill(), testing::ExitedWithCode(0), "");
}

}  // namespace threads_test
}  // namespace rehearse
