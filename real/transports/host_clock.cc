#include "real/transports/host_clock.h"

#include <chrono>

namespace rehearse {

int64_t NowNanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace rehearse
