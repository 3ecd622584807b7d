#include "scenarios/explaining/sensitivity.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/collective_pins.h"
#include "sim/base/interruption.h"
#include "sim/base/units.h"
#include "sim/schedule/collective_choice.h"
#include "topology/cluster/graph.h"
#include "topology/files/edits.h"

namespace rehearse {
namespace {

// Links that are alike: their kind, the kinds of their ends (the one nearer to the devices first),
// and the distances of their ends.
using LinkClass = std::tuple<uint32_t, uint32_t, LinkKind, VertexKind, VertexKind>;

// How many links each vertex is away from the nearest device.
std::vector<uint32_t> DistancesFromDevices(const Cluster& cluster) {
  const ClusterGraph& graph = GraphOf(cluster);
  constexpr uint32_t kUnseen = 0xffffffffu;
  std::vector<uint32_t> distance(cluster.vertex_count(), kUnseen);
  std::vector<VertexId> open = cluster.devices();
  for (const VertexId device : open) distance[device] = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    for (auto [it, end] = boost::out_edges(open[i], graph); it != end; ++it) {
      const VertexId next = boost::target(*it, graph);
      if (distance[next] != kUnseen) continue;
      distance[next] = distance[open[i]] + 1;
      open.push_back(next);
    }
  }
  return distance;
}

// The links of each class in which at least one carries something.
std::map<LinkClass, std::vector<uint32_t>> LinkClasses(const Cluster& cluster,
                                                       const std::vector<bool>& carries) {
  const std::vector<uint32_t> distance = DistancesFromDevices(cluster);
  std::map<LinkClass, std::vector<uint32_t>> classes;
  std::map<LinkClass, bool> used;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    VertexId near = cluster.SourceOf(i);
    VertexId far = cluster.TargetOf(i);
    if (distance[far] < distance[near]) std::swap(near, far);
    const LinkClass key(distance[near], distance[far], cluster.Link(i).kind,
                        cluster.KindOfVertex(near), cluster.KindOfVertex(far));
    classes[key].push_back(i);
    used[key] = used[key] || carries[i];
  }
  std::erase_if(classes, [&](const auto& entry) { return !used[entry.first]; });
  return classes;
}

// "network nic-switch"; if several classes have this name, also their tier, counted from the
// devices.
std::vector<std::string> NamesOf(const std::map<LinkClass, std::vector<uint32_t>>& classes) {
  std::vector<std::string> names;
  for (const auto& [key, links] : classes) {
    const auto& [near, far, kind, near_kind, far_kind] = key;
    names.push_back(fmt::format("{} {}-{}", Name(kind), Name(near_kind), Name(far_kind)));
  }
  std::map<std::string, int> count;
  for (const std::string& name : names) ++count[name];
  std::map<std::string, int> place;
  for (std::string& name : names) {
    if (count[name] > 1) name += fmt::format(", tier {}", ++place[name]);
  }
  return names;
}

// The cluster's figures, of which one is better.
struct Experiment {
  std::string what;
  std::function<Figures()> figures;
};

// The cluster with devices that `change` has made better.
Experiment WithBetterDevices(const std::string& what, const Cluster& cluster,
                             void (*change)(DeviceSpec&)) {
  return {what, [&cluster, change] {
            Figures figures = cluster.figures();
            for (DeviceSpec& spec : figures.device_specs) change(spec);
            return figures;
          }};
}

Experiment WithFasterLinks(const std::string& what, const Cluster& cluster,
                           const std::vector<uint32_t>& links) {
  return {what, [&cluster, links] {
            std::vector<bool> is_faster(cluster.link_count());
            for (const uint32_t link : links) is_faster[link] = true;
            Figures figures = cluster.figures();
            figures.ChangeLinks([&](uint32_t i, LinkFigures& link) {
              if (is_faster[i]) link.bandwidth = kBetter * link.bandwidth;
            });
            return figures;
          }};
}

Experiment WithShorterLatencies(const Cluster& cluster) {
  return {"latency", [&cluster] {
            Figures figures = cluster.figures();
            figures.ChangeLinks(
                [](uint32_t, LinkFigures& link) { link.latency = link.latency / kBetter; });
            figures.step_overhead = figures.step_overhead / kBetter;
            return figures;
          }};
}

bool HasHostWork(const Scenario& scenario) {
  return std::any_of(scenario.jobs.begin(), scenario.jobs.end(), [](const JobRequest& job) {
    if (const auto* workload = std::get_if<Workload>(&job.work))
      return workload->training.optimizer_on_host;
    const std::vector<Role>& roles = std::get<Schedule>(job.work).roles;
    return std::any_of(roles.begin(), roles.end(), [](const Role& role) {
      return std::any_of(role.ops.begin(), role.ops.end(),
                         [](const Op& op) { return IsHostWork(op.work); });
    });
  });
}

