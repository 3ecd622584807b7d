#include "scenarios/explaining/explanation.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "scenarios/playing/expert_draws.h"
#include "scenarios/playing/placement_cost.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/playing/seeded_routes.h"
#include "sim/base/error.h"
#include "sim/engine/contention.h"
#include "sim/engine/critical_ops.h"
#include "sim/report/exposure.h"
#include "sim/report/span_classes.h"

namespace rehearse {
namespace {

// The longest come first; equal ones stay in the order in which the path meets them.
class PathShares {
 public:
  void Add(const std::string& name, Seconds time) {
    const auto [it, is_new] = index_.emplace(name, shares_.size());
    if (is_new) shares_.push_back({name, 0, Seconds(0)});
    ++shares_[it->second].steps;
    shares_[it->second].seconds += time;
  }

  std::vector<PathShare> TakeLongestFirst() {
    std::stable_sort(shares_.begin(), shares_.end(),
                     [](const PathShare& a, const PathShare& b) { return a.seconds > b.seconds; });
    return std::move(shares_);
  }

 private:
  std::vector<PathShare> shares_;
  std::map<std::string, size_t> index_;
};

class Explainer {
 public:
  explicit Explainer(const PlayedScenario& played)
      : schedule_(played.schedule()),
        program_(played.lowered.program),
        simulation_(played.simulation),
        ops_(program_),
        classes_(schedule_) {}

  void DescribePath(Explanation* explanation) {
    const CriticalOps critical = FindCriticalOps(program_, simulation_.tasks, ops_);
    PathShares by_kind;
    PathShares by_op;
    std::map<int32_t, PathShare> by_layer;
    for (const PathSegment& segment : critical.path) {
      const Op& op = OpOf(segment.rank, segment.op);
      const PathStep step = {NameOf(op),
                             segment.rank,
                             op.tag.phase,
                             op.tag.layer,
                             RoleOf(segment.rank).TagAt(segment.op).micro_batch,
                             ToSeconds(segment.begin),
                             ToSeconds(segment.end)};
      const Seconds time = step.end - step.begin;
      by_kind.Add(step.name.kind, time);
      by_op.Add(step.name.op, time);
      PathShare& layer = by_layer[op.tag.layer];
      ++layer.steps;
      layer.seconds += time;
      explanation->path.push_back(step);
    }
    explanation->path_by_kind = by_kind.TakeLongestFirst();
    explanation->path_by_op = by_op.TakeLongestFirst();
    for (auto& [layer, share] : by_layer) {
      share.name = layer < 0 ? "outside the layers" : fmt::format("layer {}", layer);
      explanation->path_by_layer.push_back(share);
    }
    if (by_layer.count(-1) > 0) {
      auto& rows = explanation->path_by_layer;
      std::rotate(rows.begin(), rows.begin() + 1, rows.end());
    }
    DescribeSlack(critical.slack, explanation);
  }

  void DescribeExposure(const std::optional<JobPart>& own, Explanation* explanation) const {
    // A mean over ranks; spare devices are not ranks.
    const auto by_op = own ? ExposureOfOps(own->schedule, own->timeline)
                           : ExposureOfOps(schedule_, simulation_.timeline);
    std::map<OpName, NamedExposure> named;
    for (size_t role = 0; role < by_op.size(); ++role) {
      for (size_t op = 0; op < by_op[role].size(); ++op) {
        const OpExposure& exposure = by_op[role][op];
        if (exposure.operations == 0) continue;
        NamedExposure& sum = named[NameOf(schedule_.roles[role].ops[op])];
        sum.operations += exposure.operations;
        sum.seconds += exposure.seconds;
        sum.exposed += exposure.exposed;
      }
    }
    for (auto& [name, exposure] : named) {
      exposure.name = name;
      explanation->exposed.push_back(exposure);
    }
    std::stable_sort(
        explanation->exposed.begin(), explanation->exposed.end(),
        [](const NamedExposure& a, const NamedExposure& b) { return a.exposed > b.exposed; });
  }

