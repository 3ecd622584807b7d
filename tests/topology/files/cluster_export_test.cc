#include "topology/files/cluster_export.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "sim/base/json_document.h"
#include "sim/base/output_file.h"
#include "tests/topology/same_cluster.h"
#include "topology/cluster/builder.h"
#include "topology/fabrics/router.h"
#include "topology/files/cluster_file.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace cluster_export_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<Cluster> ReadBack(const Cluster& cluster) {
  const JsonDocument document = JsonDocument::FromText(ClusterToText(cluster), "exported.json");
  return ReadCluster(document.Root());
}

ClusterLink Link(double bandwidth, double latency, double efficiency = 1) {
  ClusterLink link;
  link.kind = LinkKind::kNvLink;
  link.bandwidth = BytesPerSecond(bandwidth);
  link.latency = Seconds(latency);
  link.efficiency = efficiency;
  return link;
}

// Two devices of one kind on a switch.
std::unique_ptr<Cluster> Pair(const DeviceSpec& spec, const ClusterLink& link) {
  ClusterBuilder cluster("pair");
  const uint32_t device = cluster.AddDeviceSpec(spec);
  const auto a = cluster.AddVertex({"a", VertexKind::kDevice, "n"}, device);
  const auto b = cluster.AddVertex({"b", VertexKind::kDevice, "n"}, device);
  const auto middle = cluster.AddVertex({"middle", VertexKind::kSwitch, ""});
  cluster.AddLinks(a, middle, link);
  cluster.AddLinks(b, middle, link);
  return std::make_unique<Cluster>(cluster.Finish());
}

// ---- The identity -------------------------------------------------------------------------------

TEST(ClusterExportTest, EveryPresetComesBackAsItWas) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    SCOPED_TRACE(preset.name);
    const auto cluster = BuildPreset(preset.name, {}, Place());
    ExpectSameCluster(*ReadBack(*cluster), *cluster);
  }
}

TEST(ClusterExportTest, PresetsOfOtherSizesComeBackAsTheyWere) {
  for (const char* text :
       {"perlmutter:nodes=3", "dgx-a100:nodes=5,device=a100-80g", "switch:devices=1"}) {
    SCOPED_TRACE(text);
    const auto cluster = ReadClusterArgument(text);
    ExpectSameCluster(*ReadBack(*cluster), *cluster);
  }
}

TEST(ClusterExportTest, APresetsRoutesComeBackWithItsName) {
  // ECMP of a fat tree, rails, a dragonfly's own routes, dimension order: a search in the drawn
  // graph would find none of them.
  for (const char* text : {"dgx-1-v100:nodes=40", "dgx-h100:nodes=3,device=h200",
                           "perlmutter:nodes=9", "tpu-v4:x=4"}) {
    SCOPED_TRACE(text);
    const auto cluster = ReadClusterArgument(text);
    const JsonDocument document =
        JsonDocument::FromText(ClusterToText(*cluster, text), "exported.json");
    const auto back = ReadCluster(document.Root());
    ExpectSameCluster(*back, *cluster);
    Router router(*cluster);
    Router router_back(*back);
    const uint32_t devices = cluster->device_count();
    for (uint32_t from = 0; from < devices; from += 7) {
      for (uint32_t to = 0; to < devices; ++to) {
        if (from == to) continue;
        ASSERT_EQ(router.Between(from, to).links, router_back.Between(from, to).links);
      }
    }
  }
}

// Reads it from a file, writes it, reads that.
std::unique_ptr<Cluster> ThereAndBack(const std::string& name, const Cluster& cluster) {
  const JsonDocument document =
      JsonDocument::FromText(ClusterToText(cluster, RoutedAs(name)), "exported.json");
  return ReadCluster(document.Root());
}

