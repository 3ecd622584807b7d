// How much a checkpoint is, and how long it takes to write and to read.
//
//   bytes     weights, and the optimizer's state: of each parameter once, whatever is replicated
//   copy      from devices to hosts: of each device its share of the bytes, over its own link
//   write     to the storage: the longer of all bytes at the storage's bandwidth and a machine's
//             share at that of its NICs; to a neighbour, only the latter
//   stall     synchronous: copy and write; asynchronous: copy
//   reload    what is resident on a machine, replicas included, over its NICs, or all bytes from
//             the storage, whichever takes longer; then over the devices' own links
//
// One machine that writes everything has all bytes as its share, and its devices' links as copy.
// Transfers have the NICs to themselves: what training communicates beside an asynchronous write is
// not slowed down.
#pragma once

#include "scenarios/campaign/parts.h"
#include "scenarios/readers/run_options.h"
#include "scenarios/readers/scenario.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct CheckpointCost {
  Bytes bytes;
  Seconds copy;
  Seconds write;
  Seconds stall;
  Seconds reload;
};

// Throws Error where the storage has no room for as many checkpoints as it is to keep, or where a
// bandwidth is not known.
CheckpointCost CostOfCheckpoint(const RunOptions& run, const RunParts& parts,
                                const Workload& workload, const Schedule& schedule);

// Of weights and optimizer state, each parameter once.
Bytes CheckpointBytes(const Workload& workload);

}  // namespace rehearse
