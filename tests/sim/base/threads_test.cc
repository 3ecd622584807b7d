#include "sim/base/threads.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sim/base/progress.h"
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

TEST(ThreadsTest, NoMoreWorkAtOnceThanAreAskedFor) {
  std::mutex mutex;
  std::set<std::thread::id> workers;
  std::vector<int> done(50, 0);
  InParallel(50, 3, [&](size_t i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    workers.insert(std::this_thread::get_id());
    ++done[i];
  });
  EXPECT_LE(workers.size(), 3u);
  EXPECT_EQ(done, std::vector<int>(50, 1));
}

// Two pieces of work, each of which waits until the other has begun.
TEST(ThreadsTest, WorkIsDoneAtOnce) {
  std::atomic<int> begun = 0;
  InParallel(2, 2, [&](size_t) {
    ++begun;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun < 2 && std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(begun, 2);
  });
}

// A part of a whole says at its beginning that so much of the whole is done.
TEST(PartObserverTest, APartBeginsWhereTheOneBeforeEnded) {
  struct Noting : ProgressObserver {
    void Done(double parts) override { noted.push_back(parts); }
    std::vector<double> noted;
  } whole;
  PartObserver part(whole, 3, "simulating");
  part.Begin("simulating", "events", 4);
  part.Done(1);
  part.Done(8);  // more than announced
  part.Begin("something else", "things", 4);
  part.Done(2);
  EXPECT_EQ(whole.noted, (std::vector<double>{3, 3.25, 4, 3, 3}));
}

}  // namespace threads_test
}  // namespace rehearse
