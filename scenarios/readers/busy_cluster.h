// What others leave free on a cluster that they use, too: a scenario's
//
//   "placement": {"busy": 0.8,          share of the devices that others hold
//                 "seed": 3,            of one draw; else several draws, and the range is shown
//                 "unit": 8,            devices that are given out together; else a machine or,
//                                       where one has more than 16, a tray of 4
//                 "takes": "block"}     which of the free ones: "round-robin", "even", likewise
//
// How a draw goes: others' jobs have 1, 2, 4, ... devices, up to an eighth of the cluster, each
// size as often as any other. Each takes the first free units in order; those below a unit share
// units, the fullest that has room. Once their share is held, jobs end at random and others begin,
// until each has been replaced several times over: what is free then lies in fragments. The
// scenario's step waits for whole units, as schedulers give them to jobs of several machines: if
// too few are free, more jobs end, and nothing else begins in what they leave. A step below a unit
// takes the fullest unit that has room for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/readers/placement.h"
#include "sim/base/json_fields.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

struct BusyCluster {
  double busy = 0;               // share of the devices
  std::optional<uint64_t> seed;  // nothing: several are tried
  uint32_t unit = 0;             // devices; 0: as above
  PlacementOrder takes = PlacementOrder::kBlock;
};

const Fields<BusyCluster>& BusyClusterFields();

// Throws Error, at the reader, where others and so many ranks do not fit, ranks cannot be shared
// evenly although they are to be, a unit is larger than any machine, or devices are of several
// kinds.
void CheckBusyCluster(const JsonReader& reader, const BusyCluster& busy, const Cluster& cluster,
                      uint32_t ranks);

// By rank, in one draw, if CheckBusyCluster() has nothing against it. Nothing if "even" is wanted,
// and even an empty cluster cannot be shared evenly.
std::vector<uint32_t> DrawPlacement(const BusyCluster& busy, const Cluster& cluster, uint32_t ranks,
                                    uint64_t seed);

}  // namespace rehearse
