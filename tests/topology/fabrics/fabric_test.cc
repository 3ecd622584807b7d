// The fabrics: how many switches and links, and their routes against closed forms.
#include "topology/fabrics/fabric.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/fabrics/small_fabrics.h"
#include "topology/cluster/builder.h"
#include "topology/fabrics/router.h"
#include "topology/fabrics/structure.h"
#include "topology/presets/machine.h"

namespace rehearse {
namespace fabric_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

uint32_t SwitchCount(const Cluster& cluster) {
  uint32_t count = 0;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id)
    count += cluster.VertexAt(id).kind == VertexKind::kSwitch ? 1 : 0;
  return count;
}

// ---- Tori and meshes ----------------------------------------------------------------------------

TorusSpec TorusOf(const std::vector<uint32_t>& sizes, bool wraps = true) {
  TorusSpec spec;
  for (const uint32_t size : sizes) spec.dimensions.push_back({size, wraps, Cable()});
  return spec;
}

TEST(TorusTest, ARingGoesTheShorterWayAndTiesGoBothWays) {
  const auto cluster = Single(TorusOf({6}), 6);
  Router router(*cluster);
  EXPECT_THAT(Names(*cluster, router.Between(0, 2)),
              ElementsAre("node0/gpu0->router0", "router0->router1", "router1->router2",
                          "router2->node2/gpu0"));
  EXPECT_THAT(Names(*cluster, router.Between(0, 5)),
              ElementsAre("node0/gpu0->router0", "router0->router5", "router5->node5/gpu0"));
  // Opposite, three hops either way: even places go ahead, odd ones back.
  EXPECT_THAT(Names(*cluster, router.Between(2, 5)),
              ElementsAre("node2/gpu0->router2", "router2->router3", "router3->router4",
                          "router4->router5", "router5->node5/gpu0"));
  EXPECT_THAT(Names(*cluster, router.Between(3, 0)),
              ElementsAre("node3/gpu0->router3", "router3->router2", "router2->router1",
                          "router1->router0", "router0->node0/gpu0"));
}

TEST(TorusTest, EveryPlaceHasAMachine) {
  for (const std::vector<uint32_t>& sizes : {std::vector<uint32_t>{4, 2}, {2, 2, 3}, {5}, {3}})
    EXPECT_THAT(ErrorOf([&] { Single(TorusOf(sizes), 4); }), HasSubstr("but there are 4 machines"));
}

TEST(TorusTest, RoutesCorrectOneDimensionAfterTheOther) {
  const auto cluster = Single(TorusOf({4, 3}), 12);
  Router router(*cluster);
  // From (0,0) to (3,2), which is rank 3 + 4·2: one step back along the first dimension, one
  // along the second.
  EXPECT_THAT(Names(*cluster, router.Between(0, 11)),
              ElementsAre("node0/gpu0->router0.0", "router0.0->router3.0", "router3.0->router3.2",
                          "router3.2->node11/gpu0"));
}

TEST(TorusTest, AMeshDoesNotWrap) {
  const auto cluster = Single(TorusOf({5}, false), 5);
  // 4 links between 5 routers and 5 to the devices, both ways.
  EXPECT_EQ(cluster->link_count(), 2u * (4 + 5));
  Router router(*cluster);
  EXPECT_EQ(router.Between(4, 0).links.size(), 4u + 2);
  EXPECT_EQ(router.Between(0, 4).links.size(), 4u + 2);
}

TEST(TorusTest, TwoRoutersHaveOneLinkWrappedOrNot) {
  EXPECT_EQ(Single(TorusOf({2}), 2)->link_count(), 2u * (1 + 2));
  // 4×2×1: 2 rings of 4, 4 pairs.
  const auto cluster = Single(TorusOf({4, 2, 1}), 8);
  EXPECT_EQ(cluster->link_count(), 2u * (8 + 4 + 8));
  Router router(*cluster);
  EXPECT_THAT(Names(*cluster, router.Between(0, 4)),
              ElementsAre("node0/gpu0->router0.0.0", "router0.0.0->router0.1.0",
                          "router0.1.0->node4/gpu0"));
}

