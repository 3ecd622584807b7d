// Scenarios on a machine that was calibrated: what changes when kernels and collectives take
// measured times.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// How the machine would run the schedule: where its ranks share host cores and those are too few
// for a thread a stream, every rank does one op after the other (real/execution/execute.h decides
// so too); else as it is.
Schedule AsExecuted(Schedule schedule, const Cluster& cluster);

// What a reader of the result has to know: ops that the calibration's measurements do not
// cover (how many, which one takes longest), a calibration that is not representative, one of
// another machine where the cluster is this one ("local-cpu"). Empty without a calibration and
// where all is well.
std::vector<std::string> CalibrationNotes(const Schedule& schedule, const Cluster& cluster);

}  // namespace rehearse
