// Watches the other ranks while this one is in a call that cannot be interrupted (NCCL making
// communicators, any call of MPI).
//
// If a rank is lost and the call still has not returned a few seconds later, says which and ends
// the process with exit status 1: there is no other way out.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "real/transports/transport.h"

namespace rehearse {

class LostRankWatch {
 public:
  // Uses only the transport's Check, on another thread; `who_waits` is "NCCL", for the message.
  // `is_inside` says ten times a second whether the process is in such a call; it always is if
  // there is nothing to ask.
  LostRankWatch(Transport& transport, const char* who_waits,
                std::function<bool()> is_inside = nullptr);
  ~LostRankWatch();
  LostRankWatch(const LostRankWatch&) = delete;
  LostRankWatch& operator=(const LostRankWatch&) = delete;

 private:
  void Watch();

  Transport& transport_;
  const char* const who_waits_;
  const std::function<bool()> is_inside_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace rehearse