TEST(ClusterExportTest, AFileWithLinksDownComesBackSprayed) {
  const std::string file = testing::TempDir() + "/cluster_export_test.json";
  for (const char* text : {R"({"preset": "dgx-1-v100", "nodes": 40, "edits": [
              {"links": "leaf0->spine0", "down": true},
              {"links": "leaf1->spine1", "one_way": true, "down": true},
              {"links": "node1/nic2", "down": true},
              {"links": "node0/nic0", "bandwidth": "0.5x"}]})",
                           R"({"name": "tree", "nodes": 32, "node": "dgx-1-v100",
            "fabric": {"kind": "fat-tree", "radix": 16,
                       "cable": {"bandwidth": "12.5GBps", "latency": "0us"}},
            "edits": [{"links": "leaf0->spine0", "down": true}]})"}) {
    WriteFileAtomically(file, text);
    const auto cluster = ReadClusterArgument(file);
    const auto back = ThereAndBack(file, *cluster);
    ExpectSameCluster(*back, *cluster);
    Router router(*cluster);
    Router router_back(*back);
    bool is_sprayed = false;
    for (uint32_t to = 1; to < cluster->device_count(); ++to) {
      const std::vector<uint32_t>& links = router.Between(0, to).links;
      ASSERT_EQ(links, router_back.Between(0, to).links);
      for (const uint32_t link : links) is_sprayed = is_sprayed || back->IsTrunk(link);
    }
    EXPECT_TRUE(is_sprayed);
    // A graph says what it is routed as, and that stays.
    WriteFileAtomically(file, ClusterToText(*cluster, RoutedAs(file)));
    ExpectSameCluster(*ThereAndBack(file, *ReadClusterArgument(file)), *cluster);
  }
}

std::unique_ptr<Cluster> ReadAgain(const std::string& text) {
  return ReadCluster(JsonDocument::FromText(text, "short.json").Root());
}

// A line for each figure, whatever the number of machines.
TEST(CompactExportTest, EveryPresetIsAShortFileThatIsTheSameCluster) {
  std::vector<std::string> texts = {"dgx-h100:nodes=9,nics=4,nic=200Gbps,oversubscription=2",
                                    "dgx-h100:nodes=4,nic_ports=2,planes=2,device=h200",
                                    "perlmutter:nodes=130,routing=valiant",
                                    "gb200-nvl72:racks=3",
                                    "gb200-nvl72:racks=3,fabric=fat-tree",
                                    "tpu-v4:x=4,y=4,z=4",
                                    "frontier:nodes=40",
                                    "mi300x:nodes=4,fabric=switch"};
  for (const ClusterPreset& preset : ClusterPresets()) texts.push_back(preset.name);
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    const auto cluster = ReadClusterArgument(text);
    const std::optional<std::string> written = CompactText(*cluster, text);
    ASSERT_TRUE(written.has_value());
    EXPECT_LT(std::count(written->begin(), written->end(), '\n'), 36);
    const auto back = ReadAgain(*written);
    ExpectSameCluster(*back, *cluster);
    const std::string file = testing::TempDir() + "/compact_preset_test.json";
    WriteFileAtomically(file, *written);
    EXPECT_EQ(CompactText(*cluster, file), written);
    Router router(*cluster);
    Router router_back(*back);
    for (uint32_t to = 1; to < std::min(cluster->device_count(), 64u); ++to)
      ASSERT_EQ(router.Between(0, to).links, router_back.Between(0, to).links);
  }
}

TEST(CompactExportTest, EditsStayAndWhatItCannotSayIsNotWritten) {
  const std::string file = testing::TempDir() + "/compact_export_test.json";
  const auto written = [&](const std::string& text) {
    WriteFileAtomically(file, text);
    return CompactText(*ReadClusterArgument(file), file);
  };
  const std::optional<std::string> edited = written(
      R"({"preset": "dgx-1-v100", "nodes": 40, "device": {"preset": "v100-16g", "name": "mine"},
          "edits": [{"links": "leaf0->spine0", "down": true}]})");
  ASSERT_TRUE(edited.has_value());
  EXPECT_THAT(*edited, HasSubstr(R"({"down": true, "links": "leaf0->spine0"})"));
  ExpectSameCluster(*ReadAgain(*edited), *ReadClusterArgument(file));
  // A file in this form says what it said.
  const std::optional<std::string> again = written(*edited);
  EXPECT_EQ(again, edited);
  EXPECT_EQ(written(ClusterToText(*ReadClusterArgument("switch:devices=2"))), std::nullopt);
  EXPECT_EQ(written(R"({"preset": "dgx-1-v100", "rings": [[0, 1, 2, 3, 7, 6, 5, 4]]})"),
            std::nullopt);
}

