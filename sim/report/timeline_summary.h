// What a timeline spends its time on, measured or simulated: how much of the step is compute,
// communication that compute hides or does not, and nothing; and the kernels, communicators, layers
// and phases that take it. Means over ranks.
//
// As HolisticTraceAnalysis has them: communication lasts from when a rank's kernel begins, so
// waiting for others is part of it and is said apart where it is known; overlap is the share of
// communication during which a kernel of compute runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/quantity.h"
#include "sim/report/data_table.h"
#include "sim/report/timeline_record.h"

namespace rehearse {

// Ops of one name, communicator, layer or phase.
struct SummaryPart {
  std::string name;
  std::string kind;  // of a kernel
  bool communicates = false;
  double calls = 0;  // of a rank
  Seconds seconds;   // of all calls of a rank
  Seconds waiting;   // of them
  Seconds longest;   // of a call
};

struct TimelineSummary {
  std::string title;
  Provenance provenance = Provenance::kSimulated;
  uint32_t ranks = 0;
  uint32_t steps = 0;  // of which the median one is summed up
  bool knows_waiting = true;
  Seconds step;
  Seconds compute;        // a kernel of compute runs
  Seconds communication;  // one of communication does, beside compute or not
  Seconds exposed;        // of communication: nothing of compute runs
  Seconds idle;
  std::vector<SummaryPart> kernels;  // the longest first
  std::vector<SummaryPart> communicators;
  std::vector<SummaryPart> layers;  // by number; of those that have one
  std::vector<SummaryPart> phases;

  double Overlap() const;  // share of communication
};

TimelineSummary SummarizeTimeline(const TimelineRecord& record);

// At most `rows` of each list.
std::string ToText(const TimelineSummary& summary, bool color, size_t rows);
nlohmann::ordered_json ToJson(const TimelineSummary& summary);
DataTable KernelTable(const TimelineSummary& summary);  // a row for each kernel

}  // namespace rehearse