std::vector<Experiment> ExperimentsOn(const Scenario& scenario, const std::vector<bool>& carries) {
  const Cluster& cluster = *scenario.cluster;
  std::vector<Experiment> experiments = {
      WithBetterDevices("arithmetic", cluster,
                        [](DeviceSpec& device) { MultiplyCompute(kBetter, &device); }),
      WithBetterDevices("memory bandwidth", cluster,
                        [](DeviceSpec& device) { device.memory_bandwidth *= kBetter; }),
      WithBetterDevices("kernel launches", cluster, [](DeviceSpec& device) {
        device.launch_overhead = device.launch_overhead / kBetter;
      })};
  if (HasHostWork(scenario))
    experiments.push_back(
        WithBetterDevices("host memory bandwidth", cluster,
                          [](DeviceSpec& device) { device.host_bandwidth *= kBetter; }));
  const auto classes = LinkClasses(cluster, carries);
  const std::vector<std::string> names = NamesOf(classes);
  size_t next = 0;
  for (const auto& [key, links] : classes)
    experiments.push_back(WithFasterLinks(names[next++], cluster, links));
  experiments.push_back(WithShorterLatencies(cluster));
  return experiments;
}

Seconds StepOf(const PlayedScenario& played) {
  return StepOf(played.schedule(), played.simulation.timeline);
}

// Pins what was chosen before. Of several jobs a pin would have to know which one it is for.
bool Keep(const std::vector<NewChoice>& anew, Scenario* scenario) {
  if (scenario->jobs.size() != 1) return false;
  for (const NewChoice& choice : anew) {
    const auto kind =
        std::find_if(std::begin(kCollectiveKinds), std::end(kCollectiveKinds),
                     [&](CollectiveKind known) { return choice.before.kind == Name(known); });
    CollectivePin pin;
    pin.kind = *kind;
    pin.axis = choice.before.axis;
    pin.bytes = choice.before.bytes;
    pin.algorithm = ParseAlgorithm(choice.before.algorithm);
    pin.protocol = ParseProtocol(choice.before.protocol);
    scenario->jobs.front().collective_pins.push_back(pin);
  }
  return true;
}

}  // namespace

std::vector<NewChoice> ChosenAnew(const std::vector<ChosenCollective>& before,
                                  const std::vector<ChosenCollective>& after) {
  using What = std::tuple<std::string, std::string, Bytes>;
  std::map<What, std::pair<std::vector<ChosenCollective>, std::vector<ChosenCollective>>> ways;
  for (const ChosenCollective& way : before)
    ways[{way.axis, way.kind, way.bytes}].first.push_back(way);
  for (const ChosenCollective& way : after)
    ways[{way.axis, way.kind, way.bytes}].second.push_back(way);
  std::vector<NewChoice> anew;
  for (const auto& [what, both] : ways) {
    if (both.first.size() != 1 || both.second.size() != 1) continue;
    const ChosenCollective& a = both.first.front();
    const ChosenCollective& b = both.second.front();
    if (a.algorithm != b.algorithm || a.protocol != b.protocol) anew.push_back({a, b});
  }
  return anew;
}

namespace {

Sensitivity Try(const std::string& what, const Scenario& better,
                const std::vector<ChosenCollective>& chosen, ProgressObserver& observer) {
  Sensitivity row;
  row.what = what;
  const PlayedScenario played = PlayScenario(better, {.observer = &observer});
  row.step = StepOf(played);
  row.anew = ChosenAnew(chosen, played.lowered.chosen);
  Scenario pinned = better;
  if (!row.anew.empty() && Keep(row.anew, &pinned))
    row.kept = StepOf(PlayScenario(pinned, {.observer = &observer}));
  return row;
}

}  // namespace

std::vector<Sensitivity> FindSensitivities(const Scenario& scenario,
                                           const std::vector<bool>& carries,
                                           const std::vector<ChosenCollective>& chosen,
                                           ProgressObserver& observer,
                                           std::vector<std::string>* left_out) {
  const std::vector<Experiment> experiments = ExperimentsOn(scenario, carries);
  std::vector<Sensitivity> rows;
  size_t best = 0;
  Scenario other = scenario;
  try {
    observer.Begin("what would help", "machines", experiments.size());
    for (const Experiment& experiment : experiments) {
      PartObserver part(observer, static_cast<double>(rows.size()), kSimulating);
      other.cluster = std::make_shared<const Cluster>(scenario.cluster->With(experiment.figures()));
      rows.push_back(Try(experiment.what, other, chosen, part));
      if (rows.back().step < rows[best].step) best = rows.size() - 1;
      observer.Note(fmt::format("best {} ({})", Print(rows[best].step), rows[best].what));
      observer.Done(static_cast<double>(rows.size()));
    }
  } catch (const Stopped&) {
    for (size_t i = rows.size(); i < experiments.size(); ++i)
      left_out->push_back(experiments[i].what);
  }
  return rows;
}

}  // namespace rehearse
