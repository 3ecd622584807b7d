#include "topology/files/compact_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "topology/fabrics/router.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace compact_form_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The example of topology/files/compact_form.h; `with` replaces one piece of it by another.
std::string Example(const std::string& piece = "", const std::string& with = "") {
  std::string text = R"({"name": "mine", "nodes": 32,
    "node": {"kind": "nvswitch", "devices": 8, "device": "h100",
             "nvlink": {"bandwidth": "450GBps", "efficiency": 0.8, "latency": "1.7us"},
             "pcie": {"bandwidth": "63GBps", "latency": "2.85us"}, "sockets": 2, "pcie_switches": 4,
             "between_sockets": {"bandwidth": "96GBps", "latency": "0.5us"},
             "nics": 8, "cable": {"bandwidth": "50GBps", "latency": "3.5us"}},
    "fabric": {"kind": "fat-tree", "radix": 64, "levels": 3, "oversubscription": 3,
               "cable": {"bandwidth": "50GBps", "latency": "0us"}}})";
  if (piece.empty()) return text;
  const size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), with);
}

std::unique_ptr<Cluster> Read(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "test.json");
  return ReadCluster(document.Root());
}

std::string ErrorOf(const std::string& text) {
  try {
    Read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CompactFormTest, TheExampleIsRead) {
  const auto cluster = Read(Example());
  EXPECT_EQ(cluster->name(), "mine");
  EXPECT_EQ(cluster->device_count(), 256u);
  EXPECT_EQ(cluster->DeviceOf(0).name, "h100");
  // Radix 64 at 3:1: 48 down, 16 up. 256 ports: 6 leaves in one pod, 16 pod spines, 16·32 cores.
  // A node: 8 to the NVSwitch, 1 between sockets, 4 root ports, 8 GPUs, 8 NICs, 8 cables.
  EXPECT_EQ(cluster->link_count(), 2u * (32 * 37 + 6 * 16 + 16 * 32));
  Router router(*cluster);
  EXPECT_EQ(router.Between(0, 7).bandwidth, BytesPerSecond(0.8 * 450e9));
  EXPECT_EQ(router.Between(0, 8).bandwidth, BytesPerSecond(50e9));
  EXPECT_NEAR(router.Between(0, 255).latency.value(), 2 * (2.85 + 2.85 + 3.5) * 1e-6, 1e-12);
}

TEST(CompactFormTest, AFileHasEditsToo) {
  const auto cluster =
      Read(Example(R"("nodes": 32,)",
                   R"("nodes": 32, "edits": [{"links": "node0/nic0->*", "bandwidth": "0.5x"}],)"));
  EXPECT_EQ(Router(*cluster).Between(0, 8).bandwidth, BytesPerSecond(25e9));
}

TEST(CompactFormTest, APresetLendsItsNode) {
  const auto cluster = Read(R"({"name": "slim", "node": "dgx-h100", "nodes": 64, "fabric":
    {"kind": "rails", "radix": 64, "oversubscription": 3, "cable": {"bandwidth": "50GBps", "latency": "0us"}}})");
  EXPECT_EQ(cluster->device_count(), 512u);
  EXPECT_EQ(cluster->DeviceOf(0).name, "h100");
  const auto other = Read(R"({"name": "slim", "node": "dgx-h100", "device": "h200", "nodes": 1})");
  EXPECT_EQ(other->DeviceOf(7).name, "h200");
  EXPECT_THAT(ErrorOf(R"({"name": "x", "node": "dgx-h10", "nodes": 1})"),
              AllOf(StartsWith("test.json:1: /node: "), HasSubstr("did you mean \"dgx-h100\"?")));
}

