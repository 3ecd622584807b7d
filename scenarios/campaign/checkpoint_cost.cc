#include "scenarios/campaign/checkpoint_cost.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/memory.h"

namespace rehearse {
namespace {

Place PlaceIn(const RunOptions& run, const char* key) {
  return {run.place.file, 0, fmt::format("{}/checkpoint{}", run.place.pointer, key)};
}

// Weights and optimizer state of a device, in the mean.
Bytes ResidentOf(const Workload& workload, const Schedule& schedule) {
  std::vector<double> ranks(schedule.roles.size());
  for (const uint32_t role : schedule.role_of_rank) ++ranks[role];
  Bytes sum;
  for (size_t i = 0; i < schedule.roles.size(); ++i) {
    const MemoryUse use = MemoryOf(schedule.roles[i]);
    Bytes kept = use.parameters + use.optimizer;
    if (workload.training.offloaded_optimizer) kept += use.host;
    sum += ranks[i] * kept;
  }
  return sum / static_cast<double>(schedule.ranks());
}

void CheckRoom(const RunOptions& run, Bytes bytes) {
  const CheckpointOptions& checkpoint = run.checkpoint;
  if (!checkpoint.storage_capacity) return;
  const Bytes needed = static_cast<double>(checkpoint.kept) * bytes;
  if (needed <= *checkpoint.storage_capacity) return;
  throw Error(PlaceIn(run, "/storage_capacity"),
              fmt::format("found {}, expected room for {} checkpoint{} of {}, which is {}",
                          PrintExactly(*checkpoint.storage_capacity), checkpoint.kept,
                          checkpoint.kept == 1 ? "" : "s", Print(bytes), Print(needed)));
}

}  // namespace

Bytes CheckpointBytes(const Workload& workload) {
  const Training& training = workload.training;
  const bool is_fp32 = training.precision == DType::kFp32;
  const Bytes weight =
      training.narrow_parameters ? SizeOf(DType::kFp8) : SizeOf(training.precision);
  // What masters add to the parameters; checkpoints have them whole.
  const bool has_masters = !is_fp32 && training.masters != MasterWeights::kNone;
  const Bytes master = has_masters ? SizeOf(DType::kFp32) : Bytes(0);
  return workload.network->Parameters() * (weight + master + 2.0 * SizeOf(training.moments));
}

CheckpointCost CostOfCheckpoint(const RunOptions& run, const RunParts& parts,
                                const Workload& workload, const Schedule& schedule) {
  const CheckpointOptions& checkpoint = run.checkpoint;
  const bool to_storage = checkpoint.to == CheckpointTarget::kStorage;
  CheckpointCost cost;
  cost.bytes = CheckpointBytes(workload);
  CheckRoom(run, cost.bytes);
  const BytesPerSecond link = checkpoint.copy_bandwidth.value_or(parts.copy);
  if (!(link > BytesPerSecond(0)))
    throw Error(PlaceIn(run, ""),
                "the cluster has no link from a device to its host; expected \"copy_bandwidth\"");
  const bool has_nics = parts.nics > BytesPerSecond(0);
  if (!to_storage && (!has_nics || parts.machines == 1))
    throw Error(PlaceIn(run, "/to"),
                "found \"neighbour\", expected \"storage\", as there is no other machine behind a "
                "NIC");
  const auto over_nics = [&](Bytes bytes) { return has_nics ? bytes / parts.nics : Seconds(0); };
  const auto over_storage = [&](Bytes bytes) {
    return to_storage ? bytes / *checkpoint.storage_bandwidth : Seconds(0);
  };
  const double writers = checkpoint.sharded ? parts.machines : 1;
  const Bytes share = cost.bytes / writers;
  cost.copy = share / parts.devices_per_machine / link;
  cost.write = std::max(over_storage(cost.bytes), over_nics(share));
  cost.stall = checkpoint.asynchronous ? cost.copy : cost.copy + cost.write;
  const Bytes resident = ResidentOf(workload, schedule);
  cost.reload =
      std::max(over_storage(cost.bytes), over_nics(parts.devices_per_machine * resident)) +
      resident / link;
  return cost;
}

}  // namespace rehearse
