#include "scenarios/playing/memory_fit.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/playing/library_memory.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/caching_allocator.h"
#include "sim/schedule/memory.h"

namespace rehearse {

MemoryFit TightestFit(const Schedule& schedule, const std::vector<uint32_t>& placement,
                      const Cluster& cluster, double headroom) {
  std::vector<bool> is_played(schedule.roles.size());
  for (const uint32_t role : schedule.role_of_rank) is_played[role] = true;
  std::vector<MemoryUse> uses(schedule.roles.size());
  for (size_t role = 0; role < uses.size(); ++role)
    if (is_played[role]) uses[role] = MemoryOf(schedule.roles[role]);
  return TightestFit(schedule, uses, placement, cluster, headroom);
}

MemoryFit TightestFit(const Schedule& schedule, const std::vector<MemoryUse>& of_roles,
                      const std::vector<uint32_t>& placement, const Cluster& cluster,
                      double headroom) {
  LibraryMemory libraries(cluster);
  std::map<std::pair<uint32_t, uint32_t>, Bytes> reserves;  // by role and kind of device
  MemoryFit tightest;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const uint32_t role = schedule.role_of_rank[rank];
    MemoryFit fit;
    fit.rank = rank;
    fit.headroom = headroom;
    fit.use = of_roles[role];
    fit.device = placement[rank];
    fit.capacity = cluster.DeviceOf(fit.device).memory;
    const auto [reserve, is_new] = reserves.try_emplace({role, cluster.SpecOf(fit.device)});
    if (is_new)
      reserve->second = libraries.Of(schedule, schedule.roles[role], placement, fit.device);
    fit.reserve = reserve->second;
    fit.sizes_differ = rank > 0 && (tightest.sizes_differ || fit.capacity != tightest.capacity);
    if (rank == 0 || fit.Room() < tightest.Room()) {
      tightest = fit;
    } else {
      tightest.sizes_differ = fit.sizes_differ;
    }
  }
  return tightest;
}

void CheckFit(const MemoryFit& fit, const Cluster& cluster, const Place& place) {
  if (fit.Room() >= Bytes(0)) return;
  const MemoryUse& use = fit.use;
  const std::string besides =
      fit.reserve > Bytes(0)
          ? fmt::format(" and about {} for driver, NCCL and cuBLAS", Print(fit.reserve))
          : "";
  const std::string free = fit.headroom > 0 ? fmt::format(", of which {} must stay free",
                                                          Print(fit.headroom * fit.capacity))
                                            : "";
  throw Error(
      place,
      fmt::format("out of memory: {} needs {} (parameters {}, gradients {}, optimizer {}, "
                  "activations {}, buffers {}){}, the device {} has {}{}; --allow-oom plays it "
                  "anyway",
                  fit.sizes_differ ? NameOf(fit, cluster) : "a rank", Print(use.Total()),
                  Print(use.parameters), Print(use.gradients), Print(use.optimizer),
                  Print(use.activations), Print(use.buffers), besides,
                  cluster.DeviceOf(fit.device).name, Print(fit.capacity), free));
}

Bytes IdleMemory(const Schedule& schedule, const MemoryFit& fit, const Cluster& cluster,
                 AllocatorKind allocator) {
  if (allocator == AllocatorKind::kNone || !IsGpu(cluster.DeviceOf(fit.device))) return Bytes(0);
  const AllocatorRules rules{.expandable = allocator == AllocatorKind::kExpandable,
                             .room = fit.capacity - fit.reserve};
  const AllocatedMemory played =
      PlayAllocations(schedule.roles[schedule.role_of_rank[fit.rank]], rules);
  return std::max(Bytes(0), played.reserved - fit.use.Total());
}

void CheckKept(const Role& role, const Cluster& cluster, const Place& place) {
  Bytes most;
  for (const DeviceSpec& spec : cluster.device_specs()) most = std::max(most, spec.memory);
  Bytes kept;
  for (const Buffer& buffer : role.buffers) {
    const bool is_kept = buffer.kind == BufferKind::kParameter ||
                         buffer.kind == BufferKind::kGradient ||
                         buffer.kind == BufferKind::kOptimizer;
    if (is_kept && !buffer.on_host && !buffer.borrowed) kept += buffer.bytes;
  }
  if (kept <= most) return;
  throw KeepsTooMuch(place, fmt::format("out of memory: a rank keeps {}, devices have up to {}",
                                        Print(kept), Print(most)));
}

std::string NameOf(const MemoryFit& fit, const Cluster& cluster) {
  return fmt::format("rank {} ({}, {})", fit.rank, cluster.DeviceName(fit.device),
                     cluster.DeviceOf(fit.device).name);
}

void DescribeMemory(const MemoryFit& fit, const Cluster& cluster, Result* result) {
  result->memory = fit.use;
  result->memory_capacity = fit.capacity;
  result->memory_reserve = fit.reserve;
  result->memory_headroom = fit.headroom;
  result->memory_rank = fit.rank;
  result->tightest_rank = fit.sizes_differ ? NameOf(fit, cluster) : "";
}

}  // namespace rehearse
