#include "scenarios/playing/few_layers.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "scenarios/playing/alike_parts.h"
#include "scenarios/playing/memory_fit.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/playing/seeded_routes.h"
#include "sim/base/error.h"
#include "sim/schedule/done_ops.h"
#include "sim/schedule/stretches.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace {

// The first and the last may differ from the others in what is under way beside them; between them
// there must be three.
constexpr uint32_t kLayers = 5;
// Below that, little is saved.
constexpr int32_t kManyLayers = 8;
constexpr size_t kMostVisits = 100'000;  // of nodes: PlanPipeline() refuses more

// Whether it is a planned step on all devices of a machine, of many layers that are treated alike.
bool IsSuitable(const Scenario& scenario, const GroupMemory* memory) {
  if (scenario.lists_jobs || scenario.jobs.size() != 1 || !AlikeUnder(scenario).layers)
    return false;
  const JobRequest& request = scenario.jobs.front();
  const Cluster& cluster = *scenario.cluster;
  const auto* workload = std::get_if<Workload>(&request.work);
  if (workload == nullptr || request.repeat != 1 || request.start != Seconds(0) ||
      request.placement.size() != cluster.device_count())
    return false;
  for (uint32_t rank = 0; rank < request.placement.size(); ++rank)
    if (request.placement[rank] != rank) return false;
  const Network& network = *workload->network;
  return network.layers >= kManyLayers && network.micro_batches <= kFewMicroBatches &&
         network.nodes.size() * network.micro_batches * workload->strategy.chunks <= kMostVisits &&
         // Nothing is remembered of groups whose routes depend on a seed.
         (memory != nullptr || AlikeUnder(cluster, scenario.routing).layers);
}

std::optional<FewerLayers> WithFewerLayers(const Workload& workload, LayerMemory* memory) {
  const Network& network = *workload.network;
  if (memory == nullptr) return WithFewerLayers(network, workload.strategy, kLayers);
  const auto begins = memory->Of(workload.network);
  if (!*begins) return std::nullopt;
  return WithFewerLayers(network, workload.strategy, kLayers, **begins);
}

// A body that is played, after which those of the missing layers follow.
struct Insertion {
  uint32_t begin = 0;  // position
  uint32_t size = 0;
  Time period;

  uint32_t end() const { return begin + size; }
};

// Where the body of a rank's spans can be repeated: what follows it must be a body that does the
// same a period later, as it does itself after the one before it.
std::optional<Insertion> InsertionAt(std::span<const Span> spans, uint32_t begin, uint32_t size) {
  const uint32_t end = begin + size;
  const Time period = spans[begin].begin - spans[begin - size].begin;
  if (period <= Time()) return std::nullopt;
  for (uint32_t i = begin; i < end + size; ++i) {
    const Span& own = spans[i];
    const Span& before = spans[i - size];
    if (own.ready - before.ready != period || own.begin - before.begin != period ||
        own.end - before.end != period)
      return std::nullopt;
  }
  // From this moment on, and from a period later on, only these bodies are under way.
  Time first = spans[begin].ready;
  for (uint32_t i = begin; i < end; ++i) first = std::min(first, spans[i].ready);
  for (uint32_t i = 0; i < begin; ++i) {
    const bool is_neighbour = i + size >= begin;
    if (spans[i].end > first + (is_neighbour ? period : Time())) return std::nullopt;
  }
  for (uint32_t i = end + size; i < spans.size(); ++i)
    if (spans[i].ready < first + period) return std::nullopt;
  return Insertion{begin, size, period};
}

// Whether it sums up gradients behind the way back: with kernels, or over ranks.
bool SumsGradients(const Role& role, const Stretch& stretch) {
  return std::all_of(role.ops.begin() + stretch.begin,
                     role.ops.begin() + stretch.BeginOf(stretch.bodies), [](const Op& op) {
                       return std::holds_alternative<Compute>(op.work) ||
                              op.tag.phase == Phase::kSynchronize;
                     });
}

