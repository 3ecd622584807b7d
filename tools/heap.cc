#include "tools/heap.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef REHEARSE_HAS_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#include "sim/base/say.h"
#include "sim/base/spare_memory.h"

#ifdef REHEARSE_HAS_JEMALLOC
// jemalloc reads this before main. A plan is millions of small blocks, which it allocates and frees
// more quickly than glibc's malloc: sim/SPEED.md has what that saves. Large pages for the heap were
// tried in searches and were slower, so jemalloc is not asked for them.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): its name is jemalloc's
[[gnu::visibility("default")]] const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
#endif

namespace rehearse {
namespace {

#ifdef REHEARSE_HAS_JEMALLOC
// jemalloc makes the arena of a thread when the thread first allocates, and crashes where there is
// no room for it. So where addresses are limited (ulimit -v), all are made now, 2 MiB each.
void MakeArenasIfLimited() {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return;
  unsigned count = 0;
  size_t size = sizeof count;
  if (mallctl("opt.narenas", &count, &size, nullptr, 0) != 0) return;
  while (count > 0) {  // the first one is the last, and stays this thread's
    --count;
    if (mallctl("thread.arena", nullptr, nullptr, &count, sizeof count) == 0) continue;
    Say("out of memory: there is no room for a heap (ulimit -v)");
    _exit(1);
  }
}

size_t StatisticOf(const char* name) {
  size_t value = 0;
  size_t size = sizeof value;
  return mallctl(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

size_t KeptBytes() {
  uint64_t epoch = 1;  // statistics are those of the last one
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
  const size_t active = StatisticOf("stats.active");
  return std::max(StatisticOf("stats.resident"), active) - active;
}

void ReturnKeptBytes() {
  const std::string name = fmt::format("arena.{}.purge", MALLCTL_ARENAS_ALL);
  mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
}
#else
// The bytes that were returned and glibc still counts as free, as far as they are not used again.
std::atomic<size_t> returned_bytes = 0;

size_t KeptBytes() {
  const size_t free = mallinfo2().fordblks;
  const size_t returned = std::min(returned_bytes.load(), free);
  returned_bytes = returned;
  return free - returned;
}

void ReturnKeptBytes() {
  malloc_trim(0);
  returned_bytes = mallinfo2().fordblks;
}
#endif

// Blocks of many sizes leave each other no room, so that a search over large scenarios would come
// to keep several times what any of them needs.
void ReturnWhatIsTooMuch() {
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::rep> next_look = 0;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  Clock::rep due = next_look.load();
  constexpr Clock::duration kBetweenLooks = std::chrono::milliseconds(100);
  if (now < due || !next_look.compare_exchange_strong(due, now + kBetweenLooks.count())) return;
  static const size_t limit =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 4;
  if (KeptBytes() > limit) ReturnKeptBytes();
}

}  // namespace

void KeepFreedMemory() {
  SetSpareMemoryHandler(ReturnWhatIsTooMuch);
#ifdef REHEARSE_HAS_JEMALLOC
  MakeArenasIfLimited();
#endif
#ifndef REHEARSE_HAS_JEMALLOC
  // Large blocks come from the heap and return to it: this saves a fifth of the time of a large
  // simulation. The heap begins as a gigabyte of addresses, which the kernel may back with large
  // pages as they are touched: this saves another tenth or two.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 1 << 30);
  const auto top = [] {  // the heap's end, at a large page
    constexpr uintptr_t kLargePage = 2 << 20;
    char* const end = static_cast<char*>(sbrk(0));
    return end - reinterpret_cast<uintptr_t>(end) % kLargePage;
  };
  char* const before = top();
  void* volatile block = std::malloc(256 << 10);  // it grows the heap
  std::free(block);
  if (top() > before) madvise(before, static_cast<size_t>(top() - before), MADV_HUGEPAGE);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

}  // namespace rehearse
