// The products and attention cores of a step: which there are, how often, and which of a user's
// points (topology/devices/device_points.h) are theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"
#include "topology/devices/device_points.h"

namespace rehearse {

struct StepProduct {
  PointKey key;  // of an attention core, heads of all sequences are counted, and the batch is 1
  uint64_t count = 0;  // over all ranks
  Seconds time;        // of one, as the device has it
};

// Those that take longest, all together, come first. Rank r is on device placement[r].
std::vector<StepProduct> ProductsOf(const Schedule& schedule,
                                    const std::vector<uint32_t>& placement, const Cluster& cluster);

// As a file that --device-points reads, with a column `count` for people.
std::string ToCsv(const std::vector<StepProduct>& products);

// How many points are those of how many ops, and which are none's; empty without points.
std::vector<std::string> DevicePointNotes(const Schedule& schedule, const Cluster& cluster);

}  // namespace rehearse
