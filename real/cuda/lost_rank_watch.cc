#include "real/cuda/lost_rank_watch.h"

#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "sim/base/say.h"

namespace rehearse {

LostRankWatch::LostRankWatch(Transport& transport)
    : transport_(transport), thread_([this] { Watch(); }) {}

LostRankWatch::~LostRankWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LostRankWatch::Watch() {
  constexpr std::chrono::milliseconds kBetweenLooks{100};
  constexpr int kLooksToReturn = 50;
  int looks = 0;  // since the loss
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, kBetweenLooks, [this] { return is_over_; })) {
    try {
      transport_.Check();
    } catch (const std::exception& lost) {
      if (++looks < kLooksToReturn) continue;
      Say(fmt::format("rank {}: {}; NCCL still waits for it", transport_.rank(), lost.what()));
      std::_Exit(1);
    }
  }
}

}  // namespace rehearse
