#include "sim/report/lanes.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

RankLanes LanesOf(const Schedule& schedule, const Timeline& timeline, uint32_t rank) {
  CHECK_LT(rank, timeline.ranks);
  const Role& role = schedule.roles.at(schedule.role_of_rank.at(rank));
  RankLanes result{rank, {}};
  for (const Stream& stream : role.streams) result.lanes.push_back({stream.name, stream.kind, {}});
  const auto [first, last] = timeline.SpansOf(rank);
  for (size_t i = first; i < last; ++i) {
    const Span& span = timeline.spans[i];
    result.lanes.at(role.At(span.op).stream.index()).spans.push_back(&span);
  }
  std::erase_if(result.lanes, [](const Lane& lane) { return lane.spans.empty(); });
  std::stable_partition(result.lanes.begin(), result.lanes.end(),
                        [](const Lane& lane) { return lane.kind == StreamKind::kCompute; });
  return result;
}

std::vector<PhaseExtent> PhasesOf(const Schedule& schedule, const RankLanes& rank) {
  std::vector<PhaseExtent> extents = {
      {"forward", {}, {}}, {"backward", {}, {}}, {"update", {}, {}}};
  std::vector<bool> seen(extents.size(), false);
  const Role& role = schedule.roles[schedule.role_of_rank[rank.rank]];
  for (const Lane& lane : rank.lanes) {
    if (lane.kind != StreamKind::kCompute) continue;
    for (const Span* span : lane.spans) {
      const Phase phase = role.At(span->op).tag.phase;
      if (phase == Phase::kSynchronize) continue;
      const size_t i = phase == Phase::kForward ? 0 : phase == Phase::kUpdate ? 2 : 1;
      if (!seen[i]) extents[i].begin = span->begin;
      extents[i].end = std::max(extents[i].end, span->end);
      seen[i] = true;
    }
  }
  std::vector<PhaseExtent> phases;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!seen[i]) continue;
    if (!phases.empty() && extents[i].begin < phases.back().end) return {};
    phases.push_back(extents[i]);
  }
  return phases;
}

std::vector<TimeInterval> ComputingOf(const Schedule& schedule, const RankLanes& rank, Time from,
                                      Time to) {
  const Role& role = schedule.roles[schedule.role_of_rank[rank.rank]];
  std::vector<TimeInterval> intervals;
  for (const Lane& lane : rank.lanes) {
    for (const Span* span : lane.spans) {
      const auto* compute = std::get_if<Compute>(&role.At(span->op).work);
      if (compute == nullptr || IsWait(*compute) || span->end <= from || span->begin >= to)
        continue;
      intervals.push_back({span->begin, span->end});
    }
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.begin < b.begin; });
  std::vector<TimeInterval> joined;
  for (const TimeInterval& interval : intervals) {
    if (joined.empty() || joined.back().end < interval.begin)
      joined.push_back(interval);
    else
      joined.back().end = std::max(joined.back().end, interval.end);
  }
  return joined;
}

std::vector<MicroBatchBlock> MicroBatchesOf(const Schedule& schedule, const RankLanes& rank) {
  const Role& role = schedule.roles[schedule.role_of_rank[rank.rank]];
  std::vector<MicroBatchBlock> blocks;
  bool are_several = false;
  for (const Lane& lane : rank.lanes) {
    if (lane.kind != StreamKind::kCompute) continue;
    for (const Span* span : lane.spans) {
      const Tag tag = role.TagAt(span->op);
      if (tag.phase == Phase::kSynchronize || tag.phase == Phase::kUpdate) continue;
      const bool backward = tag.phase != Phase::kForward;
      if (!blocks.empty() && blocks.back().micro_batch != tag.micro_batch) are_several = true;
      if (!blocks.empty() && blocks.back().micro_batch == tag.micro_batch &&
          blocks.back().backward == backward)
        blocks.back().end = std::max(blocks.back().end, span->end);
      else
        blocks.push_back({span->begin, span->end, tag.micro_batch, backward});
    }
  }
  if (!are_several) blocks.clear();
  return blocks;
}

std::string Ticks::Label(double value) const {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  for (size_t i = text.find('.') == std::string::npos ? text.size() : text.find('.'); i > 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

Ticks TicksBetween(double begin, double end, double wanted) {
  CHECK_LT(begin, end);
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  const double step = wanted <= power       ? power
                      : wanted <= 2 * power ? 2 * power
                      : wanted <= 5 * power ? 5 * power
                                            : 10 * power;
  Ticks ticks;
  ticks.decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  const auto first = static_cast<int64_t>(std::ceil(begin / step - 1e-9));
  const auto last = static_cast<int64_t>(std::floor(end / step + 1e-9));
  for (int64_t i = first; i <= last; ++i) ticks.at.push_back(static_cast<double>(i) * step);
  return ticks;
}

}  // namespace rehearse
