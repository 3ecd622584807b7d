// What jobs as they came to a cluster cost each other: `rehearse run` of a scenario with
// "arrivals".
//
//   { "schema": "rehearse.queue.v1", "scenario": "...", "fidelity": "fluid", "left_out": "...",
//     "devices": 512, "unit": 8, "seconds": ...,     until the last job has ended
//     "utilization": 0.83,                           devices held, of all, over that time
//     "utilization_while_jobs_come": 0.91,           likewise, until the last one comes
//     "slow_down": {"mean": ..., "median": ..., "p90": ..., "most": ...},
//     "by_placement": {...}, "by_sharing": {...}, "waited_seconds": {...},       likewise
//     "device_hours": {"held": ..., "by_placement": ..., "by_sharing": ..., "fragmented": ...},
//     "most_waiting": 31,
//     "jobs": [{"name": "a", "devices": 8, "machines": 1, "submitted_seconds": 0,
//               "waited_seconds": 0, "alone_seconds": 3600, "seconds": 3700,
//               "slow_down_by_placement": 1, "slow_down_by_sharing": 1.03, "slow_down": 1.03}],
//     "moments": [[0, 8, 0], ...],       seconds, devices held from then on, jobs that wait
//     "notes": [...] }
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/queueing/queue.h"
#include "scenarios/readers/scenario.h"

namespace rehearse {

nlohmann::ordered_json ToJson(const Queue& queue, const Scenario& scenario);
// A sentence, the spread of what jobs waited and lost, by size, and the jobs that lost most. Ends
// with a newline.
std::string ToText(const Queue& queue, const Scenario& scenario, bool color);
// Devices held and jobs waiting over time; below, each job's slow-down over its devices.
std::string QueueSvg(const Queue& queue, const std::string& title);

}  // namespace rehearse
