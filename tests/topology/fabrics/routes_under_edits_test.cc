// Routes under what-if edits: figures change none, links that are down leave the others sprayed.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "tests/topology/fabrics/small_fabrics.h"
#include "topology/cluster/builder.h"
#include "topology/fabrics/nic_owners.h"
#include "topology/fabrics/router.h"
#include "topology/fabrics/structure.h"
#include "topology/files/cluster_export.h"
#include "topology/files/cluster_file.h"
#include "topology/files/edits.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace routes_under_edits_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::unique_ptr<Cluster> ClusterOf(const std::string& json) {
  return ReadCluster(JsonDocument::FromText(json, "cluster.json").Root());
}

std::unique_ptr<Cluster> Edited(const Cluster& cluster, const std::string& edits) {
  return ApplyEdits(cluster, ReadEdits(JsonDocument::FromText(edits, "edits.json").Root()));
}

std::vector<std::string> Names(const Cluster& cluster, const std::vector<uint32_t>& links) {
  std::vector<std::string> names;
  for (const uint32_t link : links) names.push_back(cluster.LinkName(link));
  return names;
}

std::vector<std::string> NamesBetween(const Cluster& cluster, uint32_t from, uint32_t to) {
  Router router(cluster);
  return Names(cluster, router.Between(from, to).links);
}

std::unique_ptr<Cluster> SmallPreset(const ClusterPreset& preset) {
  std::map<std::string, uint32_t> parameters;
  for (const PresetParameter& parameter : preset.parameters)
    if (parameter.name == "nodes" && parameter.maximum >= 3) parameters["nodes"] = 3;
  return BuildPreset(preset.name, parameters, Place());
}

// Boxes of 4 on two levels of 8-port switches: 4 machines a leaf, 8 leaves.
constexpr const char* kTwoLevels = R"({"name": "tree", "nodes": 8,
  "fabric": {"kind": "fat-tree", "radix": 8, "cable": {"bandwidth": "25GBps", "latency": "0us"}},
  "node": {"kind": "nvswitch", "devices": 4, "device": "a100-40g",
           "nvlink": {"bandwidth": "300GBps", "latency": "1us"},
           "pcie": {"bandwidth": "31.5GBps", "latency": "1us"}, "sockets": 2, "pcie_switches": 2,
           "nics": 4, "cable": {"bandwidth": "25GBps", "latency": "1us"},
           "between_sockets": {"bandwidth": "96GBps", "latency": "0.5us"}}})";

TEST(RoutesUnderEditsTest, FiguresOfLinksChangeNoRouteOfAnyPreset) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    SCOPED_TRACE(preset.name);
    const auto cluster = SmallPreset(preset);
    // Every third link, so that machines and ways that were equal are no longer.
    Figures figures = cluster->figures();
    figures.ChangeLinks([](uint32_t i, LinkFigures& link) {
      if (i % 3 == 0) link.latency += Seconds(1e-9);
      if (i % 5 == 0) link.bandwidth = 0.999 * link.bandwidth;
      if (i % 7 == 0) link.latency = 2 * link.latency;
    });
    const Cluster edited = cluster->With(std::move(figures));
    Router before(*cluster);
    Router after(edited);
    const uint32_t ranks = std::min(cluster->device_count(), 40u);
    for (uint32_t a = 0; a < ranks; ++a)
      for (uint32_t b = 0; b < ranks; ++b)
        if (a != b) {
          ASSERT_EQ(after.Between(a, b).links, before.Between(a, b).links) << a << " " << b;
        }
    EXPECT_EQ(after.ways_searched(), 0u);
  }
}

TEST(RoutesUnderEditsTest, AMachineUnlikeTheOthersIsSprayedToAsWell) {
  const auto cluster = ClusterOf(kTwoLevels);
  const auto edited = Edited(*cluster, R"([{"links": "node0/gpu0->node0/nvswitch",
                                            "latency": "+1ns"}])");
  EXPECT_EQ(NamesBetween(*edited, 0, 31), NamesBetween(*cluster, 0, 31));
  EXPECT_THAT(NamesBetween(*edited, 0, 31), Contains("leaf0->spine*"));
}

