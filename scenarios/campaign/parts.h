// How many parts of each kind a job depends on, counted from the cluster itself.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scenarios/campaign/long_run.h"
#include "sim/base/quantity.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

struct RunParts {
  std::array<double, kPartKinds> counts = {};  // planned stops are of the whole run, so one
  uint32_t machines = 1;                       // that the job has devices of
  double devices_per_machine = 1;
  BytesPerSecond nics;  // of a machine, towards the network; 0 where it has none
  BytesPerSecond copy;  // from a device to its host; 0 where no link is drawn
};

// Of NICs, cables and switches the job has the share of the cluster that it has of its devices. A
// cable is a link of the network and the one back.
RunParts CountParts(const Cluster& cluster, const std::vector<uint32_t>& placement);

}  // namespace rehearse
