// Jobs as they come to a cluster: the "arrivals" of a scenario, in place of a step of its own.
//
//   "arrivals": {"trace": "philly.json",     which jobs come when (scenarios/readers/job_trace.h)
//                "first": 1000,              only so many of them
//                "load": 1.5,                they come so many times as fast as in the trace
//                "order": "backfill",        who may begin: "fifo" (nobody before the first that
//                                            waits), "backfill" (those that end before it could
//                                            begin where they are, if nobody slows them down, or
//                                            that leave it its devices; Slurm's way), "fit"
//                                            (whoever fits)
//                "placement": "block",       on which of the free units
//                                            (scenarios/readers/placement.h)
//                "unit": 8,                  as scenarios/readers/busy_cluster.h has it
//                "sharing": "simulated",     or "none": jobs do not slow each other down
//                "work": [{"scenario": "gpt.json", "per_device": {"strategy.data": 1}}]}
//
// A trace does not say what its jobs compute. "work" does: a job takes the first whose
// "most_devices" it has not more than, and whose values come out as whole numbers where
// "per_device" multiplies them by its devices. Without it, every job trains GPT-1.3B with data
// parallelism, 4 sequences of 1,024 tokens on each device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/readers/job_request.h"
#include "scenarios/readers/job_trace.h"
#include "scenarios/readers/placement.h"
#include "sim/base/json_document.h"
#include "sim/base/json_fields.h"

namespace rehearse {

inline constexpr char kAssumedWorkWords[] = "all train GPT-1.3B with data parallelism";

enum class QueueOrder : uint8_t { kFifo, kBackfill, kFit };

// What a job of a size computes.
struct SizedWork {
  std::shared_ptr<const JsonDocument> document;  // of a scenario
  uint32_t most_devices = 0;
  std::vector<std::pair<std::string, double>> per_device;  // path, and its value for one device
  Place per_device_place;                                  // for paths that the scenario lacks
};

struct ArrivalOptions {
  std::shared_ptr<const JobTrace> trace;
  uint32_t first = 0;  // 0: all
  double load = 1;
  QueueOrder order = QueueOrder::kBackfill;
  PlacementOrder placement = PlacementOrder::kBlock;
  uint32_t unit = 0;  // 0: the usual one
  bool shares = true;
  std::vector<SizedWork> work;
  bool is_assumed = false;  // nobody said what jobs compute
  Place place;

  // Which of `work` a job with so many devices does; throws Error, at the place, for none.
  size_t WorkOf(uint32_t devices) const;
};

const Fields<ArrivalOptions>& ArrivalFields();

// Reads the trace and the scenarios that are named, too.
ArrivalOptions ReadArrivals(const JsonReader& reader);

// The step of such a work on so many devices, the cluster's first ones.
JobRequest RequestOf(const SizedWork& work, uint32_t devices, const Cluster& cluster);

}  // namespace rehearse
