// Threads of a piece of work, joined at its end, whatever happens.
#pragma once

#include <cstddef>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace rehearse {

class Threads {
 public:
  Threads() = default;
  ~Threads() { Join(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // False if there is no room for another thread (ulimit -u, -v); nothing has begun then.
  template <typename Work>
  [[nodiscard]] bool TryAdd(Work work) {
    try {
      threads_.reserve(threads_.size() + 1);  // else what is made could not be kept
      threads_.emplace_back(std::move(work));
    } catch (const std::system_error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  size_t size() const { return threads_.size(); }

 private:
  std::vector<std::thread> threads_;
};

// Calls work(0) to work(count - 1), in any order, on this many threads; 0: as many as the machine
// has cores. If there is no room for them, a quarter of those that fit do it, which leaves the
// memory of the others to the work. When all are done, the first exception by index is thrown
// again.
void InParallel(size_t count, unsigned threads, const std::function<void(size_t)>& work);

}  // namespace rehearse