// Stretches that sum up gradients are made as long as they are in the whole step, and taken from
// the list: they begin while the last gradients are still on their way, and other sums run beside
// them, so that their layers do not take equally long. A missing layer waits for the same ops as
// the one before it, since its own gradients come before those of the layers behind it.
void Lengthen(Role* role, std::vector<Stretch>* stretches, uint32_t missing) {
  std::vector<Op> ops;
  size_t size = role->ops.size();
  for (const Stretch& stretch : *stretches)
    if (SumsGradients(*role, stretch)) size += size_t{missing} * stretch.size;
  ops.reserve(size);
  std::vector<uint32_t> place(role->ops.size());  // of an op, afterwards
  std::vector<Stretch> left;
  uint32_t next = 0;
  const auto move_up_to = [&](uint32_t end) {
    for (; next < end; ++next) {
      place[next] = static_cast<uint32_t>(ops.size());
      ops.push_back(std::move(role->ops[next]));
      for (OpId& id : ops.back().after) id = OpId(place[id.index()]);
    }
  };
  for (Stretch stretch : *stretches) {
    if (!SumsGradients(*role, stretch)) {
      left.push_back(stretch);
      move_up_to(stretch.begin);
      left.back().begin = static_cast<uint32_t>(ops.size());
      continue;
    }
    move_up_to(stretch.BeginOf(stretch.bodies / 2 + 1));
    const auto body = static_cast<uint32_t>(ops.size()) - stretch.size;
    for (uint32_t i = 0; i < missing * stretch.size; ++i) {
      Op op = ops[body + i % stretch.size];
      for (OpId& id : op.after)
        if (id.index() >= body) id = OpId(id.index() + (1 + i / stretch.size) * stretch.size);
      ops.push_back(std::move(op));
    }
  }
  move_up_to(static_cast<uint32_t>(role->ops.size()));
  role->ops = std::move(ops);
  *stretches = std::move(left);
}

// A step of few layers as it was played, and what it is turned into.
class Extension {
 public:
  Extension(PlayedScenario* played, uint32_t missing) : played_(*played), missing_(missing) {}

  // Whether it was possible.
  bool Run(const std::vector<std::vector<Stretch>>& of_roles, bool spans) {
    if (!FindInsertions(of_roles)) return false;
    for (size_t role = 0; role < of_roles.size(); ++role) AddRepeats(role);
    AddBytes();
    if (spans)
      AddSpans();
    else
      SetStep();
    return true;
  }

  // By role and repeat: how much later than the one before it a copy is.
  std::vector<std::vector<Time>> Periods() const {
    std::vector<std::vector<Time>> periods;
    for (const std::vector<Insertion>& insertions : insertions_) {
      std::vector<Time>& own = periods.emplace_back();
      for (const Insertion& insertion : insertions) own.push_back(insertion.period);
    }
    return periods;
  }

 private:
  Timeline& timeline() { return played_.simulation.timeline; }

  std::span<const Span> SpansOf(uint32_t rank) {
    const auto [first, last] = timeline().SpansOf(rank);
    return std::span(timeline().spans).subspan(first, last - first);
  }

  // By role: the same bodies on all of its ranks, and everywhere the same periods.
  bool FindInsertions(const std::vector<std::vector<Stretch>>& of_roles) {
    insertions_.resize(of_roles.size());
    std::vector<uint32_t> ranks;  // that were played
    for (uint32_t rank = 0; rank < timeline().ranks; ++rank)
      if (timeline().RepresentativeOf(rank) == rank) ranks.push_back(rank);
    for (size_t role = 0; role < of_roles.size(); ++role) {
      if (of_roles[role].size() != of_roles.front().size()) return false;
      for (size_t i = 0; i < of_roles[role].size(); ++i) {
        std::optional<Insertion> found;
        for (uint32_t body = 1; body + 1 < of_roles[role][i].bodies && !found; ++body)
          found = InsertionOf(role, of_roles[role][i], body, ranks);
        if (!found || found->period != (role == 0 ? found : insertions_.front()[i])->period)
          return false;
        insertions_[role].push_back(*found);
      }
    }
    return true;
  }

