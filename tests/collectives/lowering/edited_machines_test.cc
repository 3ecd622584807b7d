// What edits of a single link do to a collective, on every preset and on several fabrics: a figure
// that hardly changes changes the time as little, a link made faster makes nothing slower, and a
// NIC that is down costs what the NICs that are left say.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/lowering/trial.h"
#include "sim/base/json_document.h"
#include "topology/fabrics/structure.h"
#include "topology/files/cluster_file.h"
#include "topology/files/edits.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace edited_machines_test {

struct Machine {
  std::string name;
  std::unique_ptr<Cluster> cluster;
};

// Four DGX H100 or A100 on this fabric.
Machine OnFabric(const std::string& node, const std::string& fabric) {
  const std::string json =
      R"({"name": "four", "nodes": 4, "node": ")" + node + R"(", "fabric": )" + fabric + "}";
  return {node + " on " + fabric, ReadCluster(JsonDocument::FromText(json, "cluster.json").Root())};
}

std::vector<Machine> OnFabrics() {
  const std::string cable = R"("cable": {"bandwidth": "50GBps", "latency": "0us"})";
  std::vector<Machine> machines;
  for (const std::string node : {"dgx-h100", "dgx-a100"}) {
    machines.push_back(OnFabric(node, R"({"kind": "switch"})"));
    machines.push_back(OnFabric(node, R"({"kind": "fat-tree", "radix": 16, )" + cable + "}"));
    machines.push_back(
        OnFabric(node, R"({"kind": "fat-tree", "radix": 8, "levels": 3, )" + cable + "}"));
    machines.push_back(OnFabric(node, R"({"kind": "rails", "radix": 4, )" + cable + "}"));
    machines.push_back(OnFabric(node, R"({"kind": "rail-only", "radix": 8, )" + cable + "}"));
  }
  return machines;
}

// Every preset with at most 4 machines or 128 devices.
std::vector<Machine> AllMachines() {
  std::vector<Machine> machines;
  for (const ClusterPreset& preset : ClusterPresets()) {
    std::map<std::string, uint32_t> parameters;
    for (const PresetParameter& parameter : preset.parameters)
      if (parameter.name == "nodes" && parameter.maximum >= 4) parameters["nodes"] = 4;
    auto cluster = BuildPreset(preset.name, parameters, Place());
    if (cluster->device_count() <= 128) machines.push_back({preset.name, std::move(cluster)});
  }
  for (Machine& machine : OnFabrics()) machines.push_back(std::move(machine));
  return machines;
}

constexpr Bytes kSize(64.0 * (1 << 20));

Seconds TimeOn(const Cluster& cluster, CollectiveKind kind, const std::string& algorithm,
               const std::string& protocol) {
  Trial trial;
  trial.kind = kind;
  trial.groups.emplace_back(cluster.device_count());
  std::iota(trial.groups[0].begin(), trial.groups[0].end(), 0u);
  trial.algorithm = ParseAlgorithm(algorithm);
  trial.protocol = ParseProtocol(protocol);
  Router router(cluster);
  return TimeOf(trial, kSize, router);
}

Cluster With(const Cluster& cluster, uint32_t link, double bandwidth, Seconds latency) {
  Figures figures = cluster.figures();
  figures.ChangeLinks([&](uint32_t i, LinkFigures& changed) {
    if (i != link) return;
    changed.bandwidth = bandwidth * changed.bandwidth;
    changed.latency = std::max(Seconds(0), changed.latency + latency);
  });
  return cluster.With(std::move(figures));
}

// One link of each kind between each two kinds of vertices: the first, and one in the middle.
std::vector<uint32_t> SomeLinks(const Cluster& cluster) {
  std::map<std::tuple<LinkKind, VertexKind, VertexKind>, std::vector<uint32_t>> kinds;
  for (uint32_t link = 0; link < cluster.link_count(); ++link)
    kinds[{cluster.KindOf(link), cluster.KindOfVertex(cluster.SourceOf(link)),
           cluster.KindOfVertex(cluster.TargetOf(link))}]
        .push_back(link);
  std::vector<uint32_t> some;
  for (const auto& [kind, links] : kinds) some.push_back(links[links.size() / 2]);
  return some;
}

// Nothing is chosen anew: rings over bare links.
Seconds PinnedOn(const Cluster& cluster) {
  return TimeOn(cluster, CollectiveKind::kAllReduce, "ring", "none");
}

