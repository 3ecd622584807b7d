#include "scenarios/playing/memory_fit.h"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/schedule/memory.h"

namespace rehearse {

MemoryFit TightestFit(const Schedule& schedule, const std::vector<uint32_t>& placement,
                      const Cluster& cluster) {
  std::vector<std::optional<MemoryUse>> use_of_role(schedule.roles.size());
  MemoryFit tightest;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const uint32_t role = schedule.role_of_rank[rank];
    if (!use_of_role[role]) use_of_role[role] = MemoryOf(schedule.roles[role]);
    MemoryFit fit;
    fit.rank = rank;
    fit.use = *use_of_role[role];
    fit.device = placement[rank];
    fit.capacity = cluster.DeviceOf(fit.device).memory;
    fit.sizes_differ = rank > 0 && (tightest.sizes_differ || fit.capacity != tightest.capacity);
    if (rank == 0 || fit.Room() < tightest.Room()) {
      tightest = fit;
    } else {
      tightest.sizes_differ = fit.sizes_differ;
    }
  }
  return tightest;
}

std::string NameOf(const MemoryFit& fit, const Cluster& cluster) {
  return fmt::format("rank {} ({}, {})", fit.rank, cluster.DeviceName(fit.device),
                     cluster.DeviceOf(fit.device).name);
}

void DescribeMemory(const MemoryFit& fit, const Cluster& cluster, Result* result) {
  result->memory = fit.use;
  result->memory_capacity = fit.capacity;
  result->memory_rank = fit.rank;
  result->tightest_rank = fit.sizes_differ ? NameOf(fit, cluster) : "";
}

}  // namespace rehearse
