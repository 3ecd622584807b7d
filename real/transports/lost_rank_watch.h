// Watches the other ranks while this one waits in a call that cannot be interrupted (NCCL making
// communicators, MPI starting and ending).
//
// If a rank is lost and the call still has not returned a few seconds later, says which and ends
// the process with exit status 1: there is no other way out.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "real/transports/transport.h"

namespace rehearse {

class LostRankWatch {
 public:
  // Uses only the transport's Check, on another thread; `who_waits` is "NCCL", for the message.
  LostRankWatch(Transport& transport, const char* who_waits);
  ~LostRankWatch();
  LostRankWatch(const LostRankWatch&) = delete;
  LostRankWatch& operator=(const LostRankWatch&) = delete;

 private:
  void Watch();

  Transport& transport_;
  const char* const who_waits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace rehearse