TEST(TorusTest, EveryRouteIsAsLongAsTheDistance) {
  const std::vector<uint32_t> sizes = {5, 4, 3};
  for (const bool wraps : {true, false}) {
    const auto cluster = Single(TorusOf(sizes, wraps), 60);
    Router router(*cluster);
    for (uint32_t a = 0; a < 60; ++a)
      for (uint32_t b = 0; b < 60; ++b) {
        if (a == b) continue;
        uint32_t distance = 0;  // sum over the dimensions
        uint32_t stride = 1;
        for (const uint32_t size : sizes) {
          const uint32_t from = a / stride % size, to = b / stride % size;
          const uint32_t apart = from < to ? to - from : from - to;
          distance += wraps ? std::min(apart, size - apart) : apart;
          stride *= size;
        }
        EXPECT_EQ(router.Between(a, b).links.size(), distance + 2);
      }
  }
}

TEST(TorusTest, DimensionsHaveTheirOwnBandwidth) {
  TorusSpec spec;
  spec.dimensions = {{4, true, Cable(50)}, {4, true, Cable(20)}};
  const auto cluster = Single(spec, 16);
  Router router(*cluster);
  EXPECT_EQ(router.Between(0, 1).bandwidth, BytesPerSecond(50e9));
  EXPECT_EQ(router.Between(0, 4).bandwidth, BytesPerSecond(20e9));
  EXPECT_EQ(router.Between(0, 5).bandwidth, BytesPerSecond(20e9));
}

TEST(TorusTest, NeighboursInAnAllToAllLoadEachLinkAsTheClosedFormSays) {
  // Ring of n = 5, all to all: distances 1, 1, 2, 2, so 5 · 6 hops over 10 directed links: 3 per
  // link.
  const auto cluster = Single(TorusOf({5}), 5);
  Router router(*cluster);
  std::map<std::string, int> load;
  for (uint32_t a = 0; a < 5; ++a)
    for (uint32_t b = 0; b < 5; ++b)
      if (a != b)
        for (const std::string& name : Names(*cluster, router.Between(a, b)))
          if (name.find("gpu") == std::string::npos) ++load[name];
  EXPECT_EQ(load.size(), 10u);
  for (const auto& [name, count] : load) EXPECT_EQ(count, 3) << name;
}

// Going round a dimension of size n leads `twist` along others.
TorusSpec Twisted(const std::vector<uint32_t>& sizes,
                  const std::vector<std::vector<uint32_t>>& twists) {
  TorusSpec spec = TorusOf(sizes);
  for (size_t d = 0; d < sizes.size(); ++d) spec.dimensions[d].twist = twists[d];
  return spec;
}
TorusSpec FaceCentred(uint32_t n) { return Twisted({n, n, 2 * n}, {{0, 0, n}, {0, 0, n}, {}}); }
TorusSpec BodyCentred(uint32_t n) { return Twisted({n, 2 * n, 2 * n}, {{0, n, n}, {}, {}}); }

// How far all routers are from the first, by a search in the graph.
std::map<std::string, uint32_t> Distances(const Cluster& cluster) {
  std::map<std::string, std::vector<std::string>> next;
  std::string first;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const Vertex& from = cluster.VertexAt(cluster.SourceOf(i));
    const Vertex& to = cluster.VertexAt(cluster.TargetOf(i));
    if (from.kind != VertexKind::kSwitch || to.kind != VertexKind::kSwitch) continue;
    if (first.empty()) first = from.name;
    next[from.name].push_back(to.name);
  }
  std::map<std::string, uint32_t> distances = {{first, 0}};
  std::vector<std::string> open = {first};
  for (size_t i = 0; i < open.size(); ++i)
    for (const std::string& name : next[open[i]])
      if (distances.emplace(name, distances[open[i]] + 1).second) open.push_back(name);
  return distances;
}

TEST(TwistedTorusTest, EveryRouteIsAShortestPathOfItsGraph) {
  for (const TorusSpec& spec :
       {FaceCentred(4), BodyCentred(4), Twisted({5, 7}, {{0, 2}, {}}),
        Twisted({3, 4, 5}, {{0, 1, 3}, {}, {}}), Twisted({6, 4, 3}, {{0, 0, 1}, {0, 0, 2}, {}})}) {
    uint32_t routers = 1;
    for (const TorusSpec::Dimension& dimension : spec.dimensions) routers *= dimension.size;
    const auto cluster = Single(spec, routers);
    const std::map<std::string, uint32_t> distances = Distances(*cluster);
    ASSERT_EQ(distances.size(), routers);
    Router router(*cluster);
    for (uint32_t to = 1; to < routers; ++to) {
      const std::vector<std::string> names = Names(*cluster, router.Between(0, to));
      const std::string last = names.back().substr(0, names.back().find("->"));
      EXPECT_EQ(names.size(), distances.at(last) + 2) << to;
    }
    // Every place looks the same from there: a route is a path, and as long as that of another
    // pair as far apart.
    for (uint32_t from = 0; from < routers; from += 7)
      for (uint32_t to = 0; to < routers; to += 3) {
        if (from == to) continue;
        const std::vector<std::string> names = Names(*cluster, router.Between(from, to));
        for (size_t i = 1; i < names.size(); ++i)
          EXPECT_EQ(names[i - 1].substr(names[i - 1].find("->") + 2),
                    names[i].substr(0, names[i].find("->")));
      }
  }
}

