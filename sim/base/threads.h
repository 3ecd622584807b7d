// Threads of a piece of work, joined at its end, whatever happens.
#pragma once

#include <cstddef>
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

  // False where there is no room for another one (ulimit -u, -v): then nothing has begun.
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

}  // namespace rehearse
