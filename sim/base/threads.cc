#include "sim/base/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>

namespace rehearse {

void InParallel(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::exception_ptr> faults(count);
  std::atomic<size_t> next = 0;
  constexpr size_t kUndecided = 0;
  std::atomic<size_t> workers = kUndecided;  // this thread among them
  const auto loop = [&](size_t self) {
    workers.wait(kUndecided);
    if (self >= workers) return;
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        faults[i] = std::current_exception();
      }
    }
  };
  Threads others;
  const size_t wanted = std::max<size_t>(1, std::min<size_t>(threads, count));
  while (others.size() + 1 < wanted &&
         others.TryAdd([&loop, self = others.size() + 1] { loop(self); }))
    continue;
  workers = others.size() + 1 == wanted ? wanted : 1 + others.size() / 4;
  workers.notify_all();
  loop(0);
  others.Join();
  for (const std::exception_ptr& fault : faults)
    if (fault) std::rethrow_exception(fault);
}

}  // namespace rehearse
