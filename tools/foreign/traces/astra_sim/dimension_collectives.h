// Collectives of all ranks dimension by dimension, as ASTRA-sim carries them out (its Sys.cc).
//
// A collective is cut into preferred-dataset-splits chunks, each of which goes through phases: of
// an all-reduce, reduce-scatter in the first dimension, then the next, an all-reduce in the last,
// and all-gathers back. Each phase is a collective of our own on the NPUs that differ in that
// dimension only, by the algorithm that the system names for it, on bare links;
// active-chunks-per-dimension of them are under way in a dimension at once, first come, first
// served. What the ends take follows each phase: endpoint-delay for each message and once more, and
// three passes through local memory for each sum, so that a ring of p in which each message has m
// bytes takes
//   all-reduce  2(p-1)·(α + m/B) + (2p-1)·endpoint-delay + 3(p-1)·m/local-mem-bw
// An all-to-all by a ring passes p(p-1)/2 messages from neighbour to neighbour.
//
// Collectives of some of the ranks are one phase there: by the algorithm of the only dimension, or
// a ring where there are several.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.h"
#include "tools/foreign/machines/astra_sim/import_network.h"
#include "tools/foreign/traces/astra_sim/system_file.h"

namespace rehearse {

// Changes the collectives of a schedule; appends to `remarks`. Throws Error where the schedule has
// other ranks than the dimensions, keeps what it repeats once, or would have too many ops.
void GoByDimension(const std::vector<AstraDimension>& dimensions, const AstraSystem& system,
                   Schedule* schedule, std::vector<std::string>* remarks);

}  // namespace rehearse
