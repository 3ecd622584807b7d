// Ranks as threads of one process: messages are copied once, from the sender's memory to the
// receiver's, by the receiver's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "real/transports/transport.h"

namespace rehearse {

// What the ranks of one run share.
class ThreadWorld {
 public:
  explicit ThreadWorld(uint32_t ranks);
  ~ThreadWorld();

  std::unique_ptr<Transport> Join(uint32_t rank);

  struct State;  // only transport_threads.cc looks into it

 private:
  std::unique_ptr<State> state_;
};

// Runs `body` as each of this many ranks, each on its own thread, and returns when all have ended.
// If one throws, the others are told (RankLost), and the first exception that is not RankLost is
// rethrown.
void RunAsThreads(uint32_t ranks, const std::function<void(Transport&)>& body);

}  // namespace rehearse