TEST(CompactExportTest, TwistedToriAndHyperXComeBackToo) {
  const std::string node = R"({"name": "x", "node": {"kind": "pcie", "devices": 1,
      "device": "h100", "cable": {"bandwidth": "50GBps", "latency": "1us"}}, )";
  const std::string link = R"("link": {"bandwidth": "50GBps", "latency": "1us"})";
  const std::string file = testing::TempDir() + "/compact_fabric_test.json";
  for (const std::string& rest :
       {R"("nodes": 32, "fabric": {"kind": "torus", "dimensions": [{"size": 4, )" + link +
            R"(, "twist": [0, 4]}, {"size": 8, )" + link + "}]}}",
        R"("nodes": 12, "fabric": {"kind": "hyperx", "nodes_per_switch": 2,
            "local": [{"size": 4, )" +
            link + R"(}, {"size": 3, )" + link + "}]}}",
        R"("nodes": 12, "fabric": {"kind": "hyperx", "nodes_per_switch": 1, "routing": "valiant",
            "local": [{"size": 12, )" +
            link + "}]}}"}) {
    WriteFileAtomically(file, node + rest);
    const auto cluster = ReadClusterArgument(file);
    const std::optional<std::string> written = CompactText(*cluster, file);
    ASSERT_TRUE(written.has_value());
    const auto back = ReadAgain(*written);
    ExpectSameCluster(*back, *cluster);
    Router router(*cluster);
    Router router_back(*back);
    for (uint32_t to = 1; to < cluster->device_count(); ++to)
      ASSERT_EQ(router.Between(0, to).links, router_back.Between(0, to).links);
  }
}

TEST(CompactFormTest, NamesAndWaysBesideASwitchAreChecked) {
  const std::string node = R"({"name": "x", "nodes": 1, "node": {"kind": "nvswitch", "devices": 2,
      "device": "h100", "nvlink": {"bandwidth": "450GBps", "latency": "1us"},
      "pcie": {"bandwidth": "50GBps", "latency": "1us"}, )";
  const auto mistake = [&](const std::string& rest) -> std::string {
    try {
      ReadAgain(node + rest);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(mistake(R"("device_to_socket": {"bandwidth": "36GBps", "latency": "1us"}}})"),
              HasSubstr("there are no \"pcie_switches\""));
  EXPECT_THAT(mistake(R"("socket_name": ""}})"), HasSubstr("/node/socket_name"));
  EXPECT_THAT(mistake(R"("prefix": "tray"}, "fabric": {"kind": "switch", "name": ""}})"),
              HasSubstr("/fabric/name"));
  EXPECT_EQ(mistake(R"("prefix": "tray"}, "fabric": {"kind": "switch", "name": "hub"}})"), "");
  EXPECT_THAT(mistake(R"("prefix": "tray"}, "fabric": {"kind": "torus", "dimensions": [{"size": 4,
      "twist": [1], "link": {"bandwidth": "50GBps", "latency": "1us"}}]}})"),
              AllOf(HasSubstr("/fabric/dimensions/0/twist"), HasSubstr("along itself")));
}

TEST(ClusterExportTest, EveryKnownDeviceIsReadAgainUnderAnotherName) {
  for (DeviceSpec device : KnownDevices()) {
    device.name = "mine";  // so that it is written in full
    EXPECT_NO_THROW(ReadBack(*Pair(device, Link(1, 0)))) << device.description;
  }
}