// The most that a link carries of an all-to-all, in messages.
uint32_t MostLoad(const Cluster& cluster) {
  Router router(cluster);
  std::vector<uint32_t> load(cluster.link_count());
  for (uint32_t a = 0; a < cluster.device_count(); ++a)
    for (uint32_t b = 0; b < cluster.device_count(); ++b) {
      if (a == b) continue;
      for (const uint32_t link : router.Between(a, b).links) ++load[link];
    }
  uint32_t most = 0;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const bool is_cable = cluster.KindOfVertex(cluster.SourceOf(i)) == VertexKind::kSwitch &&
                          cluster.KindOfVertex(cluster.TargetOf(i)) == VertexKind::kSwitch;
    if (is_cable) most = std::max(most, load[i]);
  }
  return most;
}

// Jouppi et al. (ISCA 2023, section 2.8) measured 1.63 and 1.31 times the all-to-all of plain tori
// on slices of 4 x 4 x 8 and 4 x 8 x 8 TPU v4.
TEST(TwistedTorusTest, AllToAllGainsWhatWasMeasuredOnTpuV4) {
  const double small = static_cast<double>(MostLoad(*Single(TorusOf({4, 4, 8}), 128))) /
                       MostLoad(*Single(FaceCentred(4), 128));
  const double large = static_cast<double>(MostLoad(*Single(TorusOf({4, 8, 8}), 256))) /
                       MostLoad(*Single(BodyCentred(4), 256));
  EXPECT_NEAR(small, 1.63, 0.1);
  EXPECT_NEAR(large, 1.31, 0.1);
}

TEST(TwistedTorusTest, WhatCannotBeTwistedIsRefused) {
  const auto error = [](const std::vector<std::vector<uint32_t>>& twists, bool wraps = true) {
    TorusSpec spec = Twisted({4, 4, 2}, twists);
    spec.dimensions[1].wraps = wraps;
    return ErrorOf([&] { Single(spec, 32); });
  };
  EXPECT_THAT(error({{0, 1}, {}, {}}), HasSubstr("a number for each of the 3 dimensions"));
  EXPECT_THAT(error({{}, {}, {1, 0, 0}}), HasSubstr("fewer than 3 routers"));
  EXPECT_THAT(error({{1, 0, 0}, {}, {}}), HasSubstr("along itself"));
  EXPECT_THAT(error({{0, 4, 0}, {}, {}}), HasSubstr("leads 4 along a dimension of 4"));
  EXPECT_THAT(error({{0, 1, 0}, {1, 0, 0}, {}}), HasSubstr("have none themselves"));
  EXPECT_THAT(error({{0, 1, 0}, {}, {}}, false), HasSubstr("dimensions that wrap"));
}

TEST(TorusTest, ItsSizeIsThatOfTheCluster) {
  EXPECT_THAT(ErrorOf([] {
                Single(TorusOf({4, 4}), 12);
              }),
              AllOf(HasSubstr("16 places"), HasSubstr("12 machines")));
  EXPECT_THAT(ErrorOf([] { Boxes(TorusOf({4}), 4, 2); }), HasSubstr("one port"));
}

// ---- Clos ---------------------------------------------------------------------------------------

TEST(ClosTest, FewMachinesNeedOneSwitch) {
  const auto cluster = Single(ClosOf(8), 8);
  EXPECT_EQ(SwitchCount(*cluster), 1u);
  EXPECT_EQ(Router(*cluster).Between(0, 7).links.size(), 2u);
}

