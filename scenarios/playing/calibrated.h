// Scenarios on a calibrated machine: what changes when kernels and collectives take measured times.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/alike.h"
#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// How the machine would run the schedule: if its ranks share too few host cores for a thread per
// stream, every rank does one op after the other (as real/execution/execute.h decides); otherwise
// unchanged.
Schedule AsExecuted(Schedule schedule, const Cluster& cluster);

// What a reader of the result has to know: ops that the calibration's measurements do not cover
// (how many, and which one takes longest), a calibration that is not representative, or one of
// another machine although the cluster is this one ("local-cpu"). Empty without a calibration and
// if all is well.
std::vector<std::string> CalibrationNotes(const Schedule& schedule, const Cluster& cluster);

// Layers are told from each other only on a machine as it is specified.
Alike AlikeUnder(const Cluster& cluster);

}  // namespace rehearse
