// A collective step by step, for a page that plays it: which blocks of data each message carries,
// over which links, from when to when.
//
// The times are those of a simulation at fidelity step. The steps of a ring, which the simulator
// plays as a flow of several steps for each edge, are equal parts of the time of the whole ring.
//
//   { "schema": "rehearse.film.v1", "made_by", "title", "kind", "algorithm", "protocol", "bytes",
//     "seconds", "end" (picoseconds, like all times), "groups",
//     "ranks": [[rank, name, group]],         of all groups; places count them, then switches
//     "switches": 0,                          that add
//     "parts": [{"chunks": 4, "share": 1}],   channels, trees: of each group in turn
//     "full": 4,                              contributions of a block that is done
//     "holds": column,                        what each has at first: place, part, chunk, hue
//     "wants": column,                        what it is to have at the end: place, part, chunk
//     "ways": [[from, to, capacity]],         names of what a link joins, bytes a second
//     "cluster": {...},                       scenarios/reporting/cluster_drawing.h; records: ways
//     "moves": {columns} }
//   A move has begin, took, bytes, from, to (places), part, adds (1: the receiver adds), and counts
//   of what it takes from "chunks" (pairs: read, written) and "crossed" (ways, from the sender on).
#pragma once

#include <memory>
#include <string>

#include "collectives/lowering/trial.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// The data of the page, packed as in a file: base64 only. Throws Error if there is too much to
// watch, or if the cluster's collectives were measured, and so have no steps.
std::string FilmData(const Trial& trial, Bytes bytes, std::shared_ptr<const Cluster> cluster);

// The same of a collective of a scenario's step, with all that happens meanwhile: that of this
// name, or of "name#3" its third time, on the first rank that does it; other groups do it beside
// it. Times count from its first message on. Throws Error if there is none.
std::string FilmDataOfOp(const Scenario& scenario, const std::string& op,
                         ProgressObserver& observer);

}  // namespace rehearse
