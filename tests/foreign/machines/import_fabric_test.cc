// Clusters from Slurm's topology.conf and from ibnetdiscover.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/fabric_files.h"
#include "tests/foreign/machines/imported.h"
#include "tools/foreign/machines/fabric_plan.h"
#include "tools/foreign/machines/ibnetdiscover/ibnet_file.h"
#include "tools/foreign/machines/ibnetdiscover/import_ibnet.h"
#include "tools/foreign/machines/slurm/hostlist.h"
#include "tools/foreign/machines/slurm/import_slurm.h"

namespace rehearse {
namespace import_fabric_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

ImportedCluster Slurm(const std::string& text, const std::string& node = "dgx-a100") {
  return ImportSlurm(text, "topology.conf", node);
}
std::string SlurmErrorOf(const std::string& text, const std::string& node = "dgx-a100") {
  return ErrorThrownBy([&] { Slurm(text, node); });
}
ImportedCluster Subnet(const std::string& text, const std::string& node = "dgx-h100") {
  return ImportIbnetdiscover(text, "net.txt", node);
}
std::string SubnetErrorOf(const std::string& text, const std::string& node = "dgx-h100") {
  return ErrorThrownBy([&] { Subnet(text, node); });
}

std::vector<std::string> SwitchesOf(const Cluster& cluster) {
  std::vector<std::string> names;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id)
    if (cluster.KindOfVertex(id) == VertexKind::kSwitch) names.push_back(cluster.VertexAt(id).name);
  return names;
}
double GigabytesOf(const Cluster& cluster, const std::string& link) {
  for (uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.LinkName(i) == link) return cluster.Link(i).bandwidth.value() / 1e9;
  throw Error("there is no link " + link);
}
std::unique_ptr<Cluster> House(const std::string& json) {
  return ReadCluster(JsonDocument::FromText(json, "house.json").Root());
}

// ---- Lists of names -----------------------------------------------------------------------------

std::vector<std::string> Expanded(const std::string& text, size_t most = 100) {
  return ExpandHostlist(text, most, [](const std::string& what) { throw Error(what); });
}
std::string HostlistErrorOf(const std::string& text) {
  return ErrorThrownBy([&] { Expanded(text); });
}