TEST(RoutesUnderEditsTest, ADeviceWithoutItsNicBorrowsOneAndIsSprayed) {
  const auto cluster = ClusterOf(kTwoLevels);
  const auto edited = Edited(*cluster, R"([{"links": "node0/nic1", "down": true}])");
  const std::vector<std::string> names = NamesBetween(*edited, 1, 31);
  EXPECT_THAT(names, Contains("node0/nic0->leaf0"));
  EXPECT_THAT(names, Contains("leaf0->spine*"));
  EXPECT_THAT(names, Contains("spine*->leaf7"));
  Router router(*edited);
  EXPECT_THAT(router.Fallbacks(), ElementsAre("node0 lacks links: gpu1 by nic0"));
  EXPECT_TRUE(router.HasMachinesApart());
  // The others are as they were.
  EXPECT_EQ(NamesBetween(*edited, 0, 31), NamesBetween(*cluster, 0, 31));
  // A cable without its NIC's PCIe, and a cable that is down one way, come to the same.
  for (const char* edit : {R"([{"links": "node0/nic1->leaf*", "down": true}])",
                           R"([{"links": "node0/nic1->leaf*", "one_way": true, "down": true}])",
                           R"([{"links": "leaf*->node0/nic1", "one_way": true, "down": true}])"}) {
    const auto cut = Edited(*cluster, edit);
    EXPECT_EQ(NamesBetween(*cut, 1, 31), names) << edit;
  }
}

TEST(RoutesUnderEditsTest, WhenAllMachinesLackNicsTheyAreSharedAsOnAMachineDrawnWithoutThem) {
  const auto cluster = ClusterOf(R"({"preset": "dgx-a100", "nodes": 8, "edits": [
      {"links": "node*/nic1", "down": true}, {"links": "node*/nic3", "down": true},
      {"links": "node*/nic5", "down": true}, {"links": "node*/nic7", "down": true}]})");
  Router router(*cluster);
  std::map<std::string, int> senders;  // by NIC
  for (uint32_t place = 0; place < 8; ++place)
    for (const std::string& name : Names(*cluster, router.Between(place, 8 + place).links))
      if (name.starts_with("node0/nic") && name.find("->node0") == std::string::npos)
        ++senders[name.substr(0, name.find("->"))];
  for (const char* nic : {"node0/nic0", "node0/nic2", "node0/nic4", "node0/nic6"})
    EXPECT_EQ(senders[nic], 2) << nic;
  EXPECT_EQ(router.ways(), 1u);
  EXPECT_EQ(router.ways_searched(), 0u);
}

TEST(RoutesUnderEditsTest, CablesOfTheFabricThatAreDownLeaveTheOthersSprayed) {
  const auto cluster = ClusterOf(kTwoLevels);
  Router whole(*cluster);
  const BytesPerSecond all = cluster->Link(whole.Between(0, 31).links[3]).bandwidth;
  for (const char* edit : {R"([{"links": "spine0", "down": true}])",
                           R"([{"links": "leaf0->spine0", "down": true}])"}) {
    const auto edited = Edited(*cluster, edit);
    Router router(*edited);
    const Route& route = router.Between(0, 31);
    ASSERT_TRUE(edited->IsTrunk(route.links[3])) << edit;
    EXPECT_EQ(edited->Link(route.links[3]).bandwidth, 0.75 * all) << edit;  // three of four
    EXPECT_EQ(router.ways_searched(), 0u);
  }
}