  void DescribeLinks(Explanation* explanation) const {
    std::map<OpName, uint32_t> group_of_name;
    std::vector<OpName> names;
    std::vector<uint32_t> group_of_flow(program_.flows.size(), 0);
    for (uint32_t task = 0; task < program_.tasks.size(); ++task) {
      if (program_.tasks[task].kind != TaskKind::kFlow) continue;
      const auto spans = ops_.Of(TaskId(task));
      CHECK(!spans.empty());
      const SpanSpec& span = program_.spans[spans.front()];
      const OpName name = NameOf(OpOf(span.rank, span.op));
      const auto [it, is_new] = group_of_name.emplace(name, static_cast<uint32_t>(names.size()));
      if (is_new) names.push_back(name);
      group_of_flow[program_.tasks[task].payload] = it->second;
    }
    DescribeBottlenecks(names, group_of_flow, explanation);
    const Seconds step = ToSeconds(simulation_.timeline.step);
    for (const HoldingLink& link : FindHoldingLinks(program_, simulation_, group_of_flow)) {
      const LinkRecord& record = simulation_.timeline.links[link.link.index()];
      ContendedLink row = {record.name,
                           record.kind,
                           record.capacity,
                           record.bytes / (record.capacity * step),
                           ToSeconds(link.time),
                           link.most_at_once,
                           {}};
      for (const LinkSharer& sharer : link.sharers) {
        row.shared_by.push_back({names[sharer.group], sharer.most_at_once, sharer.bytes});
      }
      explanation->links.push_back(std::move(row));
    }
  }

  void DescribeNetwork(Explanation* explanation) const {
    if (simulation_.packets && simulation_.packets->history)
      explanation->network = DrawNetwork(*simulation_.packets->history, schedule_, program_, ops_);
  }

 private:
  const Role& RoleOf(uint32_t rank) const { return schedule_.roles[schedule_.role_of_rank[rank]]; }
  // The op at a position of the rank's role.
  const Op& OpOf(uint32_t rank, uint32_t op) const { return RoleOf(rank).At(op); }

  OpName NameOf(const Op& op) const {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute != nullptr && IsWait(*compute)) return {"waiting", op.name};
    return {classes_.all()[classes_.Of(op)].name, op.name};
  }

  void DescribeSlack(const std::vector<Time>& slack, Explanation* explanation) const {
    std::map<OpName, std::vector<Time>> named;
    for (size_t i = 0; i < slack.size(); ++i) {
      const SpanSpec& span = program_.spans[i];
      named[NameOf(OpOf(span.rank, span.op))].push_back(slack[i]);
    }
    for (auto& [name, times] : named) {
      std::sort(times.begin(), times.end());
      explanation->slack.push_back({name, static_cast<uint32_t>(times.size()),
                                    ToSeconds(times.front()), ToSeconds(times[times.size() / 2])});
    }
    std::stable_sort(explanation->slack.begin(), explanation->slack.end(),
                     [](const NamedSlack& a, const NamedSlack& b) {
                       return std::tie(a.least, a.median) < std::tie(b.least, b.median);
                     });
  }

  void DescribeBottlenecks(const std::vector<OpName>& names,
                           const std::vector<uint32_t>& group_of_flow,
                           Explanation* explanation) const {
    struct Sum {
      uint32_t transfers = 0;
      double share = 0;
    };
    std::map<std::pair<uint32_t, LinkId>, Sum> sums;
    for (size_t flow = 0; flow < group_of_flow.size(); ++flow) {
      const Bottleneck& bottleneck = simulation_.bottlenecks[flow];
      if (!bottleneck.link.IsSet()) continue;
      Sum& sum = sums[{group_of_flow[flow], bottleneck.link}];
      ++sum.transfers;
      sum.share += bottleneck.share;
    }
    for (const auto& [key, sum] : sums) {
      const LinkRecord& link = simulation_.timeline.links[key.second.index()];
      explanation->bottlenecks.push_back(
          {names[key.first], link.name, link.kind, sum.transfers, sum.share / sum.transfers});
    }
    std::stable_sort(explanation->bottlenecks.begin(), explanation->bottlenecks.end(),
                     [](const NamedBottleneck& a, const NamedBottleneck& b) {
                       return std::tie(a.name, b.transfers) < std::tie(b.name, a.transfers);
                     });
  }

