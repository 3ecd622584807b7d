// What can be changed in a page that simulates. It follows from the scenario, so that only what it
// has is offered.
//
// Each is an object:
//   {"kind": "factor", "label": "NIC and network bandwidth", "what": "bandwidth"|"latency",
//    "links": ["node*/nic*->switch*"], "now": "25 GB/s"}     an edit of these, times 1/10 to 10
//   {"kind": "compute", "label": "Compute", "now": "A100"}   an edit of all devices
//   {"kind": "fail", "label": "Link that fails", "links": ["node0/nic0"]}   after a third of a step
//   {"kind": "switch", "label": "overlap gradients", "path": "strategy.overlap_gradients",
//    "value": true}
//   {"kind": "choice", "label": "Micro-batches", "path": ..., "values": ["1", "2"], "value": "1"}
//   {"kind": "grid", "label": "Grid", "paths": ["strategy.data", ...], "values": [[1, 16], ...],
//    "value": [4, 4]}                                        their product stays
//   {"kind": "amount", "label": "sum, bytes", "paths": ["ops.2.bytes"], "value": "64MiB"}
//                                            of a schedule written by hand: times 1/10 to 10
//   {"kind": "edits", "value": [...]}                        the scenario's own: no control
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/readers/scenario.h"

namespace rehearse {

// `document`: what was read; of a schedule on a --cluster it is all that there is.
nlohmann::ordered_json LiveControls(const Scenario& scenario,
                                    const nlohmann::json& document = nullptr);

}  // namespace rehearse