TEST(CompactFormTest, EveryKindOfNodeIsRead) {
  const std::string link = R"({"bandwidth": "100GBps", "latency": "1us"})";
  const auto node = [&](const std::string& kind, const std::string& rest) {
    return Read(
        R"({"name": "x", "nodes": 1, "node": {"device": "a100-40g", "devices": 8, "kind": ")" +
        kind + "\"" + rest + "}}");
  };
  const std::string nvlink = ", \"nvlink\": " + link;
  const std::string pcie = ", \"pcie\": " + link;
  EXPECT_EQ(node("nvswitch", nvlink)->link_count(), 16u);
  EXPECT_EQ(node("all-to-all", nvlink)->link_count(), 56u);
  EXPECT_EQ(node("pcie", pcie)->link_count(), 16u);
  EXPECT_EQ(node("pairs", nvlink + pcie)->link_count(), 8u + 16);
  EXPECT_EQ(node("cube-mesh", nvlink + pcie)->link_count(), 32u + 16);
  const auto drawn = node("links", nvlink + pcie + R"(, "lanes": [[0, 1, 2], [6, 7, 1]])");
  EXPECT_EQ(Router(*drawn).Between(0, 1).bandwidth, BytesPerSecond(200e9));
  EXPECT_EQ(Router(*drawn).Between(6, 7).bandwidth, BytesPerSecond(100e9));
  // Through the host: 8 devices both ways, and the memory.
  const auto staged = node("pcie", pcie + ", \"memory\": " + link);
  EXPECT_EQ(staged->link_count(), 17u);
  EXPECT_EQ(Router(*staged).Between(0, 1).links.size(), 3u);
}

TEST(CompactFormTest, EveryKindOfFabricIsRead) {
  const std::string link = R"({"bandwidth": "25GBps", "latency": "1us"})";
  const auto cluster = [&](const std::string& fabric) {
    return Read(
        R"({"name": "x", "nodes": 12, "node": {"device": "a100-40g", "devices": 1, "kind": "pcie", "cable": )" +
        link + "}, \"fabric\": {" + fabric + "}}");
  };
  const std::string cable = ", \"cable\": " + link;
  EXPECT_EQ(cluster(R"("kind": "switch")")->link_count(), 24u);
  // 4 down, 4 up: 3 leaves, 4 spines.
  EXPECT_EQ(cluster(R"("kind": "fat-tree", "radix": 8)" + cable)->link_count(), 2u * (12 + 12));
  EXPECT_EQ(cluster(R"("kind": "rails", "radix": 8)" + cable)->link_count(), 2u * (12 + 12));
  EXPECT_EQ(cluster(R"("kind": "rails", "rails": 1, "radix": 8)" + cable)->link_count(),
            2u * (12 + 12));
  // Groups of 3 switches with 2 nodes: 2 groups of 3 pairs, 2 cables between them.
  EXPECT_EQ(cluster(R"("kind": "dragonfly", "nodes_per_switch": 2, "global_cables": 2,
                       "local": [{"size": 3, "link": )" +
                    link + "}]" + cable)
                ->link_count(),
            2u * (12 + 6 + 2));
  const std::string dimensions = R"(, "dimensions": [{"size": 4, "link": )" + link +
                                 R"(}, {"size": 3, "link": )" + link + "}]";
  EXPECT_EQ(cluster(R"("kind": "torus")" + dimensions)->link_count(), 2u * (12 + 24));
  EXPECT_EQ(cluster(R"("kind": "mesh")" + dimensions)->link_count(), 2u * (12 + 9 + 8));
}

TEST(CompactFormTest, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(ErrorOf(Example("\"radix\": 64", "\"rails\": 4, \"radix\": 64")),
              AllOf(StartsWith("test.json:7: /fabric/rails: "),
                    HasSubstr("only a fabric of kind \"rails\" has them")));
  EXPECT_THAT(
      ErrorOf(Example("\"kind\": \"nvswitch\"", "\"kind\": \"nvswich\"")),
      AllOf(StartsWith("test.json:2: /node/kind: "), HasSubstr("did you mean \"nvswitch\"?")));
  EXPECT_THAT(
      ErrorOf(Example("\"kind\": \"fat-tree\"", "\"kind\": \"fat-treee\"")),
      AllOf(StartsWith("test.json:7: /fabric/kind: "), HasSubstr("did you mean \"fat-tree\"?")));
  EXPECT_THAT(ErrorOf(Example("\"sockets\"", "\"socketts\"")),
              HasSubstr("did you mean \"sockets\"?"));
  EXPECT_THAT(ErrorOf(Example("\"63GBps\"", "63")),
              StartsWith("test.json:4: /node/pcie/bandwidth: "));
  EXPECT_THAT(ErrorOf(Example("\"latency\": \"3.5us\"", "\"efficiency\": 1")),
              HasSubstr("latency"));
  EXPECT_THAT(ErrorOf(Example("0.8", "1.2")), HasSubstr("/node/nvlink/efficiency: "));
  EXPECT_THAT(ErrorOf(Example("\"devices\": 8", "\"devices\": 0")), HasSubstr("/node/devices: "));
  EXPECT_THAT(ErrorOf(Example("\"radix\": 64", "\"radix\": 63")), HasSubstr("/fabric/radix: "));
  EXPECT_THAT(ErrorOf(Example("\"levels\": 3", "\"levels\": 1")), HasSubstr("has 64 ports"));
  EXPECT_THAT(ErrorOf(Example("\"nodes\": 32", "\"nodes\": 1000000")), HasSubstr("/nodes: "));
  EXPECT_THAT(ErrorOf(Example("\"device\": \"h100\",", "")), HasSubstr("\"device\""));
  EXPECT_THAT(ErrorOf(Example("\"nics\": 8, ", "\"memory\": 3, ")), HasSubstr("/node/memory"));
}

// 16,000 sockets joined in all pairs are 255,984,000 links, which took half a minute and 20 GB to
// make when they were not counted first.
TEST(CompactFormTest, NodesAreCountedBeforeTheyAreMade) {
  EXPECT_THAT(
      ErrorOf(Example("\"sockets\": 2", "\"sockets\": 16000")),
      AllOf(StartsWith("test.json:"),
            HasSubstr("/node/sockets: found 16000, expected a whole number from 1 to 1024")));
  EXPECT_THAT(ErrorOf(Example("\"nics\": 8", "\"nics\": 1048576")),
              HasSubstr("/node: found a node of 2097"));
  EXPECT_THAT(ErrorOf(R"({"name": "x", "nodes": 1, "node": {"kind": "all-to-all", "devices": 4096,
                          "device": "h100", "nvlink": {"bandwidth": "1GBps", "latency": "1us"}}})"),
              HasSubstr("/node/devices: found 4096, expected a whole number from 1 to 1024"));
  EXPECT_THAT(
      ErrorOf(Example("\"nodes\": 32", "\"nodes\": 500000")),
      AllOf(HasSubstr("links"), HasSubstr("in 500000 machines, expected at most 16777216")));
}