TEST(EditedMachinesTest, AFigureThatHardlyChangesChangesTheTimeAsLittle) {
  for (const Machine& machine : AllMachines()) {
    SCOPED_TRACE(machine.name);
    if (machine.cluster->device_count() < 2) continue;
    const double pinned = PinnedOn(*machine.cluster).value();
    const double chosen =
        TimeOn(*machine.cluster, CollectiveKind::kAllReduce, "auto", "auto").value();
    for (const uint32_t link : SomeLinks(*machine.cluster)) {
      SCOPED_TRACE(machine.cluster->LinkName(link));
      // A link that is 0.1 % slower slows nothing by more. A nanosecond is met once a step, by 256
      // devices at most 510 times: 0.5 us of at least 0.3 ms.
      const Cluster later = With(*machine.cluster, link, 1, Seconds(1e-9));
      const Cluster slower = With(*machine.cluster, link, 0.999, Seconds(0));
      for (const Cluster* edited : {&later, &slower}) {
        const double now = PinnedOn(*edited).value();
        EXPECT_GE(now, pinned * (1 - 1e-9));
        EXPECT_LE(now, pinned * 1.0025);
        const double chosen_now =
            TimeOn(*edited, CollectiveKind::kAllReduce, "auto", "auto").value();
        EXPECT_NEAR(chosen_now / chosen, 1, 0.005);
      }
    }
  }
}

TEST(EditedMachinesTest, ALinkMadeFasterMakesNothingSlower) {
  for (const Machine& machine : AllMachines()) {
    SCOPED_TRACE(machine.name);
    if (machine.cluster->device_count() < 2) continue;
    const double before = PinnedOn(*machine.cluster).value();
    for (const uint32_t link : SomeLinks(*machine.cluster)) {
      SCOPED_TRACE(machine.cluster->LinkName(link));
      const Seconds latency = machine.cluster->LatencyOf(link);
      EXPECT_LE(PinnedOn(With(*machine.cluster, link, 2, Seconds(0))).value(), before * (1 + 1e-9));
      EXPECT_LE(PinnedOn(With(*machine.cluster, link, 1, -0.5 * latency)).value(),
                before * (1 + 1e-9));
    }
  }
}

TEST(EditedMachinesTest, ANicThatIsDownCostsWhatThoseThatAreLeftSay) {
  for (const Machine& machine : AllMachines()) {
    SCOPED_TRACE(machine.name);
    const Cluster& cluster = *machine.cluster;
    const ClusterStructure* structure = cluster.structure().get();
    if (structure == nullptr || structure->machines < 2) continue;
    std::set<uint32_t> nics;
    for (const uint32_t part : structure->port_vertex)
      if (cluster.KindOfVertex(structure->FirstVertexOf(0) + part) == VertexKind::kNic)
        nics.insert(part);
    if (nics.size() < 2) continue;
    const double before = PinnedOn(cluster).value();
    const auto n = static_cast<double>(nics.size());
    for (const uint32_t nic : {*nics.begin(), *nics.rbegin()}) {
      const VertexId vertex = structure->FirstVertexOf(0) + nic;
      Edit edit;
      edit.selector = cluster.VertexAt(vertex).name;
      SCOPED_TRACE(edit.selector);
      edit.down = true;
      std::unique_ptr<Cluster> edited;
      try {
        edited = ApplyEdits(cluster, {edit});
      } catch (const Error&) {
        continue;  // nothing else leads out of the device
      }
      // The machine's cut: all that others are to add to has to leave it over the NICs that are
      // left, and the sums have to come in.
      BytesPerSecond left;
      for (uint32_t link = 0; link < edited->link_count(); ++link) {
        const VertexId from = edited->SourceOf(link);
        const bool leaves = edited->KindOf(link) == LinkKind::kNetwork &&
                            edited->VertexAt(from).node == cluster.VertexAt(vertex).node;
        if (leaves) left += edited->Link(link).Capacity();
      }
      const double now = PinnedOn(*edited).value();
      EXPECT_GE(now, before * (1 - 1e-9));
      EXPECT_GE(now, (kSize / left).value());
      // n - 1 NICs carry what n did, unless a NIC serves several devices and the rings of its
      // devices cannot be parted.
      const double shared = std::ceil(structure->devices_per_machine / n);
      EXPECT_LE(now, before * (shared <= 1 ? n / (n - 1) : (shared + 1) / shared) * 1.02);
    }
  }
}

}  // namespace edited_machines_test
}  // namespace rehearse