TEST(ClusterExportTest, AnotherWiringIsNotRoutedAsThePreset) {
  const auto cluster = ReadClusterArgument("perlmutter:nodes=3");
  auto json = ClusterToJson(*cluster, "perlmutter:nodes=3");
  const auto error_of = [](const nlohmann::ordered_json& changed) {
    const JsonDocument document = JsonDocument::FromText(changed.dump(), "changed.json");
    try {
      ReadCluster(document.Root());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  json["links"][5]["bandwidth"] = "1GBps";  // figures may differ
  EXPECT_EQ(error_of(json), "");
  json["links"].erase(5);
  EXPECT_THAT(error_of(json),
              HasSubstr("/routed_as: this is not the wiring of perlmutter:nodes=3"));
  json.erase("routed_as");
  EXPECT_EQ(error_of(json), "");
  json["routed_as"] = "perlmuter";
  EXPECT_THAT(error_of(json), HasSubstr("did you mean \"perlmutter\"?"));
}

TEST(ClusterExportTest, WhatAGraphCannotSayIsRefused) {
  DeviceSpec device = FindDevice("a100-40g");
  device.measured = std::make_shared<const MeasuredKernels>();
  EXPECT_THROW(ClusterToText(*Pair(device, Link(1, 0))), Error);
}

TEST(ClusterExportTest, MixedDevicesOneWayAndParallelLinksComeBack) {
  ClusterBuilder builder("odd \"ends\" \\ ü");
  DeviceSpec own;
  own.name = "mine";
  own.description = "my own device";
  own.matrix_peak_16 = FlopsPerSecond(123456789012345.0);
  own.memory = Bytes(7);
  own.memory_bandwidth = BytesPerSecond(1e12 / 3);
  own.memory_efficiency = 1.0 / 3;
  own.strided_element = Seconds(3.7e-12);
  own.gemm_scale = 1.1;
  own.gemm_points = {{GemmMode::kTN, 1, 2, 3, 0.1}, {GemmMode::kNN, 4096, 4096, 4096, 0.7}};
  own.launch_overhead = Seconds(4.1e-6);
  own.sources = {{"memory", "counted"}, {"the rest", "guessed"}};
  DeviceSpec slowed = FindDevice("a100-40g");  // known by name, but no longer the same
  slowed.gemm_scale *= 0.8;
  const uint32_t first = builder.AddDeviceSpec(own);
  const uint32_t second = builder.AddDeviceSpec(FindDevice("a100-80g"));
  const uint32_t third = builder.AddDeviceSpec(slowed);
  const auto a = builder.AddVertex({"a", VertexKind::kDevice, ""}, first);
  const auto s = builder.AddVertex({"s", VertexKind::kSocket, "x"});
  const auto b = builder.AddVertex({"b", VertexKind::kDevice, "x"}, second);
  const auto c = builder.AddVertex({"c", VertexKind::kDevice, "y"}, third);
  const auto d = builder.AddVertex({"d", VertexKind::kDevice, "y"}, third);
  for (const auto device : {a, b, c, d}) {
    builder.AddLink(s, device, Link(1, 100));
    builder.AddLink(device, s, Link(2, 0, 0.25));  // other direction, other speed
  }
  builder.AddLinks(a, b, Link(3, 1e-6));
  builder.AddLink(a, b, Link(3, 1e-6));
  builder.AddLinks(b, a, Link(3, 1e-6));
  builder.set_step_overhead(Seconds(1.0 / 3));
  builder.AddNote("a note");
  builder.AddNote("another,\nof two lines");
  const Cluster cluster = builder.Finish();
  const auto back = ReadBack(cluster);
  ExpectSameCluster(*back, cluster);
  EXPECT_EQ(back->device_specs().size(), 3u);  // c and d share theirs
}

TEST(ClusterExportTest, ExportingTwiceGivesTheSameText) {
  const auto cluster = BuildPreset("perlmutter", {{"nodes", 2}}, Place());
  EXPECT_EQ(ClusterToText(*ReadBack(*cluster)), ClusterToText(*cluster));
}

RC_GTEST_PROP(ClusterExportTest, EveryNumberComesBackToTheBit, ()) {
  const auto number = [](double smallest, double largest) {
    // Any mantissa, so no decimal is short; the exponent in a range that the units allow.
    const double exponent = *rc::gen::inRange(0, 1000) / 1000.0;
    const double mantissa = 1 + static_cast<double>(*rc::gen::arbitrary<uint32_t>()) / 4294967296.0;
    const double value = smallest * std::pow(largest / smallest, exponent) * mantissa;
    return std::min(value, largest);
  };
  DeviceSpec spec;
  spec.name = "random";
  spec.description = "random";
  spec.matrix_peak_16 = FlopsPerSecond(number(1e-3, 1e25));
  spec.memory = Bytes(number(1, 1e18));
  spec.memory_bandwidth = BytesPerSecond(number(1e-3, 1e20));
  spec.memory_efficiency = number(1e-9, 1);
  spec.launch_overhead = Seconds(number(1e-15, 10));
  spec.sources = {{"all", "random"}};
  const auto cluster = Pair(spec, Link(number(1e-6, 1e25), number(1e-15, 100), number(1e-9, 1)));
  ExpectSameCluster(*ReadBack(*cluster), *cluster);
  RC_ASSERT(!::testing::Test::HasFailure());
}

// ---- The form -----------------------------------------------------------------------------------

TEST(ClusterExportTest, TheTextIsForPeople) {
  const auto cluster = Pair(FindDevice("a100-40g"), Link(300e9, 1.7e-6, 0.8));
  EXPECT_EQ(ClusterToText(*cluster), R"({
  "name": "pair",
  "device": "a100-40g",
  "vertices": [
    {"name": "a", "kind": "device", "node": "n"},
    {"name": "b", "kind": "device", "node": "n"},
    {"name": "middle", "kind": "switch"}],
  "links": [
    {"between": ["a", "middle"], "kind": "nvlink", "bandwidth": "300GBps", "latency": "1.7us", "efficiency": 0.8},
    {"between": ["b", "middle"], "kind": "nvlink", "bandwidth": "300GBps", "latency": "1.7us", "efficiency": 0.8}],
  "step_overhead": "0us"
}
)");
}

TEST(ClusterExportTest, TheShortestExactUnitIsTaken) {
  const auto bandwidth = [](double value) {
    const auto cluster = Pair(FindDevice("a100-40g"), Link(value, 0));
    return ClusterToJson(*cluster)["links"][0]["bandwidth"].get<std::string>();
  };
  EXPECT_EQ(bandwidth(25e9), "25GBps");
  EXPECT_EQ(bandwidth(31.5e9), "31.5GBps");
  EXPECT_EQ(bandwidth(20.0 * 1024 * 1024 * 1024), "20GiBps");  // 21474836480
  EXPECT_EQ(bandwidth(1), "1Bps");
  EXPECT_EQ(bandwidth(1e9 / 3), "333333333.3333333Bps");  // the double nearest to it
}

TEST(ClusterExportTest, OnlyAnUnchangedDeviceIsWrittenByName) {
  DeviceSpec device = FindDevice("a100-40g");
  EXPECT_EQ(ClusterToJson(*Pair(device, Link(1, 0)))["device"], "a100-40g");
  device.launch_overhead = Seconds(1);
  const auto json = ClusterToJson(*Pair(device, Link(1, 0)))["device"];
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["name"], "a100-40g");
  EXPECT_EQ(json["launch_overhead"], "1s");
  EXPECT_EQ(json["gemm_points"].size(), device.gemm_points.size());
}