TEST(RoutesUnderEditsTest, ALeafWithoutCablesUpIsLeftByAnotherRail) {
  // Rails: equal NICs of up to 4 machines meet at a leaf; nic0 of node0 has no way up.
  std::string rails = kTwoLevels;
  rails.replace(rails.find("fat-tree"), 8, "rails");
  const auto cluster = ClusterOf(rails);
  const auto edited = Edited(*cluster, R"([{"links": "rail0/leaf0->spine*", "down": true}])");
  Router router(*edited);
  const std::vector<std::string> names = Names(*edited, router.Between(0, 28).links);
  EXPECT_THAT(names, Not(Contains("node0/nic0->rail0/leaf0")));
  bool is_sprayed = false;
  for (const uint32_t link : router.Between(0, 28).links)
    is_sprayed = is_sprayed || edited->IsTrunk(link);
  EXPECT_TRUE(is_sprayed);
  EXPECT_EQ(router.ways_searched(), 0u);
  // Below the leaf nothing has changed.
  EXPECT_EQ(NamesBetween(*edited, 0, 4), NamesBetween(*cluster, 0, 4));
}

TEST(RoutesUnderEditsTest, RoundALocalCableOfADragonflyAllOtherSwitchesCarry) {
  const auto cluster = BuildPreset("perlmutter", {{"nodes", 8}}, Place());
  Router whole(*cluster);
  std::string cable;
  for (uint32_t to = 4; to < 32 && cable.empty(); ++to)
    for (const uint32_t link : whole.Between(0, to).links)
      if (cluster->KindOfVertex(cluster->SourceOf(link)) == VertexKind::kSwitch &&
          cluster->KindOfVertex(cluster->TargetOf(link)) == VertexKind::kSwitch)
        cable = cluster->LinkName(link);
  ASSERT_NE(cable, "");
  const auto edited = Edited(*cluster, R"([{"links": ")" + cable + R"(", "down": true}])");
  Router router(*edited);
  for (uint32_t to = 4; to < 32; ++to)
    EXPECT_THAT(Names(*edited, router.Between(0, to).links), Not(Contains(cable)));
  EXPECT_EQ(router.ways_searched(), 0u);
}

TEST(RoutesUnderEditsTest, WhereANicHangsOnItsDeviceAnotherDeviceLeadsOut) {
  const auto cluster = BuildPreset("frontier", {{"nodes", 2}}, Place());
  const auto edited = Edited(*cluster, R"([{"links": "node0/nic0", "down": true}])");
  Router router(*edited);
  const Route& there = router.Between(0, 8);
  EXPECT_EQ(edited->KindOf(there.links.front()), LinkKind::kXgmi);
  EXPECT_EQ(edited->KindOf(router.Between(8, 0).links.back()), LinkKind::kXgmi);
  EXPECT_EQ(router.ways_searched(), 0u);
}

TEST(RoutesUnderEditsTest, EcmpFindsTheLastSpineThatIsUp) {
  const auto cluster = ClusterOf(kTwoLevels);
  const auto edited = Edited(*cluster, R"([{"links": "spine0", "down": true},
      {"links": "spine1", "down": true}, {"links": "spine2", "down": true}])");
  Router router(*edited, {RouteChoice::kEcmp, std::nullopt, std::nullopt});
  for (uint32_t from = 0; from < 4; ++from)
    EXPECT_THAT(Names(*edited, router.Between(from, 31).links), Contains("leaf0->spine3"));
  EXPECT_EQ(router.ways_searched(), 0u);
}

TEST(RoutesUnderEditsTest, DevicesWithoutNicsBorrowDifferentOnes) {
  const auto cluster = ClusterOf(R"({"preset": "dgx-h100", "nodes": 2, "edits": [
      {"links": "node0/nic2", "down": true}, {"links": "node0/nic3", "down": true}]})");
  Router router(*cluster);
  EXPECT_THAT(router.Fallbacks(), ElementsAre("node0 lacks links: gpu2 by nic1, gpu3 by nic0"));
}

// The same vertices and links, of which nothing is known but what is drawn.
std::unique_ptr<Cluster> Drawn(const Cluster& cluster) {
  return ClusterOf(ClusterToText(cluster, ""));
}

