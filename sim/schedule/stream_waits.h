// Where the streams of a role wait for each other. An op that has nothing to do with other streams
// matters only to its own: it begins when the op before it ends.
#pragma once

#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

// By place in Role::ops, true if it holds for any copy.
struct StreamWaits {
  std::vector<bool> waits;    // is after an op of another stream
  std::vector<bool> awaited;  // an op of another stream is after it
};

// What ops name must exist.
StreamWaits StreamWaitsOf(const Role& role);

}  // namespace rehearse