// ---- What the reader got for it -----------------------------------------------------------------

TEST(GraphFileTest, BadGemmPointsScaleSourcesAndNotesAreRefused) {
  const auto error_of = [](const std::string& in_device, const std::string& in_graph = "") {
    const std::string text =
        R"({"name": "x", "device": {"name": "d", "matrix_peak_16": "1TFLOPS", "memory": "1GB",
        "memory_bandwidth": "1GBps")" +
        in_device + "}, " + in_graph +
        R"("vertices": [{"name": "a", "kind": "device"}], "links": []})";
    const JsonDocument document = JsonDocument::FromText(text, "test.json");
    try {
      ReadCluster(document.Root());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      error_of(R"(, "gemm_points": [{"mode": "NT", "m": 1, "n": 2, "k": 3, "efficiency": 0.5}])"),
      "");
  EXPECT_THAT(
      error_of(R"(, "gemm_points": [{"mode": "TT", "m": 1, "n": 2, "k": 3, "efficiency": 0.5}])"),
      HasSubstr("/device/gemm_points/0/mode: "));
  EXPECT_THAT(
      error_of(R"(, "gemm_points": [{"mode": "NT", "m": 0, "n": 2, "k": 3, "efficiency": 0.5}])"),
      HasSubstr("/device/gemm_points/0/m: "));
  EXPECT_THAT(error_of(R"(, "gemm_scale": 0)"), HasSubstr("/device/gemm_scale: "));
  EXPECT_THAT(error_of(R"(, "sources": {"memory": 1})"), HasSubstr("/device/sources/memory: "));
  EXPECT_THAT(error_of("", R"("notes": [1], )"), HasSubstr("/notes/0: "));
}

}  // namespace cluster_export_test
}  // namespace rehearse