TEST(CompactFormTest, PartsThatDoNotFitAreRefused) {
  EXPECT_THAT(
      ErrorOf(Example("\"nics\": 8, \"cable\": {\"bandwidth\": \"50GBps\", \"latency\": \"3.5us\"}",
                      "\"nics\": 8")),
      HasSubstr("the NICs need a \"cable\""));
  EXPECT_THAT(
      ErrorOf(Example("\"pcie\": {\"bandwidth\": \"63GBps\", \"latency\": \"2.85us\"},", "")),
      HasSubstr("begins with \"pcie\""));
  EXPECT_THAT(
      ErrorOf(
          R"({"name": "x", "nodes": 2, "node": {"kind": "pcie", "devices": 1, "device": "h100"}})"),
      HasSubstr("no fabric joins them"));
  EXPECT_THAT(ErrorOf(R"({"name": "x", "nodes": 2, "fabric": {"kind": "switch"},
                          "node": {"kind": "pcie", "devices": 1, "device": "h100"}})"),
              HasSubstr("no NICs"));
  EXPECT_THAT(ErrorOf(R"({"name": "x", "nodes": 1, "node": 7})"), HasSubstr("/node: "));
  EXPECT_THAT(ErrorOf(R"({"name": "x", "nodes": 1, "node": "dgx-h100", "fabric": 7})"),
              HasSubstr("/fabric: "));
  EXPECT_THAT(ErrorOf(R"({"name": "x"})"), HasSubstr("\"node\" and \"fabric\""));
}

TEST(CompactFormTest, DevicesWithoutAPathAreAnError) {
  // Two pairs and nothing between them.
  EXPECT_THAT(
      ErrorOf(R"({"name": "x", "nodes": 1, "node": {"kind": "pairs", "devices": 4, "device": "h100",
                          "nvlink": {"bandwidth": "1GBps", "latency": "1us"}}})"),
      HasSubstr("no path"));
}

}  // namespace compact_form_test
}  // namespace rehearse