  std::optional<Insertion> InsertionOf(size_t role, const Stretch& stretch, uint32_t body,
                                       const std::vector<uint32_t>& ranks) {
    std::optional<Insertion> common;
    for (const uint32_t rank : ranks) {
      if (played_.schedule().role_of_rank[rank] != role) continue;
      const std::span<const Span> spans = SpansOf(rank);
      if (spans.size() != played_.schedule().roles[role].ops.size()) return std::nullopt;
      const auto own = InsertionAt(spans, stretch.BeginOf(body), stretch.size);
      if (!own || (common && common->period != own->period)) return std::nullopt;
      common = own;
    }
    return common;
  }

  void AddSpans() {
    std::vector<Span> longer;
    const std::vector<Span>& all = timeline().spans;
    longer.reserve(all.size() * (1 + missing_));
    for (size_t first = 0; first < all.size();) {
      const uint32_t rank = all[first].rank;
      const uint32_t number = played_.schedule().role_of_rank[rank];
      const Role& role = played_.schedule().roles[number];
      Time later;  // than it was played
      uint32_t before = 0;
      for (const DoneOp& done : DoneOps(role)) {
        for (; before < done.repeats_before; ++before)
          later += static_cast<int64_t>(missing_) * insertions_[number][before].period;
        Time by = later;
        if (done.copy > 0)
          by += static_cast<int64_t>(done.copy) * insertions_[number][before].period;
        const Span& span = all[first + done.place];
        longer.push_back({rank, done.position, span.ready + by, span.begin + by, span.end + by});
      }
      first += role.ops.size();
    }
    timeline().spans = std::move(longer);
    timeline().step = Time();
    for (const Span& span : timeline().spans) timeline().step = std::max(timeline().step, span.end);
  }

  // That of the longer step, without its spans. What comes after a body, and the last copy of the
  // body itself, are later by all copies.
  void SetStep() {
    Time step;
    const std::vector<Span>& all = timeline().spans;
    for (size_t first = 0; first < all.size();) {
      const uint32_t role = played_.schedule().role_of_rank[all[first].rank];
      const std::vector<Insertion>& insertions = insertions_[role];
      const size_t ops = played_.schedule().roles[role].ops.size();
      Time later;
      size_t next = 0;
      for (uint32_t op = 0; op < ops; ++op) {
        for (; next < insertions.size() && insertions[next].begin <= op; ++next)
          later += static_cast<int64_t>(missing_) * insertions[next].period;
        step = std::max(step, all[first + op].end + later);
      }
      first += ops;
    }
    timeline().step = step;
  }

  // What links carry, summed in the order in which the longer program would have its flows.
  void AddBytes() {
    const Program& program = played_.lowered.program;
    const std::vector<FlowsOfOp>& all = played_.lowered.flows_of_ops;
    std::vector<double> bytes(program.links.size(), 0.0);
    const auto credit = [&](const FlowsOfOp& flows) {
      for (uint32_t i = flows.begin; i < flows.end; ++i) {
        const Flow& flow = program.flows[i];
        const double moved = flow.bytes * flow.steps;
        for (uint32_t use = program.use_set_begin[flow.use_set];
             use < program.use_set_begin[flow.use_set + 1]; ++use)
          bytes[program.uses[use].link.index()] += moved * program.uses[use].multiplicity;
      }
    };
    for (size_t first = 0; first < all.size();) {
      const uint32_t rank = all[first].rank;
      size_t end = first;
      while (end < all.size() && all[end].rank == rank) ++end;
      size_t next = first;
      for (const Insertion& insertion : insertions_[played_.schedule().role_of_rank[rank]]) {
        size_t body = next;
        for (; next < end && all[next].position < insertion.end(); ++next) {
          credit(all[next]);
          if (all[next].position < insertion.begin) body = next + 1;
        }
        for (uint32_t copy = 0; copy < missing_; ++copy)
          for (size_t i = body; i < next; ++i) credit(all[i]);
      }
      for (; next < end; ++next) credit(all[next]);
      first = end;
    }
    for (size_t link = 0; link < bytes.size(); ++link)
      timeline().links[link].bytes = Bytes(bytes[link]);
  }