TEST(ClosTest, TwoLevelsHaveTheTextbooksSwitches) {
  // Radix 8: leaves of 4 down and 4 up. 16 machines: 4 leaves, 4 spines, 16 cables between them.
  const auto cluster = Single(ClosOf(8), 16);
  EXPECT_EQ(SwitchCount(*cluster), 8u);
  EXPECT_EQ(cluster->link_count(), 2u * (16 + 16));
  Router router(*cluster);
  EXPECT_THAT(Names(*cluster, router.Between(0, 3)),
              ElementsAre("node0/gpu0->leaf0", "leaf0->node3/gpu0"));
  EXPECT_EQ(router.Between(0, 4).links.size(), 4u);
}

TEST(ClosTest, ThreeLevelsReachAllOfTheirMachines) {
  // Radix 4: the textbook's fat tree has k³/4 = 16 ports, 8 leaves, 8 pod switches, 4 cores.
  const auto cluster = Single(ClosOf(4), 16);
  EXPECT_EQ(SwitchCount(*cluster), 20u);
  EXPECT_EQ(cluster->link_count(), 2u * (16 + 16 + 16));
  Router router(*cluster);
  EXPECT_EQ(router.Between(0, 1).links.size(), 2u);   // leaf
  EXPECT_EQ(router.Between(0, 2).links.size(), 4u);   // pod
  EXPECT_EQ(router.Between(0, 15).links.size(), 6u);  // core
}

TEST(ClosTest, OversubscriptionTakesAwaySpines) {
  // Radix 12, 2:1: 8 down, 4 up. 24 machines: 3 leaves, 4 spines.
  const auto cluster = Single(ClosOf(12, 2, 2), 24);
  EXPECT_EQ(SwitchCount(*cluster), 7u);
  EXPECT_EQ(cluster->link_count(), 2u * (24 + 3 * 4));
}

TEST(ClosTest, ATreeThatIsTooSmallSaysHowMuchItHolds) {
  // 4 down, spines of 8: 32.
  EXPECT_THAT(ErrorOf([] { Single(ClosOf(8, 2), 33); }),
              AllOf(HasSubstr("2 levels of radix 8 has 32 ports"), HasSubstr("33")));
  EXPECT_NO_THROW(Single(ClosOf(8, 2), 32));
  EXPECT_THAT(ErrorOf([] { Single(ClosOf(7), 2); }), HasSubstr("even radix"));
  EXPECT_THAT(ErrorOf([] { Single(ClosOf(4096, 6), 2); }), HasSubstr("cables"));
}

TEST(ClosTest, EcmpSpreadsFlowsOverTheSpines) {
  // 32 flows from one leaf to another, each between another pair, over 32 spines: 32 balls in 32
  // bins leave about 32/e = 12 empty.
  const auto cluster = Single(ClosOf(64, 2), 64);
  Router router(*cluster, kEcmp);
  std::set<std::string> ups;
  for (uint32_t i = 0; i < 32; ++i) ups.insert(Names(*cluster, router.Between(i, 32 + i)).at(1));
  EXPECT_GE(ups.size(), 15u);
  EXPECT_LT(ups.size(), 28u);
}

TEST(ClosTest, EcmpIsDeterministicAndItsSeedMatters) {
  const auto cluster = Single(ClosOf(8), 128);  // three levels
  const auto paths = [&](uint64_t seed) {
    Router router(*cluster, {RouteChoice::kEcmp, std::nullopt, seed});
    std::vector<std::vector<uint32_t>> links;
    for (uint32_t i = 1; i < 128; ++i) links.push_back(router.Between(0, i).links);
    return links;
  };
  EXPECT_EQ(paths(1), paths(1));
  EXPECT_NE(paths(1), paths(2));
}

TEST(ClosTest, RailsJoinEqualPortsAtTheirLeaf) {
  // Radix 8, machines of 2 GPUs: leaves of 4 machines for each of 2 rails, 8 machines: 4 leaves.
  const auto cluster = Boxes(ClosOf(8, 2, 1, true), 8, 2);
  Router router(*cluster);
  EXPECT_THAT(
      Names(*cluster, router.Between(1, 7)),  // GPU 1 of machines 0 and 3
      ElementsAre("node0/gpu1->node0/pcie1", "node0/pcie1->node0/nic1", "node0/nic1->rail1/leaf0",
                  "rail1/leaf0->node3/nic1", "node3/nic1->node3/pcie1", "node3/pcie1->node3/gpu1"));
  EXPECT_EQ(router.Between(1, 9).links.size(), 8u);  // next leaf of the rail: by a spine
  EXPECT_EQ(router.Between(1, 2).links.size(), 8u);  // other rail: likewise
}

