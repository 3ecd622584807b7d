// Whether a job fits its devices, which need not have one size: each rank is checked against its
// own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/readers/memory_options.h"
#include "sim/base/error.h"
#include "sim/report/result.h"
#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

struct MemoryFit {
  uint32_t rank = 0;
  uint32_t device = 0;  // that the rank is on
  MemoryUse use;
  Bytes capacity;  // of the device
  // Of driver and libraries (scenarios/playing/library_memory.h). What an allocator leaves idle is
  // not included (sim/schedule/caching_allocator.h).
  Bytes reserve;
  // Devices of the job have different sizes, so this need not be the rank that needs most.
  bool sizes_differ = false;

  double headroom = 0;  // share of the capacity that must stay free

  // Arrays, and what else is taken. What an allocator leaves idle does not count: it gives that
  // back before it gives up.
  Bytes Needed() const { return use.Total() + reserve; }
  Bytes Room() const { return (1 - headroom) * capacity - Needed(); }  // negative: does not fit
};

// The rank with the least room, the first of several. `placement`: rank -> device.
MemoryFit TightestFit(const Schedule& schedule, const std::vector<uint32_t>& placement,
                      const Cluster& cluster, double headroom = 0);

// The same for roles that need so much.
MemoryFit TightestFit(const Schedule& schedule, const std::vector<MemoryUse>& of_roles,
                      const std::vector<uint32_t>& placement, const Cluster& cluster,
                      double headroom = 0);

// Throws Error if it does not fit.
void CheckFit(const MemoryFit& fit, const Cluster& cluster, const Place& place);

// Parameters, gradients and optimizer state alone are more than any device has. Says less than
// CheckFit() would, which has to know the whole step.
class KeepsTooMuch : public Error {
 public:
  using Error::Error;
};
void CheckKept(const Role& role, const Cluster& cluster, const Place& place);

// "rank 8 (node2/gpu0, a100-40g)"
std::string NameOf(const MemoryFit& fit, const Cluster& cluster);

// What the allocator of a framework leaves idle of what it has reserved, for that rank's role; 0 on
// devices other than GPUs.
Bytes IdleMemory(const Schedule& schedule, const MemoryFit& fit, const Cluster& cluster,
                 AllocatorKind allocator);

// Fills in what the result says about memory.
void DescribeMemory(const MemoryFit& fit, const Cluster& cluster, Result* result);

}  // namespace rehearse
