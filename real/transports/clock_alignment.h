// Aligns the clocks of ranks with rank 0's, by round trips (Cristian 1989).
//
// In a round trip rank 0 notes t0, the other rank answers with its clock t, and rank 0 notes t1:
// the offset is (t0 + t1)/2 - t, wrong by at most (t1 - t0)/2. Of many round trips, the median of
// the quickest quarter counts. This is done before and after the steps, so that drift shows;
// between the two, the offset is linear. Ranks that read the same clock (threads, processes of one
// machine) need no correction; their measured offsets then show how good the method is.
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

// Measures all ranks against rank 0; by rank on rank 0, empty elsewhere. All ranks must call it.
std::vector<ClockSample> MeasureClocks(Transport& transport);

// One rank's clock -> rank 0's.
struct ClockMap {
  ClockSample before;
  ClockSample after;

  int64_t ToRank0(int64_t nanoseconds) const;
  // Nanoseconds per second by which the rank's clock is slow.
  double Drift() const;
};

}  // namespace rehearse
