// What several jobs on one cluster cost each other: `rehearse run` of a scenario with "jobs".
//
//   { "schema": "rehearse.jobs.v1", "scenario": "...", "fidelity": "fluid", "left_out": "...",
//     "devices": 16, "seconds": ...,                              until the last job has ended
//     "jobs": [ {"name": "a",
//                "placement": [[0, 7]],            rank by rank: devices, from .. to
//                "start_seconds": 0, "repeat": 2,
//                "steps_seconds": [..., ...],      each of its steps
//                "alone_step_seconds": ...,        the mean step when no other job runs
//                "best_step_seconds": ...,         alone on the best devices of the cluster
//                "best_placement": "block",        how these are taken
//                "slow_down_by_placement": 1.1,    alone where it is, over alone on the best
//                "slow_down_by_sharing": 1.25,     the mean step over that alone where it is
//                "slow_down": 1.375,               both: the mean step over the best
//                "result": {...}} ],               rehearse.result.v1 of its mean step, without
//                                                  "links" and "simulator"
//     "links": [...], "simulator": {...}, "timeline_hash": "..." }      as there, of all jobs
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/report/result.h"

namespace rehearse {

struct JobResult {
  std::vector<uint32_t> placement;
  Seconds start;
  std::vector<Seconds> steps;
  Seconds alone;           // the mean step
  Seconds best;            // alone on the best devices
  std::string best_order;  // how these are taken
  Result result;           // of the mean step, named like the job

  double ByPlacement() const { return best > Seconds(0) ? alone / best : 1; }
  double BySharing() const { return alone > Seconds(0) ? result.step / alone : 1; }
  double SlowDown() const { return ByPlacement() * BySharing(); }
};

struct JobsResult {
  Result all;  // as of one step that all jobs are in
  std::vector<JobResult> jobs;
};

nlohmann::ordered_json ToJson(const JobsResult& result);
// A row for each job, the busiest links, and details of each job's step. Ends with a newline.
std::string ToText(const JobsResult& result, bool color);

}  // namespace rehearse
