// How much of each communication op is exposed: runs while its rank computes nothing.
//
// Where several axes are exposed at once each takes an equal share, and within an axis each of its
// ops does: the ops of an axis sum to AxisUse::exposed, all ops to
// Breakdown::exposed_communication.
#pragma once

#include <vector>

#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct OpExposure {
  double operations = 0;  // per rank, mean over all ranks
  Seconds seconds;        // active, mean over all ranks
  Seconds exposed;        // of that
};

// By role and op; zero for compute and for communicators of one rank.
std::vector<std::vector<OpExposure>> ExposureOfOps(const Schedule& schedule,
                                                   const Timeline& timeline);

}  // namespace rehearse