  // Positions of the longer step are then those of the role.
  void AddRepeats(size_t role) {
    for (const Insertion& insertion : insertions_[role])
      played_.jobs.front().schedule.roles[role].repeats.push_back(
          {.begin = insertion.begin, .end = insertion.end(), .times = missing_});
  }

  PlayedScenario& played_;
  const uint32_t missing_;
  std::vector<std::vector<Insertion>> insertions_;  // by role, in order
};

}  // namespace

Scenario WithFewer(const Scenario& scenario, FewerLayers fewer) {
  Scenario other = scenario;
  other.lowering.note_flows = true;
  other.allow_out_of_memory = true;  // of a part of the step; the whole is checked here
  auto& workload = std::get<Workload>(other.jobs.front().work);
  workload.network = std::make_shared<const Network>(std::move(fewer.network));
  workload.strategy = std::move(fewer.strategy);
  return other;
}

std::optional<Result> RehearseFewLayers(const Scenario& scenario, const FewLayersOptions& options) {
  const RehearsalClock clock;
  ProgressObserver& observer = *options.observer;
  if (!IsSuitable(scenario, options.memory) || scenario.jobs.front().busy) return std::nullopt;
  const auto& workload = std::get<Workload>(scenario.jobs.front().work);
  std::optional<FewerLayers> fewer = WithFewerLayers(workload, options.layers);
  if (!fewer) return std::nullopt;
  const LeftOutLayers left_out = fewer->network.left_out;
  const Scenario few = WithFewer(scenario, std::move(*fewer));

  const Cluster& cluster = *scenario.cluster;
  KeptCheck check_kept;
  if (options.bounds_memory && !scenario.allow_out_of_memory)
    check_kept = [&](const Role& role) { CheckKept(role, cluster, few.jobs.front().place); };
  std::vector<Job> jobs;
  try {
    jobs = Prepare(few, observer, check_kept);
  } catch (const KeepsTooMuch&) {
    throw;
  } catch (const Error&) {  // the whole step has the same mistake, and says where
    return std::nullopt;
  }
  Job& job = jobs.front();
  std::vector<std::vector<Stretch>> stretches;
  std::vector<MemoryUse> uses;
  for (const Role& role : job.schedule.roles) {
    std::optional<std::vector<Stretch>> found = FindStretches(role, left_out.like);
    if (!found) return std::nullopt;
    const auto use = MemoryOfLonger(role, *found, left_out.count);
    if (!use) return std::nullopt;
    stretches.push_back(std::move(*found));
    uses.push_back(*use);
  }
  const MemoryFit fit =
      TightestFit(job.schedule, uses, job.placement, cluster, scenario.memory.headroom_share);
  if (!scenario.allow_out_of_memory) CheckFit(fit, cluster, few.jobs.front().place);
  for (size_t role = 0; role < stretches.size(); ++role)
    Lengthen(&job.schedule.roles[role], &stretches[role], left_out.count);
  job.schedule.hardware_flops =
      job.schedule.model_flops + RecomputedFlops(*workload.network, workload.training);

  PlayedScenario played = PlayJobs(few, std::move(jobs), {.observer = &observer}, options.memory);
  const bool needs_spans = options.hash || ValidatesUpdatesLater(played.schedule());
  Extension extension(&played, left_out.count);
  if (!extension.Run(stretches, needs_spans)) return std::nullopt;
  SummaryOptions summary{.hash = options.hash};
  if (!needs_spans) summary.periods = extension.Periods();
  Result result = Describe(few, played, std::nullopt, fit, summary);
  result.simulator.wall = clock.Past();
  result.simulator.peak_rss = PeakResidentMemory();
  return result;
}

}  // namespace rehearse
