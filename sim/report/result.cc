#include "sim/report/result.h"

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/threads.h"
#include "sim/report/step_activity.h"
#include "sim/schedule/done_ops.h"

namespace rehearse {
namespace {

Seconds MeanOver(uint32_t ranks, WideTime picoseconds) {
  return Seconds(static_cast<double>(picoseconds) / kPicosecondsPerSecond / ranks);
}

// From so many spans on, a thread of its own hashes them.
constexpr size_t kManySpans = size_t{1} << 16;

std::vector<RoleUse> UsesOf(const Schedule& schedule, const std::vector<RoleSums>& sums,
                            WideTime step) {
  std::vector<RoleUse> uses;
  if (sums.size() < 2) return uses;
  for (size_t role = 0; role < sums.size(); ++role) {
    const RoleSums& own = sums[role];
    if (own.ranks == 0) continue;
    const WideTime idle = step * own.ranks - own.compute - own.exposed;
    uses.push_back({schedule.roles[role].name,
                    own.ranks,
                    {MeanOver(own.ranks, own.compute), MeanOver(own.ranks, own.exposed),
                     MeanOver(own.ranks, idle)}});
  }
  return uses;
}

std::vector<LinkSummary> BusiestFirst(const Timeline& timeline) {
  std::vector<LinkSummary> links;
  const Seconds step = ToSeconds(timeline.step);
  for (const LinkRecord& link : timeline.links) {
    if (link.bytes <= Bytes(0)) continue;
    const Bytes could = link.capacity * step;
    links.push_back({link.name, link.kind, link.bytes, link.capacity,
                     could > Bytes(0) ? link.bytes / could : 0, link.count});
  }
  std::stable_sort(links.begin(), links.end(), [](const LinkSummary& a, const LinkSummary& b) {
    return a.utilization > b.utilization;
  });
  return links;
}

}  // namespace

std::optional<DType> MainDType(const Schedule& schedule) {
  std::map<DType, Flops> flops_of_type;
  for (const Role& role : schedule.roles) {
    const DoneOps all(role);
    for (uint32_t place = 0; place < role.ops.size(); ++place) {
      if (const auto* compute = std::get_if<Compute>(&role.ops[place].work))
        flops_of_type[compute->dtype] += all.TimesOf(place) * compute->flops;
    }
  }
  const auto most =
      std::max_element(flops_of_type.begin(), flops_of_type.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == flops_of_type.end() || most->second <= Flops(0)) return std::nullopt;
  return most->first;
}

namespace {

constexpr uint32_t kNoOp = static_cast<uint32_t>(-1);

// By role: the last op of its step, the others being those that validate its update; empty if
// there are none of these.
std::vector<uint32_t> UpdatesValidatedLater(const Schedule& schedule) {
  std::vector<uint32_t> last(schedule.roles.size(), kNoOp);
  bool are_validated = false;
  for (size_t role = 0; role < schedule.roles.size(); ++role) {
    const std::vector<Op>& ops = schedule.roles[role].ops;
    for (uint32_t op = 0; op < ops.size(); ++op) {
      const auto* compute = std::get_if<Compute>(&ops[op].work);
      if (compute == nullptr || compute->kernel != Kernel::kAdam) continue;
      if (compute->attributes.size() <= 1) {
        last[role] = op;
      } else {
        are_validated |= compute->attributes[1] == double{kAdamIfClipped};
      }
    }
  }
  if (!are_validated) last.clear();
  return last;
}

int64_t LongestRank(const Schedule& schedule, const Timeline& timeline,
                    const std::vector<uint32_t>& last) {
  int64_t longest = 0;
  for (size_t i = 0; i < timeline.spans.size();) {
    const uint32_t rank = timeline.spans[i].rank;
    const uint32_t role_index = schedule.role_of_rank[rank];
    int64_t begin = timeline.step.picoseconds();
    int64_t end = 0;
    for (; i < timeline.spans.size() && timeline.spans[i].rank == rank; ++i) {
      const Span& span = timeline.spans[i];
      const uint32_t op = schedule.roles[role_index].PlaceAt(span.op);
      if (op <= last[role_index]) begin = std::min(begin, span.begin.picoseconds());
      // What has been sent before may still wait for its receiver.
      if (op == last[role_index]) end = span.end.picoseconds();
    }
    longest = std::max(longest, end - begin);
  }
  return longest;
}

}  // namespace

bool ValidatesUpdatesLater(const Schedule& schedule) {
  return !UpdatesValidatedLater(schedule).empty();
}

Seconds StepOf(const Schedule& schedule, const Timeline& timeline) {
  const std::vector<uint32_t> last = UpdatesValidatedLater(schedule);
  if (last.empty()) return ToSeconds(timeline.step);
  return ToSeconds(Time(LongestRank(schedule, timeline, last)));
}

Result Summarize(const Schedule& schedule, const Timeline& timeline, FlopsPerSecond peak) {
  return Summarize(schedule, timeline, peak, MemoryOfFullestRank(schedule));
}

namespace {

// Hashes a timeline beside what else is done with it, if it is long enough.
class HashBeside {
 public:
  HashBeside(const Timeline& timeline, const SpansByRank& spans) {
    const auto hash = [this, &timeline, &spans] {
      try {
        hash_ = HashOf(timeline, spans);
      } catch (...) {
        fault_ = std::current_exception();
      }
    };
    const bool are_many = timeline.played != nullptr || timeline.spans.size() >= kManySpans;
    if (!are_many || !thread_.TryAdd(hash)) hash_ = HashOf(timeline, spans);
  }

