// What a measured timeline shows by itself, without a scenario: where a rank's time goes, which
// kernels and collectives take it, and what stands out, with what it costs.
//
// A sign is something that can be seen, not a cause that was simulated: how much of the step it
// costs is an upper bound of what would be gained without it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/quantity.h"
#include "sim/report/comparison.h"
#include "sim/report/timeline_record.h"

namespace rehearse {

struct TimelineSign {
  std::string name;     // "straggler", "jitter", "interrupted", "stall", "host-launch", ...
  std::string what;     // a sentence without a full stop
  double share = 0;     // of the step
  std::string confirm;  // what to look at
};

// Ops of one name, kind and axis.
struct TimelineOps {
  std::string name;
  std::string kind;
  std::string axis;  // "": compute
  double count = 0;  // of a rank, in the mean
  Seconds time;      // of a rank, without waiting
  Seconds waiting;   // of a rank, before it
};

struct TimelineView {
  std::string title;
  uint32_t ranks = 0;
  size_t steps = 0;  // warm-ups left out, unless there is nothing else
  Seconds step;      // the median
  StepShares shares;
  std::string waiting;              // as in Comparison: "", "unknown", "partly unknown"
  std::vector<TimelineOps> ops;     // what takes longest first
  std::vector<TimelineSign> signs;  // what costs most first
};

TimelineView LookAt(const TimelineRecord& record);

// `rows`: at most so many ops.
// What stands out alone: "What stands out:\n1. straggler: ...". "" if nothing does.
std::string SignsText(const TimelineView& view);
std::string ToText(const TimelineView& view, size_t rows);
nlohmann::ordered_json ToJson(const TimelineView& view);

}  // namespace rehearse
