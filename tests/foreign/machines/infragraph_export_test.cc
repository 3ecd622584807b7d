// Clusters as infrastructures of InfraGraph, and back.
#include "tools/foreign/machines/infragraph/infragraph_export.h"

#include <cmath>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/foreign/machines/imported.h"
#include "tools/foreign/machines/infragraph/import_infragraph.h"
#include "topology/cluster/builder.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace infragraph_export_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Cluster> ThereAndBack(const Cluster& cluster) {
  return ImportInfraGraph(ClusterToInfraGraph(cluster).text, "infra.json", "").cluster;
}

std::unique_ptr<Cluster> Read(const std::string& json) {
  return ReadCluster(JsonDocument::FromText(json, "drawn.json").Root());
}

// As a graph, without a fabric's own routes.
std::unique_ptr<Cluster> AsDrawn(const Cluster& cluster) { return Read(ClusterToText(cluster)); }

void ExpectNear(double a, double b) { EXPECT_LE(std::abs(a - b), 1e-9 * std::abs(b)); }

// The same devices in the same machines, and the same ways between them.
void ExpectRoutesAlike(const Cluster& back, const Cluster& cluster) {
  ASSERT_EQ(back.device_count(), cluster.device_count());
  EXPECT_EQ(back.node_count(), cluster.node_count());
  EXPECT_EQ(back.vertex_count(), cluster.vertex_count());
  EXPECT_EQ(back.link_count(), cluster.link_count());
  ExpectNear(back.step_overhead().value(), cluster.step_overhead().value());
  ExpectNear(back.collective_overhead().value(), cluster.collective_overhead().value());
  ExpectNear(back.channel_overhead().value(), cluster.channel_overhead().value());
  EXPECT_EQ(back.network_plugin(), cluster.network_plugin());
  Router there(cluster);
  Router again(back);
  const uint32_t most = std::min(cluster.device_count(), 32u);
  for (uint32_t i = 0; i < most; ++i) {
    EXPECT_EQ(back.DeviceOf(i).name, cluster.DeviceOf(i).name);
    EXPECT_EQ(back.NodeIndexOf(i), cluster.NodeIndexOf(i));
    for (uint32_t k = 0; k < most; ++k) {
      if (i == k) continue;
      const Route& a = again.Between(i, k);
      const Route& b = there.Between(i, k);
      ExpectNear(a.latency.value(), b.latency.value());
      ExpectNear(a.bandwidth.value(), b.bandwidth.value());
      EXPECT_EQ(a.links.size(), b.links.size());
      EXPECT_EQ(a.others.size(), b.others.size());
    }
  }
}

TEST(InfraGraphExportTest, EveryPresetComesBackWithItsRoutes) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    SCOPED_TRACE(preset.name);
    const auto cluster = BuildPreset(preset.name, {}, Place());
    ExpectRoutesAlike(*ThereAndBack(*cluster), *AsDrawn(*cluster));
  }
}

TEST(InfraGraphExportTest, SeveralMachinesComeBackWithTheirRoutes) {
  for (const char* preset : {"dgx-a100:nodes=4", "perlmutter:nodes=2", "dgx-h100:nodes=3",
                             "aws-p5:nodes=2", "dgx-1-v100:nodes=2"}) {
    SCOPED_TRACE(preset);
    const auto cluster = ReadClusterArgument(preset);
    ExpectRoutesAlike(*ThereAndBack(*cluster), *AsDrawn(*cluster));
  }
}

