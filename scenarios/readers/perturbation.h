// The scenario's "simulator": {"perturbation": ...}: what is not as steady as the model
// (collectives/lowering/perturbation.h says what it means).
//
//   "perturbation": {
//     "seed": 7,                        for the jitters; must be given with them
//     "compute_jitter": 0.03,           standard deviation of each kernel's time, 0 to 0.3
//     "link_jitter": 0.05,              standard deviation of each link's rate, 0 to 0.3
//     "stragglers": [{"devices": "node3/gpu1", "compute_time": "1.5x"}],
//     "events": [{"at": "12ms", "links": "node3/nic*", "bandwidth": "0.5x"},
//                {"at": "20ms", "links": "node3/nic0", "fail": true},
//                {"at": "25ms", "links": "node3/nic0", "recover": true}]
//   }
//
// Every key is optional. "devices" and "links" are patterns (topology/cluster/selectors.h), links
// with "one_way" as in edits. A bandwidth is absolute, relative ("0.5x") or a difference
// ("-5GBps"), always from the link's own after all edits, whatever happened to it before; "recover"
// restores that. Transfers in flight go on at their new rates. When a link fails, they take the
// path that avoids all links that ever fail in the step; if there is none, they wait for the link
// to recover. If it never does, the step cannot end, which is an error that names the link.
#pragma once

#include "collectives/lowering/perturbation.h"
#include "collectives/lowering/transfers.h"
#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

const ObjectShape& PerturbationShape();

// Throws Error for values out of range, patterns that select nothing, and link events or jitter
// with the fidelity formula, which has no links.
Perturbation ReadPerturbation(const JsonReader& object, const Cluster& cluster, Fidelity fidelity);

}  // namespace rehearse
