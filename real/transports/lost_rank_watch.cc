#include "real/transports/lost_rank_watch.h"

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "sim/base/say.h"

namespace rehearse {

LostRankWatch::LostRankWatch(Transport& transport, const char* who_waits,
                             std::function<bool()> is_inside)
    : transport_(transport), who_waits_(who_waits), is_inside_(std::move(is_inside)) {
  try {
    thread_ = std::thread([this] { Watch(); });
  } catch (const std::system_error&) {
    // There is no room for another thread, so the call goes on unwatched.
  }
}

LostRankWatch::~LostRankWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LostRankWatch::Watch() {
  constexpr std::chrono::milliseconds kBetweenLooks{100};
  constexpr int kLooksToReturn = 25;
  int looks = 0;  // since the loss, inside the call
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, kBetweenLooks, [this] { return is_over_; })) {
    const bool is_inside = !is_inside_ || is_inside_();
    try {
      transport_.Check();
    } catch (const std::exception& lost) {
      if (!is_inside) looks = 0;
      if (!is_inside || ++looks < kLooksToReturn) continue;
      Say(fmt::format("rank {}: {}; {} still waits for it", transport_.rank(), lost.what(),
                      who_waits_));
      std::_Exit(1);
    }
  }
}

}  // namespace rehearse