TEST(ClosTest, MachinesMayHaveFewerRailsThanPorts) {
  // Radix 8, machines of 4 GPUs on 2 rails: two ports of each on a rail, so leaves of 2 machines.
  ClosSpec spec = ClosOf(8, 2, 1, true);
  spec.rail_count = 2;
  const auto cluster = Boxes(spec, 4, 4);
  Router router(*cluster);
  EXPECT_THAT(
      Names(*cluster, router.Between(1, 7)),  // GPUs 1 and 3 of machines 0 and 1
      ElementsAre("node0/gpu1->node0/pcie1", "node0/pcie1->node0/nic1", "node0/nic1->rail1/leaf0",
                  "rail1/leaf0->node1/nic3", "node1/nic3->node1/pcie3", "node1/pcie3->node1/gpu3"));
  EXPECT_EQ(router.Between(1, 4).links.size(), 8u);   // the other rail
  EXPECT_EQ(router.Between(1, 13).links.size(), 8u);  // the rail's next leaf
  spec.rail_count = 3;
  EXPECT_THAT(ErrorOf([&] { Boxes(spec, 4, 4); }),
              HasSubstr("3 rails need as many ports per machine, or a multiple of that, found 4"));
  spec.rail_count = 1;
  EXPECT_THAT(ErrorOf([&] { Boxes(spec, 4, 5); }),
              HasSubstr("a machine has 5 ports on each of 1 rails, but a leaf has 4"));
}

TEST(ClosTest, ALeafTakesWholeMachines) {
  // Of 16 ports 11 could lead down at 2:1: two machines of 4 ports, and 4 cables up.
  const auto cluster = Boxes(ClosOf(16, 2, 2), 6, 4);
  const auto& clos = std::get<Clos>(cluster->structure()->fabric->kind);
  EXPECT_EQ(clos.ports_down, 8u);
  EXPECT_EQ(clos.levels.front().parents, 4u);
  EXPECT_EQ(clos.levels.front().blocks, 3u);
  for (uint32_t machine = 0; machine < 6; ++machine)
    for (uint32_t port = 0; port < 4; ++port) EXPECT_EQ(LeafOf(clos, machine, port), machine / 2);
  ASSERT_EQ(cluster->notes().size(), 1u);
  EXPECT_THAT(cluster->notes().front(), HasSubstr("4 of the 16 ports of a leaf are idle"));
  // Filled, as every port is cabled: the third machine lies across two leaves.
  ClosSpec filled = ClosOf(16, 2, 2);
  filled.whole_machines = false;
  const auto straddling = Boxes(filled, 6, 4);
  const auto& full = std::get<Clos>(straddling->structure()->fabric->kind);
  EXPECT_EQ(full.ports_down, 11u);
  EXPECT_NE(LeafOf(full, 2, 0), LeafOf(full, 2, 3));
  EXPECT_TRUE(straddling->notes().empty());
}

TEST(ClosTest, ACutCableIsAvoidedByTheOtherChoices) {
  // What ApplyEdits does, by hand: the same cluster without one cable of leaf 0.
  const auto whole = Single(ClosOf(8, 2), 16);
  Router router(*whole, kEcmp);
  const std::vector<uint32_t> first = router.Between(0, 4).links;
  ASSERT_EQ(first.size(), 4u);
  std::vector<bool> gone(whole->link_count());
  gone[first[1]] = true;

  ClusterBuilder builder("rest");
  builder.AddVerticesOf(*whole);
  for (uint32_t i = 0; i < whole->link_count(); ++i)
    if (!gone[i]) builder.AddLink(whole->SourceOf(i), whole->TargetOf(i), whole->Link(i));
  SetStructure(builder,
               std::make_shared<ClusterStructure>(WithoutLinks(*whole->structure(), gone)));
  const Cluster rest = builder.Finish();

  Router other(rest, kEcmp);
  int changed = 0;
  for (uint32_t a = 0; a < 16; ++a)
    for (uint32_t b = 0; b < 16; ++b) {
      if (a == b) continue;
      const auto before = Names(*whole, router.Between(a, b));
      const auto after = Names(rest, other.Between(a, b));
      const std::string cut = whole->LinkName(first[1]);
      EXPECT_EQ(after.size(), before.size());
      if (std::find(before.begin(), before.end(), cut) == before.end()) {
        EXPECT_EQ(after, before);
      } else {
        EXPECT_NE(after, before);
        ++changed;
      }
    }
  EXPECT_GT(changed, 0);
}