// Ranks go to and fro between machines, one link leads one way, two stand beside each other.
constexpr const char* kDrawn = R"({"name": "to and fro", "device": "h100",
  "vertices": [{"name": "x/g0", "kind": "device", "node": "x"},
               {"name": "y/g0", "kind": "device", "node": "y", "device": "a100-80g"},
               {"name": "x/g1", "kind": "device", "node": "x"},
               {"name": "x/nic", "kind": "nic", "node": "x"},
               {"name": "y/nic", "kind": "nic", "node": "y"},
               {"name": "sw 1", "kind": "switch"}],
  "links": [{"between": ["x/g0", "x/g1"], "kind": "nvlink", "bandwidth": "450GBps",
             "latency": "3us", "efficiency": 0.7},
            {"from": "x/g0", "to": "x/nic", "kind": "pcie", "bandwidth": "63GBps",
             "latency": "1us"},
            {"from": "x/nic", "to": "x/g0", "kind": "pcie", "bandwidth": "31GBps",
             "latency": "2us"},
            {"between": ["x/g1", "x/nic"], "kind": "pcie", "bandwidth": "63GBps", "latency": "1us"},
            {"between": ["y/g0", "y/nic"], "kind": "pcie", "bandwidth": "63GBps", "latency": "1us"},
            {"between": ["x/nic", "sw 1"], "kind": "network", "bandwidth": "50GBps",
             "latency": "2us"},
            {"between": ["x/nic", "sw 1"], "kind": "network", "bandwidth": "50GBps",
             "latency": "2us"},
            {"between": ["sw 1", "y/nic"], "kind": "network", "bandwidth": "400Gbps",
             "latency": "2us"}],
  "step_overhead": "1us", "collective_overhead": "12.5us"})";

TEST(InfraGraphExportTest, ADrawnGraphComesBackWithItsRoutes) {
  const auto cluster = Read(kDrawn);
  ExpectRoutesAlike(*ThereAndBack(*cluster), *cluster);
}

TEST(InfraGraphExportTest, EqualMachinesAreOneDevice) {
  const auto cluster = ReadClusterArgument("dgx-a100:nodes=4");
  const nlohmann::json json = nlohmann::json::parse(ClusterToInfraGraph(*cluster).text);
  ASSERT_EQ(json["devices"].size(), 2u);
  EXPECT_EQ(json["devices"][0]["name"], "switch");
  EXPECT_EQ(json["devices"][1]["name"], "machine");
  EXPECT_EQ(json["instances"][1], nlohmann::json::parse(R"({"name": "node", "device": "machine",
                                                            "count": 4})"));
  EXPECT_EQ(json["devices"][1]["components"][0],
            nlohmann::json::parse(R"({"name": "gpu", "count": 8, "choice": "xpu", "xpu": {},
                                      "description": "rehearse: device=a100-40g kind=device"})"));
  // Eight GPUs to one NVSwitch are one edge.
  EXPECT_EQ(json["devices"][1]["edges"][0],
            nlohmann::json::parse(R"({"ep1": {"component": "gpu[0:8]"},
                                      "ep2": {"component": "nvswitch[0]"},
                                      "scheme": "many2many", "link": "nvlink"})"));
  EXPECT_EQ(json["devices"][1]["links"][0]["physical"]["bandwidth"],
            nlohmann::json::parse(R"({"choice": "gigabytes_per_second",
                                      "gigabytes_per_second": 300.0})"));
  EXPECT_EQ(json["devices"][1]["links"][0]["description"],
            "rehearse: efficiency=0.765 kind=nvlink");
}

TEST(InfraGraphExportTest, WhatItCannotCarryIsSaid) {
  const auto preset = ReadClusterArgument("dgx-a100:nodes=2");
  EXPECT_THAT(ClusterToInfraGraph(*preset).remarks,
              AllOf(Contains(HasSubstr("efficiencies")), Contains(HasSubstr("routes")),
                    Not(Contains(HasSubstr("its name alone")))));
  const auto drawn = Read(kDrawn);
  EXPECT_THAT(ClusterToInfraGraph(*drawn).remarks,
              AllOf(Contains(HasSubstr("no direction")), Not(Contains(HasSubstr("routes")))));
  Figures figures = drawn->figures();
  figures.device_specs.front().memory = Bytes(1e9);
  EXPECT_THAT(ClusterToInfraGraph(drawn->With(figures)).remarks,
              Contains(HasSubstr("device h100: its name alone")));
}

TEST(InfraGraphExportTest, AClusterThatIsTooLargeIsRefused) {
  const auto cluster = ReadClusterArgument("dgx-h100:nodes=8192");
  EXPECT_THAT(ErrorThrownBy([&] { ClusterToInfraGraph(*cluster); }), HasSubstr("at most 400000"));
}

}  // namespace infragraph_export_test
}  // namespace rehearse
