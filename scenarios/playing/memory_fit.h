// Whether a job fits its devices, which need not be of one size: every rank against its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/result.h"
#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

struct MemoryFit {
  uint32_t rank = 0;
  uint32_t device = 0;  // it is on this one
  MemoryUse use;
  Bytes capacity;  // of the device
  // Devices of the job have different sizes, so that this need not be the rank that needs most.
  bool sizes_differ = false;

  Bytes Room() const { return capacity - use.Total(); }  // negative: it does not fit
};

// The rank with the least room, of several the first. `placement`: rank -> device.
MemoryFit TightestFit(const Schedule& schedule, const std::vector<uint32_t>& placement,
                      const Cluster& cluster);

// "rank 8 (node2/gpu0, a100-40g)"
std::string NameOf(const MemoryFit& fit, const Cluster& cluster);

// Fills what the result says of memory.
void DescribeMemory(const MemoryFit& fit, const Cluster& cluster, Result* result);

}  // namespace rehearse