// ---- Dragonflies --------------------------------------------------------------------------------

TEST(DragonflyTest, OneGroupIsAllToAll) {
  const auto cluster = Single(DragonflyOf(6), 8);
  EXPECT_EQ(SwitchCount(*cluster), 4u);
  EXPECT_EQ(cluster->link_count(), 2u * (8 + 6));
  Router router(*cluster);
  EXPECT_EQ(router.Between(0, 1).links.size(), 2u);
  EXPECT_EQ(router.Between(0, 7).links.size(), 3u);
}

TEST(DragonflyTest, GlobalCablesAreSharedOutAmongTheGroupsThatThereAre) {
  // 6 cables: with 2 groups 4 bundles of 1.5 cables, with 4 groups 2 of one, with 7
  // groups 1 of one.
  for (const auto& [groups, bundles, bandwidth] :
       {std::tuple(2u, 4u, 15e9), std::tuple(4u, 2u, 10e9), std::tuple(7u, 1u, 10e9)}) {
    const auto cluster = Single(DragonflyOf(6), 8 * groups);
    const uint32_t pairs = groups * (groups - 1) / 2;
    EXPECT_EQ(cluster->link_count(), 2u * (8 * groups + 6 * groups + pairs * bundles));
    EXPECT_EQ(Router(*cluster, kMinimal).Between(0, 8).bandwidth, BytesPerSecond(bandwidth));
  }
}

TEST(DragonflyTest, MinimalRoutesCrossOneGlobalCable) {
  const auto cluster = Single(DragonflyOf(6), 8 * 7);
  Router router(*cluster, kMinimal);
  for (uint32_t a = 0; a < 56; ++a)
    for (uint32_t b = 0; b < 56; ++b) {
      if (a == b) continue;
      const Route& route = router.Between(a, b);
      EXPECT_LE(route.links.size(), a / 8 == b / 8 ? 3u : 5u);
      int globals = 0;
      for (const uint32_t link : route.links) {
        const std::string from = cluster->VertexAt(cluster->SourceOf(link)).name;
        const std::string to = cluster->VertexAt(cluster->TargetOf(link)).name;
        if (from[0] == 'g' && to[0] == 'g' &&
            from.substr(0, from.find('/')) != to.substr(0, to.find('/')))
          ++globals;
      }
      EXPECT_EQ(globals, a / 8 == b / 8 ? 0 : 1);
    }
}