TEST(RoutesUnderEditsTest, ANicWhoseCableIsDownIsNobodysOnADrawnClusterEither) {
  const auto cluster = Drawn(*BuildPreset("dgx-h100", {{"nodes", 2}}, Place()));
  for (const char* edit : {R"([{"links": "node0/nic1", "kind": "network", "down": true}])",
                           R"([{"links": "node0/nic1->fabric", "one_way": true, "down": true}])"}) {
    const auto edited = Edited(*cluster, edit);
    EXPECT_THAT(NicOwners(*edited)[1], ElementsAre(edited->FindVertex("node0/nic0"))) << edit;
  }
}

TEST(RoutesUnderEditsTest, WhatALinkWasDrawnWithDecidesAfterASecondEditToo) {
  const auto preset = BuildPreset("dgx-a100", {{"nodes", 2}}, Place());
  const auto drawn = Drawn(*preset);
  for (const Cluster* cluster : {preset.get(), drawn.get()}) {
    const auto owners = NicOwners(*cluster);
    const auto slower = Edited(*cluster, R"([
        {"links": "node0/nic0", "kind": "network", "bandwidth": "0.4x"},
        {"links": "node0/nic3", "kind": "pcie", "latency": "+9us"}])");
    EXPECT_EQ(NicOwners(*slower), owners);
    const auto cut = Edited(*slower, R"([{"links": "node1/nic7", "down": true}])");
    const auto owners_of_cut = NicOwners(*cut);
    for (uint32_t rank = 0; rank < 8; ++rank) EXPECT_EQ(owners_of_cut[rank], owners[rank]) << rank;
  }
}

TEST(RoutesUnderEditsTest, WithANicDownALargeClusterIsCheckedInOnePass) {
  // Device by device this takes minutes.
  const auto cluster = BuildPreset("frontier", {{"nodes", 4096}}, Place());
  const auto edited = Edited(*cluster, R"([{"links": "node0/nic0", "down": true}])");
  EXPECT_LT(edited->link_count(), cluster->link_count());
}

TEST(RoutesUnderEditsTest, AWayThatFlowletTriedInVainLoadsNothing) {
  const auto cluster = ClusterOf(kTwoLevels);
  const auto edited = Edited(*cluster, R"([{"links": "leaf0->spine0", "one_way": true,
                                            "down": true}])");
  // How often a pair takes a way of those that fewest had taken before it, of those that are there.
  const auto least = [](const Cluster& of, bool has_spine0) {
    constexpr uint64_t kSeeds = 200;
    int found = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      Router router(of, {RouteChoice::kFlowlet, std::nullopt, seed});
      std::map<std::string, int> load;
      for (uint32_t place = 0; place < 8; ++place) {
        const std::string leaf = "leaf" + std::to_string(place / 4);
        const auto load_by = [&](uint32_t spine) {
          const std::string name = "spine" + std::to_string(spine);
          return std::max(load[leaf + "->" + name], load[name + "->leaf7"]);
        };
        int fewest = 8;
        for (uint32_t spine = place < 4 && !has_spine0 ? 1 : 0; spine < 4; ++spine)
          fewest = std::min(fewest, load_by(spine));
        uint32_t taken = 0;
        for (const std::string& name : Names(of, router.Between(place, 28 + place % 4).links)) {
          if (!name.starts_with("spine")) continue;
          taken = static_cast<uint32_t>(name.at(5) - '0');
        }
        found += load_by(taken) == fewest;
        ++load[leaf + "->spine" + std::to_string(taken)];
        ++load["spine" + std::to_string(taken) + "->leaf7"];
      }
    }
    return found / (8.0 * kSeeds);
  };
  const double whole = least(*cluster, true);
  EXPECT_GT(whole, 0.6);
  EXPECT_NEAR(least(*edited, false), whole, 0.05);
}

