#include "scenarios/diagnosing/timeline_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"
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
  const Timeline& timeline = record.Median();
  std::vector<Seconds> computing(record.ranks());
  for (uint32_t rank = 0; rank < record.ranks(); ++rank) {
    const auto [first, last] = timeline.SpansOf(rank);
    for (size_t i = first; i < last; ++i) {
      const Span& span = timeline.spans[i];
      if (record.OpOf(span).axis.empty()) computing[rank] += ToSeconds(span.end - span.begin);
    }
  }
  return computing;
}

// Of what each rank takes, in seconds or times something.
std::optional<LateRank> LateOf(const std::vector<double>& ranks) {
  std::vector<double> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return std::nullopt;
  const double median = sorted[(sorted.size() - 1) / 2];
  if (median <= 0 || sorted.back() / median < kIsLate) return std::nullopt;
  const auto late = std::max_element(ranks.begin(), ranks.end()) - ranks.begin();
  const auto all = std::count_if(ranks.begin(), ranks.end(),
                                 [&](double time) { return time / median >= kIsLate; });
  return LateRank{static_cast<uint32_t>(late), sorted.back() / median,
                  static_cast<size_t>(all) - 1};
}

std::string LateRanks(const std::optional<LateRank>& late) {
  if (!late) return "";
  return fmt::format(
      "rank {} computes {:.2f} times as long as the median rank{}: others wait for it\n",
      late->rank, late->factor,
      late->others > 0 ? fmt::format(", and {} more are late", late->others) : "");
}

}  // namespace

std::optional<LateRank> LateRankOf(const TimelineRecord& record) {
  std::vector<double> ranks;
  for (const Seconds time : ComputeOfRanks(record)) ranks.push_back(time.value());
  return LateOf(ranks);
}

std::optional<LateRank> LateRankOf(const TimelineRecord& measured, const TimelineRecord& expected) {
  const std::vector<Seconds> there = ComputeOfRanks(measured);
  const std::vector<Seconds> here = ComputeOfRanks(expected);
  CHECK(there.size() == here.size());
  std::vector<double> ratios;
  for (size_t rank = 0; rank < there.size(); ++rank)
    ratios.push_back(here[rank] > Seconds(0) ? there[rank] / here[rank] : 0);
  return LateOf(ratios);
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

std::string PartsText(const Comparison& comparison, const std::optional<LateRank>& late) {
  std::string text =
      fmt::format("{:<22} {:>12} {:>12} {:>10}\n", "of a rank", "expected", "measured", "measured");
  text += fmt::format("{:<22} {:>12} {:>12} {:>10}\n", "", "", "", "/expected");
  for (const ComparedGroup& kind : comparison.kinds) {
    if (kind.total.a <= Seconds(0)) continue;
    text += fmt::format("{:<22} {:>12} {:>12} {:>10.2f}\n", VisibleText(kind.name),
                        Print(kind.total.a), Print(kind.total.b), kind.total.b / kind.total.a);
  }
  return text + LateRanks(late) + "\n";
}

}  // namespace rehearse
