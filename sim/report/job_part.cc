#include "sim/report/job_part.h"

#include <algorithm>

#include "sim/base/error.h"

namespace rehearse {
namespace {

std::vector<Seconds> StepTimes(const Job& job, const Timeline& timeline) {
  std::vector<Time> ends(job.repeat);
  for (const Span& span : timeline.spans) {
    const uint32_t ops = job.schedule.roles[job.schedule.role_of_rank[span.rank]].OpCount();
    Time& end = ends[span.op / ops];
    end = std::max(end, span.end);
  }
  std::vector<Seconds> times;
  Time before;
  for (const Time end : ends) {
    times.push_back(ToSeconds(end - before));
    before = end;
  }
  return times;
}

}  // namespace

JobPart CutOut(const Job& job, const Timeline& joint) {
  JobPart part;
  part.schedule = StepsOf(job);
  Timeline& timeline = part.timeline;
  timeline.provenance = joint.provenance;
  timeline.ranks = job.schedule.ranks();
  if (!joint.representative.empty()) {
    std::vector<uint32_t> rank_of_device(joint.ranks, 0);
    for (uint32_t rank = 0; rank < timeline.ranks; ++rank)
      rank_of_device[job.placement[rank]] = rank;
    for (const uint32_t device : job.placement) {
      // Roles of different jobs differ, so ranks that are alike belong to one job.
      const uint32_t rank = rank_of_device[joint.representative[device]];
      CHECK_EQ(job.placement[rank], joint.representative[device]);
      timeline.representative.push_back(rank);
    }
  }
  const Time start = ToTime(job.start);
  const uint32_t first_op = FirstOp(job);
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) {
    if (timeline.RepresentativeOf(rank) != rank) continue;
    const auto [first, last] = joint.SpansOf(job.placement[rank]);
    for (size_t i = first; i < last; ++i) {
      Span span = joint.spans[i];
      if (span.op < first_op) continue;
      span.rank = rank;
      span.op -= first_op;
      span.ready = span.ready - start;
      span.begin = span.begin - start;
      span.end = span.end - start;
      timeline.step = std::max(timeline.step, span.end);
      timeline.spans.push_back(span);
    }
  }
  part.steps = StepTimes(job, timeline);
  return part;
}

Result SummarizeSteps(const Job& job, const JobPart& part, FlopsPerSecond peak) {
  Result result = Summarize(part.schedule, part.timeline, peak);
  result.memory = MemoryOfFullestRank(job.schedule);  // each step uses the same
  const double steps = job.repeat;
  const auto divide = [&](Breakdown& parts) {
    for (Seconds* time : {&parts.compute, &parts.exposed_communication, &parts.idle})
      *time = *time / steps;
  };
  result.step = result.step / steps;
  result.communication = result.communication / steps;
  divide(result.breakdown);
  for (RoleUse& role : result.roles) divide(role.breakdown);
  for (AxisUse& axis : result.axes) {
    axis.operations /= steps;
    axis.bytes = axis.bytes / steps;
    axis.seconds = axis.seconds / steps;
    axis.exposed = axis.exposed / steps;
  }
  return result;
}

}  // namespace rehearse