TEST(HostlistTest, RangesCountWithTheDigitsOfTheirFirst) {
  EXPECT_THAT(Expanded("node[001-003,020],login"),
              ElementsAre("node001", "node002", "node003", "node020", "login"));
  EXPECT_THAT(Expanded("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(Expanded("n[08-10]-ib"), ElementsAre("n08-ib", "n09-ib", "n10-ib"));
  EXPECT_THAT(Expanded("rack[0-1]n[1-2]"), ElementsAre("rack0n1", "rack0n2", "rack1n1", "rack1n2"));
}

TEST(HostlistTest, MistakesAreSaid) {
  EXPECT_THAT(HostlistErrorOf("n[1-"), HasSubstr("a [ without its ]"));
  EXPECT_THAT(HostlistErrorOf("n1-3]"), HasSubstr("a ] without its ["));
  EXPECT_THAT(HostlistErrorOf("n[1[2]]"), HasSubstr("a bracket within a bracket"));
  EXPECT_THAT(HostlistErrorOf("n[3-1]"), HasSubstr("the backward range \"3-1\""));
  EXPECT_THAT(HostlistErrorOf("n[a-b]"), HasSubstr("\"a\" in brackets"));
  EXPECT_THAT(HostlistErrorOf("n[1,,2]"), HasSubstr("\"\" in brackets"));
  EXPECT_THAT(HostlistErrorOf("n[]"), HasSubstr("\"\" in brackets"));
  EXPECT_THAT(HostlistErrorOf("a,,b"), HasSubstr("an empty name"));
  EXPECT_THAT(HostlistErrorOf("n[0-999999999]"), HasSubstr("more than 100 names"));
  EXPECT_THAT(HostlistErrorOf("n[0-49][0-49]"), HasSubstr("more than 100 names"));
  EXPECT_THAT(HostlistErrorOf(std::string(65, 'n')), HasSubstr("more than 64 bytes"));
}

// ---- Slurm --------------------------------------------------------------------------------------

TEST(ImportSlurmTest, ATreeIsReadWholly) {
  const ImportedCluster imported = Slurm(
      "# our cluster\r\n"
      "SwitchName=leaf0 Nodes=node[01-02]  LinkSpeed=200 # near the door\n"
      "switchname=leaf1 \\\n   NODES=\"node03,node04\"\n"
      "\n"
      "SwitchName=core Switches=leaf[0-1] Comment=x");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 32u);
  EXPECT_EQ(cluster.node_count(), 4u);
  EXPECT_EQ(cluster.DeviceName(8), "node02/gpu0");
  EXPECT_EQ(cluster.DeviceOf(0).name, "a100-40g");
  EXPECT_THAT(SwitchesOf(cluster), ElementsAre("leaf0", "leaf1", "core"));
  EXPECT_DOUBLE_EQ(GigabytesOf(cluster, "node03/nic5->leaf1"), 25);
  // 8 NICs of 200 Gbit/s in each of two nodes.
  EXPECT_DOUBLE_EQ(GigabytesOf(cluster, "leaf0->core"), 2 * 8 * 25);
  EXPECT_THAT(imported.remarks, Contains(AllOf(StartsWith("line 2"), HasSubstr("LinkSpeed"))));
  EXPECT_THAT(imported.remarks, Contains("line 6: \"Comment\" is left out"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("how many cables lead upwards")));
  ExpectComesBack(cluster);
}

TEST(ImportSlurmTest, TheNodeIsAssumedAndSaidUnlessGiven) {
  const ImportedCluster imported = Slurm("SwitchName=s Nodes=n[1-2]\n", "");
  EXPECT_EQ(imported.cluster->DeviceOf(0).name, "h100");
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("taken for a dgx-h100")));
  EXPECT_THAT(Slurm("SwitchName=s Nodes=n[1-2]\n").remarks, IsEmpty());
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=n\n", "dgx-a10"), HasSubstr("\"dgx-a100\""));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=n\n", "bridge-pairs-a100"),
              HasSubstr("nothing to cable"));
}

TEST(ImportSlurmTest, SpinesSideBySideAreOneAndShareTheCables) {
  const ImportedCluster imported = Slurm(
      "SwitchName=spine[0] Switches=leaf[0-1]\nSwitchName=spine1 Switches=leaf[0-1]\n"
      "SwitchName=leaf0 Nodes=a\nSwitchName=leaf1 Nodes=b\n");
  EXPECT_THAT(SwitchesOf(*imported.cluster), ElementsAre("leaf0", "leaf1", "spine0+1"));
  EXPECT_DOUBLE_EQ(GigabytesOf(*imported.cluster, "leaf0->spine0+1"), 200);
  EXPECT_THAT(imported.remarks, Contains(StartsWith("spine0+1: switches that join the same")));
}

TEST(ImportSlurmTest, ATreeIsAsFastAsTheHousesOwn) {
  const ImportedCluster imported = Slurm(SlurmTree(16, 4), "dgx-h100");
  const auto house = House(R"({"name": "house", "node": "dgx-h100", "nodes": 64,
    "fabric": {"kind": "fat-tree", "radix": 64, "levels": 2,
               "cable": {"bandwidth": "50GBps", "efficiency": 0.955, "latency": "0us"}}})");
  Router router(*imported.cluster);
  Router own(*house);
  for (const auto& [from, to] :
       std::initializer_list<std::pair<uint32_t, uint32_t>>{{0, 7}, {0, 8}, {3, 36}, {511, 2}}) {
    EXPECT_DOUBLE_EQ(router.Between(from, to).bandwidth.value(),
                     own.Between(from, to).bandwidth.value());
    EXPECT_DOUBLE_EQ(router.Between(from, to).latency.value(),
                     own.Between(from, to).latency.value());
    EXPECT_EQ(router.Between(from, to).links.size(), own.Between(from, to).links.size());
  }
}