TEST(RoutesUnderEditsTest, RailsThatDoNotMeetAreReachedOverNvLinkWhereANicIsDown) {
  std::string rails = kTwoLevels;
  rails.replace(rails.find("fat-tree"), 8, "rail-only");
  const auto cluster = ClusterOf(rails);
  // GPU 2 of node 1 is now reached by NIC 3, so all leave on that rail.
  const auto edited = Edited(*cluster, R"([{"links": "node1/nic2", "down": true}])");
  for (const uint32_t from : {0u, 1u, 2u}) {
    const std::vector<std::string> names = NamesBetween(*edited, from, 6);
    EXPECT_EQ(names[1], "node0/nvswitch->node0/gpu3") << from;
    EXPECT_THAT(names, Contains("node0/nic3->rail3/fabric"));
  }
  EXPECT_THAT(NamesBetween(*edited, 3, 6), Contains("node0/gpu3->node0/pcie1"));
}

TEST(RoutesUnderEditsTest, AWayRoundInThreeDimensionsIsOneThatIsThere) {
  DragonflySpec spec = DragonflyOf(1);
  spec.local = {{2, Cable(40)}, {2, Cable(40)}, {2, Cable(40)}};
  const auto cluster = Single(spec, 16);
  Router whole(*cluster);
  const std::vector<uint32_t> way = whole.Between(0, 15).links;
  ASSERT_EQ(way.size(), 5u);
  const auto edited =
      Edited(*cluster, R"([{"links": ")" + cluster->LinkName(way[2]) + R"(", "down": true}])");
  Router router(*edited);
  const std::vector<uint32_t> round = router.Between(0, 15).links;
  for (size_t i = 0; i + 1 < round.size(); ++i)
    EXPECT_EQ(edited->TargetOf(round[i]), edited->SourceOf(round[i + 1])) << i;
}

// ---- The class of a path first ------------------------------------------------------------------

TEST(PathClassTest, NvLinkBeatsPcieWhateverTheirLatencies) {
  const auto cluster = ClusterOf(R"({"name": "slow to answer", "nodes": 2,
    "fabric": {"kind": "switch"},
    "node": {"kind": "nvswitch", "devices": 8, "device": "a100-40g",
             "nvlink": {"bandwidth": "300GBps", "latency": "1us"},
             "pcie": {"bandwidth": "25GBps", "latency": "0.5us"}, "sockets": 2,
             "pcie_switches": 4, "nics": 8, "cable": {"bandwidth": "12.5GBps", "latency": "1us"},
             "between_sockets": {"bandwidth": "40GBps", "latency": "0.5us"}}})");
  EXPECT_THAT(NamesBetween(*cluster, 0, 1),
              ElementsAre("node0/gpu0->node0/nvswitch", "node0/nvswitch->node0/gpu1"));
}

// Devices a and b, joined in several ways.
class WaysBetweenTwoTest : public ::testing::Test {
 protected:
  WaysBetweenTwoTest() {
    builder_.AddDeviceSpec(FindDevice("a100-40g"));
    a_ = builder_.AddVertex({"a", VertexKind::kDevice, "n"});
    b_ = builder_.AddVertex({"b", VertexKind::kDevice, "n"});
  }
  void Join(const std::string& name, VertexKind kind, LinkKind link_kind, double microseconds,
            double bandwidth) {
    ClusterLink link;
    link.kind = link_kind;
    link.bandwidth = BytesPerSecond(bandwidth);
    link.latency = Seconds(microseconds * 1e-6);
    const VertexId middle = builder_.AddVertex({name, kind, "n"});
    builder_.AddLinks(a_, middle, link);
    builder_.AddLinks(middle, b_, link);
  }
  std::string Middle() {
    const Cluster cluster = builder_.Finish();
    Router router(cluster);
    return cluster.VertexAt(cluster.TargetOf(router.Between(0, 1).links.front())).name;
  }

