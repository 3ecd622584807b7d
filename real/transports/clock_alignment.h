// Clocks of different ranks brought onto rank 0's, by round trips (Cristian 1989).
//
// In a round trip rank 0 notes t0, the other rank answers with its clock t, rank 0 notes t1: its
// offset is (t0 + t1)/2 - t, wrong by at most (t1 - t0)/2. Of many round trips only the quickest
// quarter counts, its median. Done before and after the steps, so that a drift shows; between the
// two it is linear. Ranks that read the same clock (threads, processes of one machine) need no
// correction: then offsets measured all the same say how good the method is.
#pragma once

#include <cstdint>
#include <vector>

#include "real/transports/transport.h"

namespace rehearse {

struct ClockSample {
  int64_t at = 0;         // nanoseconds, rank 0's clock
  double offset = 0;      // what to add to the rank's clock, nanoseconds
  double round_trip = 0;  // of the quickest, nanoseconds
};

// Measures all ranks against rank 0: by rank there, empty elsewhere. All ranks must call it.
std::vector<ClockSample> MeasureClocks(Transport& transport);

// One rank's clock -> rank 0's.
struct ClockMap {
  ClockSample before;
  ClockSample after;

  int64_t ToRank0(int64_t nanoseconds) const;
  // Nanoseconds a second by which the rank's clock is slow.
  double Drift() const;
};

}  // namespace rehearse