TEST(ImportSlurmTest, ACutFileIsNotTakenForAWholeOne) {
  // Its last line names the others; without that, nothing joins them.
  const std::string whole = SlurmTree(4, 2);
  EXPECT_THAT(SlurmErrorOf(whole.substr(0, whole.find("SwitchName=spine"))),
              AllOf(StartsWith("topology.conf:3:"), HasSubstr("no switch joins \"leaf0\"")));
  EXPECT_THAT(SlurmErrorOf(whole.substr(0, whole.size() - 5)), HasSubstr("a [ without its ]"));
  EXPECT_THAT(SlurmErrorOf(whole.substr(0, whole.find("=leaf[0"))), HasSubstr("topology.conf:6:"));
}

TEST(ImportSlurmTest, MistakesAreSaidWithTheirLine) {
  EXPECT_THAT(SlurmErrorOf("# nothing\n"), HasSubstr("there is no SwitchName="));
  EXPECT_THAT(SlurmErrorOf("hush\n"),
              AllOf(HasSubstr("topology.conf:1: found a word of 4 bytes"), Not(HasSubstr("hush"))));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s\n"), HasSubstr("neither Nodes= nor Switches="));
  EXPECT_THAT(SlurmErrorOf("Nodes=a\n"), HasSubstr("has no SwitchName="));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s[0-1] Nodes=a\n"), HasSubstr("expected one name"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=\n"), HasSubstr("\"Nodes\" has no value"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=\"a\n"), HasSubstr("no closing quote"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=a Nodes=b\n"), HasSubstr("appears twice"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=ALL\n"), HasSubstr("only slurm.conf has"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=a\nSwitchName=s Nodes=b\n"),
              StartsWith("topology.conf:2: switch \"s\" appears already in line 1"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=a,b\nSwitchName=t Nodes=b\n"),
              StartsWith("topology.conf:2: node \"b\" appears already in line 1"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Switches=t\n"),
              HasSubstr("cabled to \"t\", which no line describes"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Switches=t,t\nSwitchName=t Nodes=a\n"),
              HasSubstr("names \"t\" twice"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Switches=t\nSwitchName=t Switches=s Nodes=a\n"),
              HasSubstr("switch \"s\" is below itself"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=a/b Nodes=x\nSwitchName=a:b Nodes=y\nSwitchName=c "
                           "Switches=a/b,a:b\n"),
              HasSubstr("there is another \"a-b\""));
}

TEST(ImportSlurmTest, TooManyNodesAreRefusedBeforeTheyAreDrawn) {
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=n[0-99999999]\n"), HasSubstr("more than 100000"));
  EXPECT_THAT(SlurmErrorOf("SwitchName=s Nodes=n[0-99999]\n"),
              AllOf(HasSubstr("found 100000 nodes"), HasSubstr("\"fabric\": ...}")));
  std::string chain;  // switches above each other
  for (int i = 1; i < 20'000; ++i) chain += fmt::format("SwitchName=s{} Switches=s{}\n", i, i - 1);
  EXPECT_EQ(Slurm(chain + "SwitchName=s0 Nodes=n[1-2]\n").cluster->node_count(), 2u);
}

// ---- ibnetdiscover ------------------------------------------------------------------------------

TEST(IbRateTest, AreThoseOfTheSpecification) {
  // Four lanes: 8, 16, 32, 40, 54.5, 100, 200, 400 and 800 Gbit/s of data.
  EXPECT_DOUBLE_EQ(IbRate("4xSDR")->value(), 1e9);
  EXPECT_DOUBLE_EQ(IbRate("4xDDR")->value(), 2e9);
  EXPECT_DOUBLE_EQ(IbRate("4xQDR")->value(), 4e9);
  EXPECT_DOUBLE_EQ(IbRate("4xFDR10")->value(), 5e9);
  EXPECT_NEAR(IbRate("4xFDR")->value(), 6.818e9, 1e6);
  EXPECT_DOUBLE_EQ(IbRate("4xEDR")->value(), 12.5e9);
  EXPECT_DOUBLE_EQ(IbRate("2xHDR")->value(), 12.5e9);
  EXPECT_DOUBLE_EQ(IbRate("4xHDR")->value(), 25e9);
  EXPECT_DOUBLE_EQ(IbRate("4xNDR")->value(), 50e9);
  EXPECT_DOUBLE_EQ(IbRate("4xXDR")->value(), 100e9);
  for (const char* none : {"", "4x", "3xHDR", "4xHDR2", "HDR", "x", "lid"})
    EXPECT_FALSE(IbRate(none).has_value()) << none;
}

TEST(ImportIbnetTest, ATreeIsReadWholly) {
  const ImportedCluster imported = Subnet(IbTree{.leaves = 2, .spines = 2, .nodes = 4}.Text());
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 32u);
  EXPECT_EQ(cluster.NodeOf(0), "node00");
  EXPECT_EQ(cluster.NodeOf(31), "node03");
  EXPECT_THAT(SwitchesOf(cluster), ElementsAre("leaf00", "leaf01", "spine00+1"));
  EXPECT_DOUBLE_EQ(GigabytesOf(cluster, "node00/nic0->leaf00"), 50);
  EXPECT_DOUBLE_EQ(GigabytesOf(cluster, "node03/nic7->leaf01"), 50);
  // Two spines, two cables to each.
  EXPECT_DOUBLE_EQ(GigabytesOf(cluster, "leaf00->spine00+1"), 4 * 50);
  EXPECT_THAT(imported.remarks, ElementsAre(StartsWith("spine00+1: switches that join the same")));
  ExpectComesBack(cluster);
}

TEST(ImportIbnetTest, RailsAreThoseOfTheFile) {
  const ImportedCluster imported =
      Subnet(IbTree{.leaves = 8, .spines = 4, .nodes = 4, .cables = 1, .rails = true}.Text());
  const Cluster& cluster = *imported.cluster;
  EXPECT_DOUBLE_EQ(GigabytesOf(cluster, "node02/nic5->leaf05"), 50);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("PXN")));
  Router router(cluster);
  // From GPU to NIC by a PCIe switch, to the leaf of the rail, and the same down again.
  EXPECT_EQ(router.Between(3, 8 + 3).links.size(), 6u);
  EXPECT_EQ(router.Between(3, 8 + 4).links.size(), 8u);
}

TEST(ImportIbnetTest, AdaptersAreTheNodesNicsInTheOrderOfTheirNumbers) {
  std::string text = IbTree{.leaves = 1, .spines = 0, .nodes = 2, .adapters = 2}.Text();
  for (size_t at = 0; (at = text.find("node00 mlx5_0", at)) != std::string::npos; at += 14)
    text.replace(at, 13, "node00 mlx5_10");
  text.replace(text.find("4xNDR", text.find("Ca\t1")), 5, "4xHDR");  // of the first, mlx5_10
  const ImportedCluster imported = Subnet(text);
  EXPECT_DOUBLE_EQ(GigabytesOf(*imported.cluster, "node00/nic0->leaf00"), 50);
  EXPECT_DOUBLE_EQ(GigabytesOf(*imported.cluster, "node00/nic1->leaf00"), 25);
  EXPECT_THAT(imported.remarks, Contains(AllOf(StartsWith("node00 and node01: 2 adapters, fewer"),
                                               HasSubstr("8 NICs of a dgx-h100"))));
}

TEST(ImportIbnetTest, MoreAdaptersThanNicsAreRefused) {
  EXPECT_THAT(SubnetErrorOf(IbTree{.leaves = 1, .spines = 0, .nodes = 2, .adapters = 9}.Text()),
              HasSubstr("host \"node00\" has 9 adapters, but a dgx-h100 has 8 NICs"));
}

TEST(ImportIbnetTest, WhatIsNoHostAndNoSwitchIsLeftOutAndSaid) {
  std::string text = IbTree{.leaves = 1, .spines = 0, .nodes = 2}.Text();
  const std::string leaf = IbTree::LeafId(0);
  text.insert(text.find("[1]\t"),
              "[60]\t\"H-aa\"[1](aa)\t# \"Mellanox Technologies Aggregation Node\" lid 9 4xHDR\n"
              "[61]\t\"R-bb\"[1](bb)\t# \"router\" lid 9 4xHDR\n");
  text += "\nCa\t1 \"H-aa\"\t# \"Mellanox Technologies Aggregation Node\"\n[1](aa)\t\"" + leaf +
          "\"[60]\t# lid 9 lmc 0 \"x\" lid 5 4xHDR\n\nRt\t1 \"R-bb\"\t# \"router\"\n[1](bb)\t\"" +
          leaf + "\"[61]\t# lid 9 4xHDR\nibwarn: something\n";
  const ImportedCluster imported = Subnet(text);
  EXPECT_EQ(imported.cluster->node_count(), 2u);
  EXPECT_THAT(imported.remarks, Contains("H-aa: an adapter that names no host is left out"));
  EXPECT_THAT(imported.remarks, Contains("R-bb: a router is left out"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("neither a node nor a port")));
}

TEST(ImportIbnetTest, UnequalCablesOfSpinesAreSaid) {
  std::string text = IbTree{.leaves = 2, .spines = 2, .nodes = 2, .cables = 1}.Text();
  // The cable of the first leaf to the first spine, at both its ends.
  const std::string there =
      fmt::format("\"{}\"[1]\t\t# \"MF0;spine00:MQM9700/U1\" lid 2 4xNDR", IbTree::SpineId(0));
  text.replace(text.find(there) + there.size() - 5, 5, "4xHDR");
  const ImportedCluster imported = Subnet(text);
  EXPECT_DOUBLE_EQ(GigabytesOf(*imported.cluster, "leaf00->spine00+1"), 75);
  EXPECT_THAT(imported.remarks,
              Contains(AllOf(StartsWith("spine00+1: drawn as one switch although"),
                             HasSubstr("cables differ"))));
}

TEST(ImportIbnetTest, ACutFileIsRefusedWhereverItIsCut) {
  const std::string whole = IbTree{.leaves = 2, .spines = 1, .nodes = 2, .adapters = 2}.Text();
  const size_t last = whole.rfind("# lid 12");
  for (size_t length = 1; length < last; length += 13)
    EXPECT_THAT(SubnetErrorOf(whole.substr(0, length)), StartsWith("net.txt:")) << length;
  EXPECT_EQ(SubnetErrorOf(whole), "");
}

TEST(ImportIbnetTest, MistakesAreSaidWithTheirLine) {
  EXPECT_THAT(SubnetErrorOf("hush\n"),
              AllOf(HasSubstr("there is no Switch and no Ca"), Not(HasSubstr("hush"))));
  EXPECT_THAT(SubnetErrorOf("Switch 3 \"H-12\" # \"x\"\n"),
              StartsWith("net.txt:1: found no number"));
  EXPECT_THAT(SubnetErrorOf("[1] \"S-1\"[2] # x\n"), HasSubstr("a port before any node"));
  EXPECT_THAT(SubnetErrorOf("Switch 3 \"S-1\" # \"x\"\n\nSwitch 3 \"S-1\" # \"x\"\n"),
              StartsWith("net.txt:3: \"S-1\" appears already in line 1"));
  EXPECT_THAT(SubnetErrorOf("Switch 3 \"S-1\" # \"x\"\n[1]\t\"S-2\"\n"),
              StartsWith("net.txt:2: this line of a port"));
  EXPECT_THAT(
      SubnetErrorOf("Switch 3 \"S-1\" # \"x\"\n[1] \"S-1\"[1] # \"x\" 4xHDR\n[1] \"S-1\"[2] "
                    "# \"x\" 4xHDR\n"),
      StartsWith("net.txt:3: port 1 of S-1 appears already in line 2"));
  EXPECT_THAT(SubnetErrorOf("Switch 3 \"S-1\" # \"x\"\n[1] \"S-2\"[1] # \"x\" 4xHDR\n"),
              HasSubstr("S-2, which has no lines of its own"));
  EXPECT_THAT(SubnetErrorOf("Switch 3 \"S-1\" # \"x\"\n[1] \"S-2\"[1] # \"x\" 4xHDR\n"
                            "Switch 3 \"S-2\" # \"y\"\n[1] \"S-1\"[2] # \"x\" 4xHDR\n"),
              HasSubstr("that is cabled to another one, in line 4"));
  EXPECT_THAT(SubnetErrorOf("Switch 3 \"S-1\" # \"x\"\n"), HasSubstr("there is no node"));
}

}  // namespace import_fabric_test
}  // namespace rehearse
