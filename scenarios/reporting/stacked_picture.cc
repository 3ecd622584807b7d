#include "scenarios/reporting/stacked_picture.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "sim/report/stacked_timelines.h"

namespace rehearse {
namespace {

// As much of a schedule as a picture needs: names, streams, kinds and axes.
Schedule ScheduleOfRun(const ReportedRun& run) {
  Schedule schedule;
  schedule.role_of_rank = run.record.role_of_rank;
  std::map<std::string, CommunicatorId> axes;
  for (const SpanClass& span_class : run.classes) {
    if (!span_class.communication) continue;
    axes.emplace(span_class.name,
                 CommunicatorId(static_cast<uint32_t>(schedule.communicators.size())));
    schedule.communicators.push_back(
        Communicator::Strided(span_class.name, {{run.record.ranks(), 1}}, {}));
  }
  for (size_t i = 0; i < run.roles.size(); ++i) {
    const RecordedRole& recorded = run.record.roles[i];
    Role& role = schedule.roles.emplace_back();
    role.name = recorded.name;
    role.repeats = recorded.repeats;
    for (const ReportedStream& stream : run.roles[i].streams)
      role.streams.push_back(
          {stream.name, stream.communicates ? StreamKind::kCommunication : StreamKind::kCompute});
    for (size_t j = 0; j < recorded.ops.size(); ++j) {
      const RecordedOp& kept = recorded.ops[j];
      const ReportedOp& own = run.roles[i].ops[j];
      Op& op = role.ops.emplace_back();
      op.name = kept.name;
      op.stream = StreamId(own.stream);
      op.tag = {kept.phase, kept.layer, kept.micro_batch};
      const auto axis = axes.find(run.classes[own.span_class].name);
      if (run.classes[own.span_class].communication && axis != axes.end()) {
        Collective collective;
        collective.communicator = axis->second;
        op.work = collective;
        continue;
      }
      Compute compute;
      compute.kind = kept.kind == "attention" ? ComputeKind::kAttention
                     : kept.kind == "memory"  ? ComputeKind::kMemory
                     : kept.kind == "gemm"    ? ComputeKind::kGemm
                     : kept.kind == "host"    ? ComputeKind::kHost
                                              : ComputeKind::kFixed;
      if (own.waits) compute.kernels = 0;
      op.work = compute;
    }
  }
  return schedule;
}

// Whether two ranks of a role did the same at the same times.
bool AreAlike(const Timeline& timeline, uint32_t a, uint32_t b) {
  const auto [first, last] = timeline.SpansOf(a);
  const auto [other, other_last] = timeline.SpansOf(b);
  if (last - first != other_last - other) return false;
  constexpr int64_t kVisible = 2000;  // of these a step is a pixel or more
  const int64_t least = timeline.step.picoseconds() / kVisible;
  const auto differ = [&](Time x, Time y) {
    return std::abs(x.picoseconds() - y.picoseconds()) > least;
  };
  for (size_t i = 0; i < last - first; ++i) {
    const Span& span = timeline.spans[first + i];
    const Span& same = timeline.spans[other + i];
    if (span.op != same.op || differ(span.ready, same.ready) || differ(span.begin, same.begin) ||
        differ(span.end, same.end))
      return false;
  }
  return true;
}

// One of each role and of what differs from it, and those that were asked for.
std::vector<uint32_t> RanksToShow(const ReportedRun& run) {
  constexpr size_t kMost = 16;
  const Timeline& timeline = run.record.Median();
  std::vector<uint32_t> ranks = run.asked;
  std::vector<uint32_t> seen;
  for (const ReportedRank& rank : run.ranks) {
    const uint32_t role = run.record.role_of_rank[rank.rank];
    const bool is_new = std::none_of(seen.begin(), seen.end(), [&](uint32_t one) {
      return run.record.role_of_rank[one] == role && AreAlike(timeline, one, rank.rank);
    });
    if (!is_new) continue;
    seen.push_back(rank.rank);
    if (ranks.size() < kMost && std::find(ranks.begin(), ranks.end(), rank.rank) == ranks.end())
      ranks.push_back(rank.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

std::string StackedPicture(const std::vector<ReportedRun>& runs, Time from, Time to) {
  std::vector<Schedule> schedules;
  std::vector<PicturedStep> steps;
  schedules.reserve(runs.size());  // they must not move, as steps point at them
  for (const ReportedRun& run : runs) {
    schedules.push_back(ScheduleOfRun(run));
    PicturedStep step;
    step.schedule = &schedules.back();
    step.timeline = &run.record.Median();
    step.ranks = RanksToShow(run);
    step.names.title = run.record.title;
    step.names.device_of_rank.resize(run.record.ranks());
    for (const ReportedRank& rank : run.ranks) step.names.device_of_rank[rank.rank] = rank.name;
    steps.push_back(std::move(step));
  }
  return StackedTimelinesSvg(steps, from, to);
}

}  // namespace rehearse