TEST(DragonflyTest, TwoGroupsContendOnTheirGlobalCable) {
  // 7 groups, one cable of 10 GB/s between each two. All 8 machines of group 0 send to group 1:
  // they share it.
  const auto cluster = Single(DragonflyOf(6), 56);
  Router router(*cluster, kMinimal);
  std::map<uint32_t, int> load;
  for (uint32_t i = 0; i < 8; ++i)
    for (const uint32_t link : router.Between(i, 8 + i).links) ++load[link];
  const auto fullest = std::max_element(
      load.begin(), load.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(fullest->second, 8);
  EXPECT_EQ(cluster->Link(fullest->first).bandwidth, BytesPerSecond(10e9));
}

TEST(DragonflyTest, ValiantSpreadsThemOverOtherGroups) {
  // The same 8 flows through 5 other groups: each crosses two global cables, and no cable carries
  // all of them.
  const auto cluster = Single(DragonflyOf(6), 56);
  Router router(*cluster, {RouteChoice::kValiant, std::nullopt, 1});
  Router again(*cluster, {RouteChoice::kValiant, std::nullopt, 1});
  std::map<uint32_t, int> load;
  for (uint32_t i = 0; i < 8; ++i) {
    const Route& route = router.Between(i, 8 + i);
    EXPECT_EQ(route.links, again.Between(i, 8 + i).links);
    EXPECT_LE(route.links.size(), 7u);  // local, global, local, global, local and the two ends
    for (const uint32_t link : route.links)
      if (cluster->Link(link).bandwidth == BytesPerSecond(10e9)) ++load[link];
  }
  int crossings = 0;
  for (const auto& [link, count] : load) {
    crossings += count;
    EXPECT_LT(count, 8);
  }
  EXPECT_EQ(crossings, 16);
  EXPECT_GE(load.size(), 6u);
}

TEST(DragonflyTest, ATwoDimensionalGroupCorrectsOneDimensionAfterTheOther) {
  DragonflySpec spec = DragonflyOf(6);
  spec.local = {{4, Cable(40)}, {3, Cable(30)}};  // 12 switches, 24 machines
  const auto cluster = Single(spec, 24);
  // 3 rows of 6 pairs, 4 columns of 3.
  EXPECT_EQ(cluster->link_count(), 2u * (24 + 18 + 12));
  Router router(*cluster);
  // Machine 0 is on switch 0 = (0,0), machine 23 on switch 11 = (3,2).
  EXPECT_THAT(Names(*cluster, router.Between(0, 23)),
              ElementsAre("node0/gpu0->group0/switch0", "group0/switch0->group0/switch3",
                          "group0/switch3->group0/switch11", "group0/switch11->node23/gpu0"));
}

TEST(DragonflyTest, PortsOfAMachineGoToNeighbouringSwitches) {
  const auto cluster = Boxes(DragonflyOf(6), 4, 2);  // 2 machines per pair of switches
  Router router(*cluster);
  EXPECT_EQ(Names(*cluster, router.Between(0, 2))[2], "node0/nic0->group0/switch0");
  EXPECT_EQ(Names(*cluster, router.Between(1, 2))[2], "node0/nic1->group0/switch1");
  EXPECT_EQ(Names(*cluster, router.Between(4, 0))[2], "node2/nic0->group0/switch2");
  EXPECT_THAT(ErrorOf([] { Boxes(DragonflyOf(6), 4, 3); }), HasSubstr("4 switches"));
}

// ---- HyperX -------------------------------------------------------------------------------------

DragonflySpec HyperXOf(const std::vector<uint32_t>& sizes, RouteChoice choice) {
  DragonflySpec spec;
  for (const uint32_t size : sizes) spec.local.push_back({size, Cable(40)});
  spec.machines_per_switch = 2;
  spec.routing.choice = choice;
  spec.is_hyperx = true;
  return spec;
}

TEST(HyperXTest, EveryDimensionIsJoinedAllToAllAndRoutesCorrectOneAfterTheOther) {
  // 4 x 3 x 2 switches with 2 machines each, of which 40 are there: all switches are drawn.
  const auto cluster = Single(HyperXOf({4, 3, 2}, RouteChoice::kDimensionOrder), 40);
  EXPECT_EQ(SwitchCount(*cluster), 24u);
  // 6 lines of 6 pairs, 8 of 3, 12 of 1.
  EXPECT_EQ(cluster->link_count(), 2u * (40 + 36 + 24 + 12));
  Router router(*cluster);
  // Machine 39 is on switch 19 = (3, 1, 1).
  EXPECT_THAT(Names(*cluster, router.Between(0, 39)),
              ElementsAre("node0/gpu0->switch0", "switch0->switch3", "switch3->switch7",
                          "switch7->switch19", "switch19->node39/gpu0"));
  EXPECT_EQ(router.Between(0, 1).links.size(), 2u);
}

TEST(HyperXTest, ValiantRoutesGoByWayOfSwitchesThatTheFlowsChoose) {
  const auto cluster = Single(HyperXOf({4, 4}, RouteChoice::kValiant), 32);
  Router router(*cluster, {RouteChoice::kValiant, std::nullopt, 1});
  // From both machines of switch 0 to those of switch 1: one cable at least, four at most.
  std::set<std::vector<uint32_t>> ways;
  for (uint32_t from = 0; from < 2; ++from)
    for (uint32_t to = 2; to < 4; ++to) {
      const std::vector<uint32_t> links = router.Between(from, to).links;
      EXPECT_GE(links.size(), 3u);
      EXPECT_LE(links.size(), 6u);
      ways.insert({links.begin() + 1, links.end() - 1});
    }
  EXPECT_GT(ways.size(), 1u);
}

TEST(HyperXTest, TakesNoMoreMachinesThanItHasPlacesAndNoOtherRouting) {
  EXPECT_THAT(ErrorOf([] {
                Single(HyperXOf({4, 3}, RouteChoice::kDimensionOrder), 25);
              }),
              HasSubstr("the HyperX has 24 places, but there are 25 machines"));
  EXPECT_THAT(ErrorOf([] {
                Single(HyperXOf({4, 3}, RouteChoice::kSpray), 24);
              }),
              HasSubstr("a HyperX cannot have routing \"spray\""));
}

}  // namespace fabric_test
}  // namespace rehearse
