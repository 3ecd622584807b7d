// Which device of the cluster each rank is on.
//
//   "block"          the first free devices, in their order
//   "round-robin"    one from each machine that has a free one, in turns: rank 0 on the first
//                    machine, rank 1 on the second, ...
//   "even"           equally many on each machine, and as many as possible on each: as Slurm's
//                    --segment puts 32 nodes of 4 GPUs as 16 and 16 into racks that hold 18 each,
//                    where "block" would fill one rack and begin another
//   "0-7,16-23"      these devices, rank by rank; likewise [0, 1, "8-13"]
//   {"busy": 0.8}    what others leave free, of a step that is not one of several jobs
//                    (scenarios/readers/busy_cluster.h)
//
// There may be more devices than ranks; the others are spare.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/base/value_names.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

enum class PlacementOrder : uint8_t { kBlock, kRoundRobin, kEven };
inline constexpr ValueName<PlacementOrder> kPlacementOrders[] = {
    {"block", PlacementOrder::kBlock},
    {"round-robin", PlacementOrder::kRoundRobin},
    {"even", PlacementOrder::kEven}};

// The first `ranks` of the free devices in that order, rank by rank. Nothing if there are too few,
// or if they cannot be shared evenly where that is wanted.
std::vector<uint32_t> InOrder(PlacementOrder order, std::vector<uint32_t> free,
                              const Cluster& cluster, uint32_t ranks);

JsonShape PlacementShape();     // of a job
JsonShape OwnPlacementShape();  // of a scenario's own step

// Whether the devices are listed, rather than chosen among the free ones.
bool ListsDevices(const JsonReader& reader);

// By rank. `is_taken` says for each device whether others have it, which matters only if devices
// are not listed. Throws Error for anything else, for devices that do not exist or are listed
// twice, if there are too few, or if a list has not as many as there are ranks.
std::vector<uint32_t> ReadPlacement(const JsonReader& reader, const Cluster& cluster,
                                    uint32_t ranks, const std::vector<bool>& is_taken);

}  // namespace rehearse
