#include "scenarios/explaining/sensitivity.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/interruption.h"
#include "sim/base/units.h"
#include "topology/cluster/graph.h"

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

std::vector<Experiment> ExperimentsOn(const Cluster& cluster, const std::vector<bool>& carries) {
  std::vector<Experiment> experiments = {
      WithBetterDevices("arithmetic", cluster,
                        [](DeviceSpec& device) {
                          for (FlopsPerSecond* peak :
                               {&device.matrix_peak_4, &device.matrix_peak_8,
                                &device.matrix_peak_16, &device.matrix_peak_32,
                                &device.vector_peak_32, &device.vector_peak_64}) {
                            *peak *= kBetter;
                          }
                        }),
      WithBetterDevices("memory bandwidth", cluster,
                        [](DeviceSpec& device) { device.memory_bandwidth *= kBetter; }),
      WithBetterDevices("kernel launches", cluster, [](DeviceSpec& device) {
        device.launch_overhead = device.launch_overhead / kBetter;
      })};
  const auto classes = LinkClasses(cluster, carries);
  const std::vector<std::string> names = NamesOf(classes);
  size_t next = 0;
  for (const auto& [key, links] : classes)
    experiments.push_back(WithFasterLinks(names[next++], cluster, links));
  experiments.push_back(WithShorterLatencies(cluster));
  return experiments;
}

}  // namespace

std::vector<Sensitivity> FindSensitivities(const Scenario& scenario,
                                           const std::vector<bool>& carries,
                                           ProgressObserver& observer,
                                           std::vector<std::string>* left_out) {
  const std::vector<Experiment> experiments = ExperimentsOn(*scenario.cluster, carries);
  std::vector<Sensitivity> rows;
  size_t best = 0;
  Scenario other = scenario;
  try {
    observer.Begin("what would help", "machines", experiments.size());
    for (const Experiment& experiment : experiments) {
      PartObserver part(observer, static_cast<double>(rows.size()), kSimulating);
      other.cluster = std::make_shared<const Cluster>(scenario.cluster->With(experiment.figures()));
      const PlayedScenario played = PlayScenario(other, {.observer = &part});
      rows.push_back({experiment.what, StepOf(played.schedule(), played.simulation.timeline)});
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