  ClusterBuilder builder_{"two"};
  VertexId a_ = 0;
  VertexId b_ = 0;
};

TEST_F(WaysBetweenTwoTest, APcieSwitchIsNearerThanAHostBridge) {
  Join("socket", VertexKind::kSocket, LinkKind::kPcie, 0.1, 100e9);
  Join("pcie", VertexKind::kPcieSwitch, LinkKind::kPcie, 3, 10e9);
  EXPECT_EQ(Middle(), "pcie");
}

TEST_F(WaysBetweenTwoTest, AHostIsNearerThanTheNetwork) {
  Join("network", VertexKind::kSwitch, LinkKind::kNetwork, 0.1, 100e9);
  Join("socket", VertexKind::kSocket, LinkKind::kPcie, 3, 10e9);
  EXPECT_EQ(Middle(), "socket");
}

TEST_F(WaysBetweenTwoTest, OfOneClassTheWiderWayIsTaken) {
  Join("narrow", VertexKind::kPcieSwitch, LinkKind::kPcie, 0.1, 10e9);
  Join("wide", VertexKind::kPcieSwitch, LinkKind::kPcie, 3, 30e9);
  EXPECT_EQ(Middle(), "wide");
}

TEST_F(WaysBetweenTwoTest, NobodyGoesRoundALinkThatIsALittleSlower) {
  Join("near", VertexKind::kPcieSwitch, LinkKind::kPcie, 1, 24.9e9);
  Join("far", VertexKind::kPcieSwitch, LinkKind::kPcie, 3, 25e9);
  EXPECT_EQ(Middle(), "near");
}

TEST(PathClassTest, AMeshWithoutAHostIsCrossedThroughItsDevices) {
  // a - b - c: no link from a to c.
  const auto cluster = ClusterOf(R"({"name": "chain", "device": "v100-16g",
    "vertices": [{"name": "a", "kind": "device", "node": "n"},
                 {"name": "b", "kind": "device", "node": "n"},
                 {"name": "c", "kind": "device", "node": "n"}],
    "links": [{"between": ["a", "b"], "kind": "nvlink", "bandwidth": "25GBps", "latency": "5us"},
              {"between": ["b", "c"], "kind": "nvlink", "bandwidth": "25GBps", "latency": "5us"}]})");
  EXPECT_THAT(NamesBetween(*cluster, 0, 2), ElementsAre("a->b", "b->c"));
  // By one device rather than by three over wider links.
  const auto mesh = ClusterOf(R"({"name": "mesh", "device": "v100-16g",
    "vertices": [{"name": "a", "kind": "device", "node": "n"},
                 {"name": "b", "kind": "device", "node": "n"},
                 {"name": "c", "kind": "device", "node": "n"},
                 {"name": "d", "kind": "device", "node": "n"}],
    "links": [{"between": ["a", "b"], "kind": "nvlink", "bandwidth": "50GBps", "latency": "5us"},
              {"between": ["b", "c"], "kind": "nvlink", "bandwidth": "50GBps", "latency": "5us"},
              {"between": ["c", "d"], "kind": "nvlink", "bandwidth": "50GBps", "latency": "5us"},
              {"between": ["a", "c"], "kind": "nvlink", "bandwidth": "25GBps",
               "latency": "5us"}]})");
  EXPECT_THAT(NamesBetween(*mesh, 0, 3), ElementsAre("a->c", "c->d"));
  // PCIe does not lead through a device.
  EXPECT_THROW(ClusterOf(R"({"name": "chain", "device": "v100-16g",
    "vertices": [{"name": "a", "kind": "device", "node": "n"},
                 {"name": "b", "kind": "device", "node": "n"},
                 {"name": "c", "kind": "device", "node": "n"}],
    "links": [{"between": ["a", "b"], "kind": "pcie", "bandwidth": "25GBps", "latency": "5us"},
              {"between": ["b", "c"], "kind": "pcie", "bandwidth": "25GBps",
               "latency": "5us"}]})"),
               Error);
}