  const Schedule& schedule_;
  const Program& program_;
  const Simulation& simulation_;
  const OpsOfTasks ops_;
  const SpanClasses classes_;
};

}  // namespace

Explanation Explain(const Scenario& asked, ProgressObserver& observer) {
  Explanation explanation;
  Scenario scenario = asked;
  std::optional<PlacementSpread> placement = SettlePlacement(&scenario, 0, observer);
  std::vector<Job> jobs = Prepare(scenario, observer);
  std::optional<RouteSpread> routes = SettleRoutes(jobs, &scenario, 0, observer);
  const Cluster& cluster = *scenario.cluster;
  std::vector<bool> carries(cluster.link_count());
  std::vector<ChosenCollective> chosen;
  {
    const PlayedScenario played = PlayJobs(scenario, std::move(jobs),
                                           {.record_bottlenecks = true,
                                            .record_tasks = true,
                                            .watch_packets = true,
                                            .observer = &observer});
    if (routes) DescribeRoutes(cluster, played, &*routes);
    observer.Begin("following what the step waited for", "", 0);
    const std::optional<JobPart> own = OwnPart(scenario, played);
    explanation.result = Describe(scenario, played, own);
    explanation.result.routes = std::move(routes);
    if (placement && placement->steps.empty())
      placement->steps.push_back({placement->seed, explanation.result.step});
    explanation.result.placement = std::move(placement);
    explanation.result.experts =
        DrawExperts(scenario, StepOf(played.schedule(), played.simulation.timeline), 0, observer);
    explanation.of_jobs = scenario.lists_jobs;
    Explainer explainer(played);
    explainer.DescribePath(&explanation);
    explainer.DescribeExposure(own, &explanation);
    explainer.DescribeLinks(&explanation);
    explainer.DescribeNetwork(&explanation);
    chosen = played.lowered.chosen;
    // Closed forms do not say which links they use.
    if (scenario.lowering.fidelity == Fidelity::kFormula) {
      carries.assign(carries.size(), true);
    }
    for (uint32_t i = 0; i < cluster.way_count(); ++i) {
      const LinkRecord& link = played.simulation.timeline.links[played.lowered.links[i]];
      if (link.bytes == Bytes(0)) continue;
      if (!cluster.IsTrunk(i)) carries[i] = true;
      if (cluster.IsTrunk(i))
        for (const uint32_t cable : cluster.CablesOf(i)) carries[cable] = true;
    }
  }
  explanation.sensitivities =
      FindSensitivities(scenario, carries, chosen, observer, &explanation.left_out);
  if (explanation.left_out.empty())
    explanation.stages = TryStageChanges(asked, observer, &explanation.left_out);
  std::stable_sort(explanation.sensitivities.begin(), explanation.sensitivities.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return a.step < b.step; });
  return explanation;
}

std::vector<PathShare> CriticalKinds(const Scenario& asked, ProgressObserver& observer) {
  Scenario scenario = asked;
  SettlePlacement(&scenario, 0, observer);
  std::vector<Job> jobs = Prepare(scenario, observer);
  uint64_t ops = 0;
  for (const Role& role : jobs.front().schedule.roles) ops += role.OpCount();
  if (ops > kMostOpsOfPaths) scenario.lowering.fidelity = Fidelity::kFormula;
  SettleRoutes(jobs, &scenario, 0, observer);
  const PlayedScenario played =
      PlayJobs(scenario, std::move(jobs), {.record_tasks = true, .observer = &observer});
  Explanation explanation;
  Explainer(played).DescribePath(&explanation);
  return std::move(explanation.path_by_kind);
}

}  // namespace rehearse
