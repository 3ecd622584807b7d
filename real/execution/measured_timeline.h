// Makes a Timeline like the simulator's from the op times of all ranks.
//
// A rank knows when it was ready for an op and when the op ended. The transfer of a collective
// begins when the last rank of its group is ready (rendezvous, as in sim/schedule/schedule.h), that
// of a message when both sides are; it ends for each rank when that rank is done. So a collective
// lasts from its earliest start to its latest end over the ranks' spans. Time 0 is when the first
// rank was ready for its first op.
#pragma once

#include <cstdint>
#include <vector>

#include "real/backends/backend.h"
#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// `times` by rank, then op, on one clock. Ops that never ended (in an aborted step) have no span.
Timeline MakeMeasuredTimeline(const Schedule& schedule,
                              const std::vector<std::vector<OpTime>>& times);

}  // namespace rehearse
