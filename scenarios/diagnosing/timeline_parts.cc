#include "scenarios/diagnosing/timeline_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

constexpr double kIsLate = 1.1;

MeasuredStep PartOf(const char* name, StepMeasure measure, Seconds value) {
  return {fmt::format("{} {}", name, Print(value)), measure, value.value()};
}

// How long each rank computes, in the median step.
std::vector<Seconds> ComputeOfRanks(const TimelineRecord& record) {
  std::vector<Seconds> computing(record.ranks());
  for (const Span& span : record.Median().spans) {
    if (record.OpOf(span).axis.empty()) computing[span.rank] += ToSeconds(span.end - span.begin);
  }
  return computing;
}

std::string LateRanks(const TimelineRecord& record) {
  const std::optional<LateRank> late = LateRankOf(record);
  if (!late) return "";
  return fmt::format(
      "rank {} computes {:.2f} times as long as the median rank{}: others wait for it\n",
      late->rank, late->factor,
      late->others > 0 ? fmt::format(", and {} more are late", late->others) : "");
}

}  // namespace

std::optional<LateRank> LateRankOf(const TimelineRecord& record) {
  const std::vector<Seconds> computing = ComputeOfRanks(record);
  std::vector<Seconds> sorted = computing;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return std::nullopt;
  const Seconds median = sorted[(sorted.size() - 1) / 2];
  if (median <= Seconds(0) || sorted.back() / median < kIsLate) return std::nullopt;
  const auto late = std::max_element(computing.begin(), computing.end()) - computing.begin();
  const auto all = std::count_if(computing.begin(), computing.end(),
                                 [&](Seconds time) { return time / median >= kIsLate; });
  return LateRank{static_cast<uint32_t>(late), sorted.back() / median,
                  static_cast<size_t>(all) - 1};
}

std::vector<MeasuredStep> PartsMeasured(const Comparison& comparison) {
  const StepShares& shares = comparison.b_shares;
  const Seconds idle = shares.waiting + shares.nothing;
  std::vector<MeasuredStep> parts = {PartOf("step", StepMeasure::kStep, comparison.step.b),
                                     PartOf("compute", StepMeasure::kCompute, shares.compute)};
  if (!comparison.b_waiting.empty()) {
    parts.push_back(
        PartOf("communication and idle", StepMeasure::kNotComputing, shares.communication + idle));
    return parts;
  }
  parts.push_back(PartOf("exposed communication", StepMeasure::kExposed, shares.communication));
  parts.push_back(PartOf("idle", StepMeasure::kIdle, idle));
  return parts;
}

std::string PartsText(const Comparison& comparison, const TimelineRecord& measured) {
  std::string text =
      fmt::format("{:<22} {:>12} {:>12} {:>10}\n", "of a rank", "expected", "measured", "measured");
  text += fmt::format("{:<22} {:>12} {:>12} {:>10}\n", "", "", "", "/expected");
  for (const ComparedGroup& kind : comparison.kinds) {
    if (kind.total.a <= Seconds(0)) continue;
    text += fmt::format("{:<22} {:>12} {:>12} {:>10.2f}\n", VisibleText(kind.name),
                        Print(kind.total.a), Print(kind.total.b), kind.total.b / kind.total.a);
  }
  return text + LateRanks(measured) + "\n";
}

}  // namespace rehearse
