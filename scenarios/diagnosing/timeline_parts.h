// A measured timeline beside what is expected of it, part by part: what a diagnosis is given of it,
// and what can be seen in it without one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/diagnosing/measured_step.h"
#include "sim/report/comparison.h"
#include "sim/report/timeline_record.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// The step of the timeline `b` and its parts; waiting and doing nothing are idle time. Where it is
// not known how long ranks waited, communication and idle time are one.
std::vector<MeasuredStep> PartsMeasured(const Comparison& comparison);

// The rank that computes longest in the median step, if it is a tenth longer than the median rank.
struct LateRank {
  uint32_t rank = 0;
  double factor = 1;  // times what the median rank takes
  size_t others = 0;  // that are a tenth longer, too
};
std::optional<LateRank> LateRankOf(const TimelineRecord& record);
// The same, each rank beside what is expected of it, as stages of a pipeline differ by nature. The
// records have as many ranks.
std::optional<LateRank> LateRankOf(const TimelineRecord& measured, const TimelineRecord& expected);

// Kinds of kernels, and collectives by axis and size as the expected schedule has them, how long
// they take a rank, measured and expected; and the rank that is late.
std::string PartsText(const Comparison& comparison, const Schedule& expected,
                      const std::optional<LateRank>& late);

}  // namespace rehearse