  std::string Take() {
    thread_.Join();
    if (fault_) std::rethrow_exception(fault_);
    return std::move(hash_);
  }

 private:
  std::string hash_;
  std::exception_ptr fault_;
  Threads thread_;  // the last one, as it must have ended before the others go
};

void SetBreakdown(const Schedule& schedule, const StepActivity& activity, WideTime step,
                  Result* result) {
  const uint32_t ranks = result->ranks;
  const ActivitySums& sums = activity.sums();
  const WideTime idle = step * ranks - sums.compute() - sums.exposed();
  result->breakdown.compute = MeanOver(ranks, sums.compute());
  result->breakdown.exposed_communication = MeanOver(ranks, sums.exposed());
  result->breakdown.idle = MeanOver(ranks, idle);
  result->roles = UsesOf(schedule, activity.of_role(), step);
  result->communication = MeanOver(ranks, sums.communication());
  if (sums.communication() > 0) {
    result->overlap_fraction = static_cast<double>(sums.communication() - sums.exposed()) /
                               static_cast<double>(sums.communication());
  }
}

std::vector<AxisUse> UsesOfAxes(const Schedule& schedule, const StepActivity& activity,
                                uint32_t ranks) {
  const ActivitySums& sums = activity.sums();
  std::vector<AxisUse> axes;
  for (size_t axis = 0; axis < schedule.communicators.size(); ++axis) {
    AxisUse use;
    use.name = schedule.communicators[axis].name();
    use.seconds = MeanOver(ranks, sums.communication_on(axis));
    use.exposed = Seconds(sums.exposed_on(axis) / kPicosecondsPerSecond / ranks);
    axes.push_back(use);
  }
  for (size_t role = 0; role < schedule.roles.size(); ++role) {
    const std::vector<Op>& ops = schedule.roles[role].ops;
    for (size_t op = 0; op < ops.size(); ++op) {
      const uint64_t runs = activity.RunsOnAxis(role, op);
      if (runs == 0) continue;
      const double mean_runs = static_cast<double>(runs) / ranks;
      AxisUse& use = axes[activity.AxisOf(role, op)];
      use.operations += mean_runs;
      use.bytes += mean_runs * CommunicationBytes(ops[op].work);
    }
  }
  return axes;
}

void SetSpeed(const Schedule& schedule, Result* result) {
  const Flops possible = result->step * (result->ranks * result->peak);
  if (possible > Flops(0)) {
    result->model_flops_utilization = schedule.model_flops / possible;
    result->hardware_flops_utilization = schedule.hardware_flops / possible;
  }
  result->token_name = schedule.token_name;
  if (result->step > Seconds(0)) result->tokens_per_second = schedule.tokens / result->step.value();
}

}  // namespace

Result Summarize(const Schedule& schedule, const Timeline& timeline, FlopsPerSecond peak,
                 const MemoryUse& memory, const SummaryOptions& options) {
  CHECK_EQ(schedule.ranks(), timeline.ranks);
  const std::vector<uint32_t> last_ops = UpdatesValidatedLater(schedule);
  CHECK(options.spans == nullptr || last_ops.empty());
  CHECK(options.periods.empty() || (!options.hash && last_ops.empty()));
  const int64_t step =
      last_ops.empty() ? timeline.step.picoseconds() : LongestRank(schedule, timeline, last_ops);
  const std::shared_ptr<const SpansByRank> own = SpansByRankOf(timeline);
  const SpansByRank& spans = options.spans == nullptr ? *own : *options.spans;
  std::optional<HashBeside> hash;
  if (options.hash) hash.emplace(timeline, spans);

  Result result;
  result.ranks = timeline.ranks;
  result.step = ToSeconds(Time(step));
  result.peak = peak;
  if (const auto dtype = MainDType(schedule)) result.peak_dtype = Name(*dtype);
  result.memory = memory;
  result.links = BusiestFirst(timeline);
  if (timeline.ranks > 0) {
    StepActivity activity(schedule, timeline, options, last_ops);
    activity.AddRanks(spans);
    SetBreakdown(schedule, activity, step, &result);
    result.axes = UsesOfAxes(schedule, activity, timeline.ranks);
    SetSpeed(schedule, &result);
  }
  if (hash) result.timeline_hash = hash->Take();
  return result;
}

}  // namespace rehearse
