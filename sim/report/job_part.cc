#include "sim/report/job_part.h"

#include <algorithm>
#include <memory>
#include <utility>

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

std::vector<uint32_t> RankOfDevice(const Job& job, uint32_t devices) {
  std::vector<uint32_t> ranks(devices, 0);
  for (uint32_t rank = 0; rank < job.placement.size(); ++rank) ranks[job.placement[rank]] = rank;
  return ranks;
}

std::vector<uint32_t> Representatives(const Job& job, const Timeline& joint) {
  std::vector<uint32_t> representatives;
  if (joint.representative.empty()) return representatives;
  const std::vector<uint32_t> rank_of_device = RankOfDevice(job, joint.ranks);
  for (const uint32_t device : job.placement) {
    // Roles of different jobs differ, so ranks that are alike belong to one job.
    const uint32_t rank = rank_of_device[joint.representative[device]];
    CHECK_EQ(job.placement[rank], joint.representative[device]);
    representatives.push_back(rank);
  }
  return representatives;
}

// The spans of devices as those of the ranks on them.
class SpansOfPart : public SpansByRank {
 public:
  SpansOfPart(std::shared_ptr<const SpansByRank> joint, const std::vector<uint32_t>& rank_of_device)
      : joint_(std::move(joint)) {
    for (size_t i = 0; i < joint_->count(); ++i)
      ranks_.emplace_back(rank_of_device[joint_->RankAt(i)], i);
    std::sort(ranks_.begin(), ranks_.end());
  }

  size_t count() const override { return ranks_.size(); }
  uint32_t RankAt(size_t i) const override { return ranks_[i].first; }
  std::span<const Span> At(size_t i, std::vector<Span>* room) const override {
    const std::span<const Span> spans = joint_->At(ranks_[i].second, room);
    if (spans.data() != room->data()) room->assign(spans.begin(), spans.end());
    for (Span& span : *room) span.rank = ranks_[i].first;
    return *room;
  }

 private:
  const std::shared_ptr<const SpansByRank> joint_;
  std::vector<std::pair<uint32_t, size_t>> ranks_;  // and where their spans are in the joint ones
};

}  // namespace

JobPart CutOut(const Job& job, const Timeline& joint) {
  JobPart part;
  part.schedule = StepsOf(job);
  Timeline& timeline = part.timeline;
  timeline.provenance = joint.provenance;
  timeline.ranks = job.schedule.ranks();
  timeline.representative = Representatives(job, joint);
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

JobPart TakeOut(const Job& job, Timeline joint) {
  CHECK(job.repeat == 1 && job.start == Seconds(0));
  JobPart part;
  part.schedule = job.schedule;
  part.steps = {ToSeconds(joint.step)};
  const std::vector<uint32_t> rank_of_device = RankOfDevice(job, joint.ranks);
  part.timeline = std::move(joint);
  Timeline& timeline = part.timeline;
  timeline.representative = Representatives(job, timeline);
  timeline.ranks = job.schedule.ranks();
  if (timeline.played)
    timeline.played =
        std::make_shared<const SpansOfPart>(std::move(timeline.played), rank_of_device);
  for (Span& span : timeline.spans) span.rank = rank_of_device[span.rank];
  const auto is_before = [](const Span& a, const Span& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.op < b.op;
  };
  if (!std::is_sorted(timeline.spans.begin(), timeline.spans.end(), is_before))
    std::sort(timeline.spans.begin(), timeline.spans.end(), is_before);
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