TEST_F(WaysBetweenTwoTest, AWayThatWasDrawnWiderStaysTheWay) {
  Join("narrow", VertexKind::kPcieSwitch, LinkKind::kPcie, 0.1, 10e9);
  Join("wide", VertexKind::kPcieSwitch, LinkKind::kPcie, 3, 30e9);
  const Cluster cluster = builder_.Finish();
  const auto edited = Edited(cluster, R"([{"links": "wide", "bandwidth": "0.1x"}])");
  EXPECT_EQ(NamesBetween(*edited, 0, 1), NamesBetween(cluster, 0, 1));
}

TEST(RoutesUnderEditsTest, LatenciesOfADrawnClusterMoveNoRoute) {
  // Two ways of equal class and width: the first spine. A nanosecond on it does not move the route.
  const auto cluster = ClusterOf(R"({"name": "drawn", "device": "a100-40g",
    "vertices": [{"name": "a", "kind": "device", "node": "m"},
                 {"name": "b", "kind": "device", "node": "n"},
                 {"name": "s", "kind": "switch"}, {"name": "t", "kind": "switch"}],
    "links": [{"between": ["a", "s"], "kind": "network", "bandwidth": "25GBps", "latency": "1us"},
              {"between": ["s", "b"], "kind": "network", "bandwidth": "25GBps", "latency": "1us"},
              {"between": ["a", "t"], "kind": "network", "bandwidth": "25GBps", "latency": "1us"},
              {"between": ["t", "b"], "kind": "network", "bandwidth": "25GBps",
               "latency": "1us"}]})");
  const auto edited = Edited(*cluster, R"([{"links": "s", "latency": "+1ns"}])");
  EXPECT_EQ(NamesBetween(*edited, 0, 1), NamesBetween(*cluster, 0, 1));
  const auto cut = Edited(*edited, R"([{"links": "a->s", "down": true}])");
  EXPECT_THAT(NamesBetween(*cut, 0, 1), ElementsAre("a->t", "t->b"));
}

// ---- What a pattern selects ---------------------------------------------------------------------

TEST(EditKindTest, CablesAndPcieOfANicAreNamedApart) {
  const auto cluster = ClusterOf(R"({"preset": "dgx-a100", "nodes": 2, "edits": [
      {"links": "node*/nic*", "kind": "network", "bandwidth": "12.5GBps"}]})");
  for (uint32_t link = 0; link < cluster->link_count(); ++link) {
    const bool is_cable = cluster->KindOf(link) == LinkKind::kNetwork;
    EXPECT_EQ(cluster->Link(link).bandwidth == BytesPerSecond(12.5e9), is_cable)
        << cluster->LinkName(link);
  }
}

TEST(EditKindTest, APatternForBothSidesOfANicIsRemarkedOn) {
  const auto cluster = ClusterOf(kTwoLevels);
  ::testing::internal::CaptureStderr();
  Edited(*cluster, R"([{"links": "node*/nic*", "bandwidth": "12.5GBps"}])");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("changes node0/nic0->leaf0 (network) and node0/nic0->node0/pcie0 (pcie)"));
  ::testing::internal::CaptureStderr();
  Edited(*cluster, R"([{"links": "node*/nic*", "kind": "pcie", "bandwidth": "12.5GBps"},
                       {"links": "node*/nic*->leaf*", "bandwidth": "12.5GBps"},
                       {"links": "**", "bandwidth": "0.5x"},
                       {"links": "node0/nic0", "down": true}])");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
}

TEST(EditKindTest, AKindThatThePatternDoesNotSelectIsRefused) {
  const auto cluster = ClusterOf(kTwoLevels);
  EXPECT_THROW(Edited(*cluster, R"([{"links": "node*/nic*", "kind": "nvlink",
                                     "bandwidth": "0.5x"}])"),
               Error);
}

}  // namespace routes_under_edits_test
}  // namespace rehearse
