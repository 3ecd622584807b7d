#include "scenarios/explaining/sensitivity.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "scenarios/playing/rehearsal.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

// Links that are alike: kind, kinds of the ends (the nearer to the devices first), distances of the
// ends.
using LinkClass = std::tuple<uint32_t, uint32_t, LinkKind, VertexKind, VertexKind>;

// By vertex: links to the nearest device.
std::vector<uint32_t> DistancesFromDevices(const Cluster& cluster) {
  const Cluster::Graph& graph = cluster.graph();
  constexpr uint32_t kUnseen = 0xffffffffu;
  std::vector<uint32_t> distance(boost::num_vertices(graph), kUnseen);
  std::vector<Cluster::VertexId> open = cluster.devices();
  for (const Cluster::VertexId device : open) distance[device] = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    for (auto [it, end] = boost::out_edges(open[i], graph); it != end; ++it) {
      const Cluster::VertexId next = boost::target(*it, graph);
      if (distance[next] != kUnseen) continue;
      distance[next] = distance[open[i]] + 1;
      open.push_back(next);
    }
  }
  return distance;
}

// The links of each class of which one at least carries something.
std::map<LinkClass, std::vector<uint32_t>> LinkClasses(const Cluster& cluster,
                                                       const std::vector<bool>& carries) {
  const Cluster::Graph& graph = cluster.graph();
  const std::vector<uint32_t> distance = DistancesFromDevices(cluster);
  std::map<LinkClass, std::vector<uint32_t>> classes;
  std::map<LinkClass, bool> used;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    Cluster::VertexId near = boost::source(cluster.Edge(i), graph);
    Cluster::VertexId far = boost::target(cluster.Edge(i), graph);
    if (distance[far] < distance[near]) std::swap(near, far);
    const LinkClass key(distance[near], distance[far], cluster.Link(i).kind, graph[near].kind,
                        graph[far].kind);
    classes[key].push_back(i);
    used[key] = used[key] || carries[i];
  }
  std::erase_if(classes, [&](const auto& entry) { return !used[entry.first]; });
  return classes;
}

// "network nic-switch"; where several classes are called so, with their place from the devices on.
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

class Experiments {
 public:
  explicit Experiments(Scenario& scenario) : scenario_(scenario), cluster_(*scenario.cluster) {}

  void ChangeDevices(const std::string& what, const std::function<void(DeviceSpec&)>& change) {
    const std::vector<DeviceSpec> before = cluster_.device_specs();
    for (uint32_t i = 0; i < before.size(); ++i) {
      DeviceSpec changed = before[i];
      change(changed);
      cluster_.ChangeDeviceSpec(i, changed);
    }
    Measure(what);
    for (uint32_t i = 0; i < before.size(); ++i) cluster_.ChangeDeviceSpec(i, before[i]);
  }

  void ChangeRates(const std::string& what, const std::vector<uint32_t>& links) {
    const auto bandwidth_of = [&](uint32_t link) { return cluster_.Link(link).bandwidth; };
    std::vector<BytesPerSecond> before;
    for (const uint32_t link : links) {
      before.push_back(bandwidth_of(link));
      cluster_.ChangeLink(link, kBetter * before.back(), cluster_.Link(link).latency);
    }
    Measure(what);
    for (size_t i = 0; i < links.size(); ++i) {
      cluster_.ChangeLink(links[i], before[i], cluster_.Link(links[i]).latency);
    }
  }

  void ChangeLatencies(const std::string& what) {
    std::vector<Seconds> before;
    const Seconds overhead = cluster_.step_overhead();
    for (uint32_t i = 0; i < cluster_.link_count(); ++i) {
      const ClusterLink& link = cluster_.Link(i);
      before.push_back(link.latency);
      cluster_.ChangeLink(i, link.bandwidth, link.latency / kBetter);
    }
    cluster_.set_step_overhead(overhead / kBetter);
    const std::shared_ptr<const ClusterStructure> structure = cluster_.structure();
    if (structure != nullptr) {
      // The machines are as regular as before, and the routes the same.
      auto faster = std::make_shared<ClusterStructure>(*structure);
      for (Seconds& latency : faster->latencies) latency = latency / kBetter;
      SetStructure(cluster_, faster);
    }
    Measure(what);
    if (structure != nullptr) SetStructure(cluster_, structure);
    for (uint32_t i = 0; i < cluster_.link_count(); ++i) {
      cluster_.ChangeLink(i, cluster_.Link(i).bandwidth, before[i]);
    }
    cluster_.set_step_overhead(overhead);
  }

  std::vector<Sensitivity> TakeRows() { return std::move(rows_); }

 private:
  void Measure(const std::string& what) {
    rows_.push_back({what, ToSeconds(PlayScenario(scenario_).simulation.timeline.step)});
  }

  Scenario& scenario_;
  Cluster& cluster_;
  std::vector<Sensitivity> rows_;
};

}  // namespace

std::vector<Sensitivity> FindSensitivities(Scenario& scenario, const std::vector<bool>& carries) {
  Experiments experiments(scenario);
  experiments.ChangeDevices("arithmetic", [](DeviceSpec& device) {
    for (FlopsPerSecond* peak : {&device.matrix_peak_16, &device.matrix_peak_32,
                                 &device.vector_peak_32, &device.vector_peak_64}) {
      *peak *= kBetter;
    }
  });
  experiments.ChangeDevices("memory bandwidth",
                            [](DeviceSpec& device) { device.memory_bandwidth *= kBetter; });
  experiments.ChangeDevices("kernel launches", [](DeviceSpec& device) {
    device.launch_overhead = device.launch_overhead / kBetter;
  });
  const auto classes = LinkClasses(*scenario.cluster, carries);
  const std::vector<std::string> names = NamesOf(classes);
  size_t next = 0;
  for (const auto& [key, links] : classes) experiments.ChangeRates(names[next++], links);
  experiments.ChangeLatencies("latency");
  return experiments.TakeRows();
}

}  // namespace rehearse
