#include "topology/fabrics/router.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sanitizers.h"
#include "topology/cluster/builder.h"
#include "topology/fabrics/nic_owners.h"
#include "topology/fabrics/path_class.h"
#include "topology/fabrics/path_cost.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace router_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ClusterLink LinkOf(double microseconds, double bandwidth = 1e9) {
  ClusterLink link;
  link.bandwidth = BytesPerSecond(bandwidth);
  link.latency = Seconds(microseconds * 1e-6);
  return link;
}

// The names of the links, in the order of the path.
std::vector<std::string> NamesAlong(const Cluster& cluster, const Route& route) {
  std::vector<std::string> names;
  for (const uint32_t link : route.links) names.push_back(cluster.LinkName(link));
  return names;
}

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() : builder_("test") { builder_.AddDeviceSpec(FindDevice("a100-40g")); }

  VertexId Add(const std::string& name, VertexKind kind, const std::string& node = "") {
    return builder_.AddVertex({name, kind, node});
  }
  VertexId Device(const std::string& name) { return Add(name, VertexKind::kDevice); }
  VertexId Switch(const std::string& name) { return Add(name, VertexKind::kSwitch); }

  ClusterBuilder builder_;
};

TEST_F(RouterTest, TheSmallestLatencyWinsEvenOverMoreLinks) {
  const auto a = Device("a"), b = Device("b"), s = Switch("s");
  builder_.AddLinks(a, b, LinkOf(3));
  builder_.AddLinks(a, s, LinkOf(1, 4e9));
  builder_.AddLinks(s, b, LinkOf(1.5, 2e9));
  const Cluster cluster = builder_.Finish();
  Router router(cluster);
  const Route& route = router.Between(0, 1);
  EXPECT_THAT(NamesAlong(cluster, route), ElementsAre("a->s", "s->b"));
  EXPECT_DOUBLE_EQ(route.latency.value(), 2.5e-6);
  EXPECT_EQ(route.bandwidth, BytesPerSecond(2e9));  // the narrower of 4 and 2 GB/s
  EXPECT_FALSE(route.crosses_nodes);
}

TEST_F(RouterTest, OfEqualLatenciesTheFewestLinksWin) {
  const auto a = Device("a"), b = Device("b"), s = Switch("s");
  builder_.AddLinks(a, s, LinkOf(1));
  builder_.AddLinks(s, b, LinkOf(1));
  builder_.AddLinks(a, b, LinkOf(2));
  const Cluster cluster = builder_.Finish();
  EXPECT_THAT(NamesAlong(cluster, Router(cluster).Between(0, 1)), ElementsAre("a->b"));
}

TEST_F(RouterTest, OfEqualPathsTheSmallestVertexFromTheSourceWins) {
  const auto a = Device("a"), b = Device("b"), s = Switch("s"), t = Switch("t");
  for (const auto middle : {t, s}) {
    builder_.AddLinks(a, middle, LinkOf(1));
    builder_.AddLinks(middle, b, LinkOf(1));
  }
  const Cluster cluster = builder_.Finish();
  Router router(cluster);
  EXPECT_THAT(NamesAlong(cluster, router.Between(0, 1)), ElementsAre("a->s", "s->b"));
  EXPECT_THAT(NamesAlong(cluster, router.Between(1, 0)), ElementsAre("b->s", "s->a"));
}

TEST_F(RouterTest, OfParallelLinksTheFirstWins) {
  const auto a = Device("a"), b = Device("b");
  builder_.AddLinks(a, b, LinkOf(2));  // links 0 and 1
  builder_.AddLinks(a, b, LinkOf(1));  // links 2 and 3, faster
  builder_.AddLinks(a, b, LinkOf(1));
  const Cluster cluster = builder_.Finish();
  Router router(cluster);
  EXPECT_THAT(router.Between(0, 1).links, ElementsAre(2u));
  EXPECT_THAT(router.Between(1, 0).links, ElementsAre(3u));
}

TEST_F(RouterTest, ARouteDoesNotPassThroughADevice) {
  const auto a = Device("a"), b = Device("b"), c = Device("c"), s = Switch("s");
  builder_.AddLinks(a, b, LinkOf(1));  // a-b-c would take 2 us
  builder_.AddLinks(b, c, LinkOf(1));
  builder_.AddLinks(a, s, LinkOf(5));
  builder_.AddLinks(c, s, LinkOf(5));
  const Cluster cluster = builder_.Finish();
  EXPECT_THAT(NamesAlong(cluster, Router(cluster).Between(0, 2)), ElementsAre("a->s", "s->c"));
}

TEST_F(RouterTest, OneWayLinksAreTakenOneWay) {
  const auto a = Device("a"), b = Device("b"), s = Switch("s");
  builder_.AddLink(a, b, LinkOf(1));
  builder_.AddLink(b, s, LinkOf(4));
  builder_.AddLink(s, a, LinkOf(4));
  const Cluster cluster = builder_.Finish();
  Router router(cluster);
  EXPECT_THAT(NamesAlong(cluster, router.Between(0, 1)), ElementsAre("a->b"));
  EXPECT_THAT(NamesAlong(cluster, router.Between(1, 0)), ElementsAre("b->s", "s->a"));
}

TEST_F(RouterTest, DevicesThatShareEquallyNearNicsGetOneEach) {
  // Two machines, each with two devices and two NICs on one PCIe switch, and a fabric.
  const auto fabric = Switch("fabric");
  for (const std::string node : {"m", "n"}) {
    const auto pcie = Add(node + "/pcie", VertexKind::kPcieSwitch, node);
    for (int i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i);
      builder_.AddLinks(Add(node + "/gpu" + number, VertexKind::kDevice, node), pcie, LinkOf(1));
      const auto nic = Add(node + "/nic" + number, VertexKind::kNic, node);
      builder_.AddLinks(pcie, nic, LinkOf(1));
      builder_.AddLinks(nic, fabric, LinkOf(1));
    }
  }
  const Cluster cluster = builder_.Finish();
  Router router(cluster);
  EXPECT_THAT(NamesAlong(cluster, router.Between(1, 3)),
              ElementsAre("m/gpu1->m/pcie", "m/pcie->m/nic1", "m/nic1->fabric", "fabric->n/nic1",
                          "n/nic1->n/pcie", "n/pcie->n/gpu1"));
  EXPECT_THAT(NamesAlong(cluster, router.Between(1, 2)),
              ElementsAre("m/gpu1->m/pcie", "m/pcie->m/nic1", "m/nic1->fabric", "fabric->n/nic0",
                          "n/nic0->n/pcie", "n/pcie->n/gpu0"));
  EXPECT_TRUE(router.Between(1, 2).crosses_nodes);
  EXPECT_FALSE(router.Between(0, 1).crosses_nodes);
}

TEST_F(RouterTest, MoreDevicesThanNicsShareThemInTurn) {
  const auto pcie = Add("pcie", VertexKind::kPcieSwitch, "m");
  for (int i = 0; i < 5; ++i)
    builder_.AddLinks(Add("gpu" + std::to_string(i), VertexKind::kDevice, "m"), pcie, LinkOf(1));
  const auto near0 = Add("near0", VertexKind::kNic, "m"),
             near1 = Add("near1", VertexKind::kNic, "m"), far = Add("far", VertexKind::kNic, "m");
  builder_.AddLinks(pcie, near0, LinkOf(1));
  builder_.AddLinks(pcie, near1, LinkOf(1));
  builder_.AddLinks(pcie, far, LinkOf(2));
  const Cluster cluster = builder_.Finish();
  EXPECT_THAT(NicOwners(cluster),
              ElementsAre(ElementsAre(near0), ElementsAre(near1), ElementsAre(near0),
                          ElementsAre(near1), ElementsAre(near0)));
}

TEST_F(RouterTest, ADeviceWithoutANicOwnsNone) {
  builder_.AddLinks(Device("a"), Device("b"), LinkOf(1));
  const Cluster cluster = builder_.Finish();
  EXPECT_THAT(NicOwners(cluster), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST_F(RouterTest, ARouteIsRememberedInPlace) {
  builder_.AddLinks(Device("a"), Device("b"), LinkOf(1));
  const Cluster cluster = builder_.Finish();
  Router router(cluster);
  const Route* first = &router.Between(0, 1);
  router.Between(1, 0);
  EXPECT_EQ(&router.Between(0, 1), first);
}

TEST_F(RouterTest, ADeviceHasNoRouteToItself) {
  builder_.AddLinks(Device("a"), Device("b"), LinkOf(1));
  const Cluster cluster = builder_.Finish();
  Router router(cluster);
  EXPECT_THROW(router.Between(0, 0), InternalError);
  EXPECT_THROW(router.Between(0, 2), InternalError);
}

// ---- Against a plain search ---------------------------------------------------------------------

// What a path of the plain search may use.
struct PlainLimits {
  PathClass worst = PathClass::kNetwork;
  double narrowest = 0;
  bool only_network = false;
};

// The path of least cost, to the letter of topology/fabrics/path_search.h: costs to the target by
// relaxing all links until nothing changes, then the smallest next vertex, and link, that keeps the
// cost. No links if there is no path.
std::vector<uint32_t> PlainPath(const Cluster& cluster, VertexId source, VertexId target,
                                VertexId source_nic, VertexId target_nic,
                                const PlainLimits& limits) {
  const auto cost_of = [&](uint32_t link) {
    const VertexId to = cluster.TargetOf(link);
    const bool foreign =
        cluster.VertexAt(to).kind == VertexKind::kNic && to != source_nic && to != target_nic;
    return PathCost{ToTime(cluster.Link(link).latency), 1, foreign ? 1u : 0u};
  };
  const auto may_be_on_path = [&](VertexId vertex) {
    if (vertex == source || vertex == target) return true;
    const VertexKind kind = cluster.VertexAt(vertex).kind;
    if (kind == VertexKind::kDevice) return false;
    return kind != VertexKind::kNic || !limits.only_network;
  };
  const auto may_use = [&](uint32_t link) {
    const LinkKind kind = cluster.KindOf(link);
    if (!may_be_on_path(cluster.SourceOf(link)) || !may_be_on_path(cluster.TargetOf(link)))
      return false;
    if (limits.only_network) return kind == LinkKind::kNetwork;
    return cluster.Link(link).bandwidth.value() >= limits.narrowest &&
           ClassOfStep(kind, cluster.KindOfVertex(cluster.TargetOf(link))) <= limits.worst;
  };
  std::vector<PathCost> cost(cluster.vertex_count(), PathCost::Infinite());
  cost[target] = PathCost();
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t link = 0; link < cluster.link_count(); ++link) {
      const VertexId from = cluster.SourceOf(link);
      if (!may_use(link) || !(cost_of(link) + cost[cluster.TargetOf(link)] < cost[from])) continue;
      cost[from] = cost_of(link) + cost[cluster.TargetOf(link)];
      changed = true;
    }
  }
  std::vector<uint32_t> links;
  if (cost[source] >= PathCost::Infinite()) return links;
  for (VertexId vertex = source; vertex != target;) {
    std::optional<std::pair<VertexId, uint32_t>> next;
    for (uint32_t link = 0; link < cluster.link_count(); ++link) {
      const VertexId to = cluster.TargetOf(link);
      if (cluster.SourceOf(link) != vertex || !may_use(link)) continue;
      if (cost_of(link) + cost[to] != cost[vertex]) continue;
      next = std::min(next.value_or(std::pair(to, link)), std::pair(to, link));
    }
    vertex = next->first;
    links.push_back(next->second);
  }
  return links;
}

// The widest by powers of two.
std::vector<uint32_t> PlainWidest(const Cluster& cluster, VertexId source, VertexId target,
                                  VertexId source_nic, VertexId target_nic, PlainLimits limits) {
  std::vector<uint32_t> widest;
  while (true) {
    auto links = PlainPath(cluster, source, target, source_nic, target_nic, limits);
    if (links.empty()) return widest;
    widest = std::move(links);
    double narrowest = 1e30;
    for (const uint32_t link : widest)
      narrowest = std::min(narrowest, cluster.Link(link).bandwidth.value());
    limits.narrowest = std::exp2(std::floor(std::log2(narrowest)) + 1);
  }
}

// The route following topology/fabrics/router.h to the letter. Nothing if there is no path.
std::optional<std::vector<uint32_t>> PlainRoute(const Cluster& cluster, uint32_t from_rank,
                                                uint32_t to_rank) {
  const VertexId source = cluster.devices()[from_rank];
  const VertexId target = cluster.devices()[to_rank];
  const std::vector<std::vector<VertexId>> owners = NicOwners(cluster);
  const auto own = [&](uint32_t rank) {
    return owners[rank].empty() ? kNoVertex : owners[rank].front();
  };
  const VertexId source_nic = own(from_rank);
  const VertexId target_nic = own(to_rank);
  const auto inside = [&](VertexId from, VertexId to) {
    for (const PathClass worst :
         {PathClass::kNvLink, PathClass::kPcie, PathClass::kHost, PathClass::kSockets}) {
      auto links = PlainWidest(cluster, from, to, source_nic, target_nic, {.worst = worst});
      if (!links.empty()) return links;
    }
    return std::vector<uint32_t>();
  };
  std::vector<uint32_t> links = inside(source, target);
  if (!links.empty()) return links;
  const VertexId leaves = source_nic == kNoVertex ? source : source_nic;
  const VertexId arrives = target_nic == kNoVertex ? target : target_nic;
  if (leaves != arrives && (leaves != source || arrives != target)) {
    const auto out = leaves == source ? links : inside(source, leaves);
    const auto between =
        PlainPath(cluster, leaves, arrives, leaves, arrives, {.only_network = true});
    const auto in = arrives == target ? links : inside(arrives, target);
    if (!between.empty() && out.empty() == (leaves == source) &&
        in.empty() == (arrives == target)) {
      for (const auto* part : {&out, &between, &in})
        links.insert(links.end(), part->begin(), part->end());
      return links;
    }
  }
  links = PlainPath(cluster, source, target, source_nic, target_nic, {});
  if (links.empty()) return std::nullopt;
  return links;
}

// An unfinished cluster, and what was drawn.
struct Drawing {
  ClusterBuilder builder{"random"};
  std::vector<VertexKind> kinds;                       // of the vertices
  std::vector<std::pair<uint32_t, uint32_t>> streets;  // from and to

  // Whether every device reaches every other without passing through a third.
  bool HasAllPaths() const {
    for (uint32_t device = 0; device < kinds.size(); ++device) {
      if (kinds[device] != VertexKind::kDevice) continue;
      std::vector<bool> reached(kinds.size());
      reached[device] = true;
      for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [from, to] : streets) {
          const bool is_open = from == device || kinds[from] != VertexKind::kDevice;
          if (!reached[from] || reached[to] || !is_open) continue;
          reached[to] = changed = true;
        }
      }
      for (uint32_t other = 0; other < kinds.size(); ++other)
        if (kinds[other] == VertexKind::kDevice && !reached[other]) return false;
    }
    return true;
  }
};

// Up to 14 vertices and 40 links, a quarter of them one-way, with latencies of 0 to 3 us, so that
// ties are common; of one kind and bandwidth, or of all kinds and of 1, 1.5, 4 and 6 GB/s.
Drawing RandomDrawing(uint32_t seed, bool of_all_kinds = false) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  Drawing drawing;
  ClusterBuilder& cluster = drawing.builder;
  cluster.AddDeviceSpec(FindDevice("a100-40g"));
  const uint32_t vertices = 3 + below(12);
  for (uint32_t i = 0; i < vertices; ++i) {
    const VertexKind kinds[] = {VertexKind::kDevice, VertexKind::kDevice, VertexKind::kNic,
                                VertexKind::kSwitch, VertexKind::kSocket};
    const VertexKind kind = i < 2 ? VertexKind::kDevice : kinds[below(5)];
    const std::string node = kind == VertexKind::kSwitch ? "" : "node" + std::to_string(below(2));
    cluster.AddVertex({"v" + std::to_string(i), kind, node});
    drawing.kinds.push_back(kind);
  }
  const uint32_t links = vertices + below(40 - vertices);
  for (uint32_t i = 0; i < links; ++i) {
    const uint32_t from = below(vertices);
    const uint32_t to = (from + 1 + below(vertices - 1)) % vertices;
    ClusterLink link = LinkOf(below(4));
    if (of_all_kinds) {
      constexpr LinkKind kKinds[] = {LinkKind::kNvLink, LinkKind::kPcie, LinkKind::kSocket,
                                     LinkKind::kNetwork, LinkKind::kMemory};
      constexpr double kBandwidths[] = {1e9, 1.5e9, 4e9, 6e9};
      link.kind = kKinds[below(5)];
      link.bandwidth = BytesPerSecond(kBandwidths[below(4)]);
    }
    drawing.streets.emplace_back(from, to);
    if (below(4) == 0) {
      cluster.AddLink(from, to, link);
    } else {
      cluster.AddLinks(from, to, link);
      drawing.streets.emplace_back(to, from);
    }
  }
  return drawing;
}

TEST(RouterAgainstPlainSearchTest, RandomGraphsHaveTheSameRoutes) {
  int finished = 0;
  constexpr int kSeeds = kIsSanitized ? 600 : 3000;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    Drawing drawing = RandomDrawing(seed);
    if (!drawing.HasAllPaths()) {
      EXPECT_THROW(drawing.builder.Finish(), Error) << "seed " << seed;
      continue;
    }
    const Cluster cluster = drawing.builder.Finish();
    ++finished;
    Router router(cluster);
    for (uint32_t a = 0; a < cluster.device_count(); ++a)
      for (uint32_t b = 0; b < cluster.device_count(); ++b)
        if (a != b) {
          ASSERT_EQ(router.Between(a, b).links, *PlainRoute(cluster, a, b)) << "seed " << seed;
        }
  }
  EXPECT_GT(finished, kSeeds / 3);  // the others are disconnected
}

TEST(RouterAgainstPlainSearchTest, SoHaveGraphsOfAllKindsOfLinks) {
  constexpr int kSeeds = kIsSanitized ? 600 : 3000;
  int finished = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    Drawing drawing = RandomDrawing(seed, true);
    if (!drawing.HasAllPaths()) continue;  // some would be joined through devices over NVLink
    const Cluster cluster = drawing.builder.Finish();
    ++finished;
    Router router(cluster);
    for (uint32_t a = 0; a < cluster.device_count(); ++a)
      for (uint32_t b = 0; b < cluster.device_count(); ++b)
        if (a != b) {
          ASSERT_EQ(router.Between(a, b).links, *PlainRoute(cluster, a, b)) << "seed " << seed;
        }
  }
  EXPECT_GT(finished, kSeeds / 3);
}

TEST(RouterAgainstPlainSearchTest, PresetsHaveTheSameRoutes) {
  for (const char* name : {"perlmutter", "dgx-a100"}) {
    const std::unique_ptr<Cluster> cluster = BuildPreset(name, {{"nodes", 2}}, Place());
    Router router(*cluster);
    for (uint32_t a = 0; a < cluster->device_count(); ++a)
      for (uint32_t b = 0; b < cluster->device_count(); ++b)
        if (a != b) {
          EXPECT_EQ(router.Between(a, b).links, *PlainRoute(*cluster, a, b))
              << name << a << " " << b;
        }
  }
}

TEST(RouterAgainstPlainSearchTest, TheOrderOfQuestionsDoesNotMatter) {
  const std::unique_ptr<Cluster> cluster = BuildPreset("dgx-a100", {{"nodes", 2}}, Place());
  Router forwards(*cluster);
  Router backwards(*cluster);
  for (uint32_t b = 1; b < 16; ++b) forwards.Between(0, b);
  for (uint32_t b = 15; b > 0; --b)
    EXPECT_EQ(backwards.Between(0, b).links, forwards.Between(0, b).links);
}

// ---- Scale --------------------------------------------------------------------------------------

TEST(RouterScaleTest, AGlobalRingLooksAtFewLinks) {
  // The core switch of 1,024 nodes has 4,096 links each way; a search that expanded it once per
  // route would look at 4,096 of them for each of the 1,024 routes between nodes. A node has 48
  // links, most of them met from both ends: we allow 100 per route.
  const std::unique_ptr<Cluster> cluster = BuildPreset("perlmutter", {{"nodes", 1024}}, Place());
  Router router(*cluster);
  const uint32_t ranks = cluster->device_count();
  ASSERT_EQ(ranks, 4096u);
  for (uint32_t rank = 0; rank < ranks; ++rank) router.Between(rank, (rank + 1) % ranks);
  EXPECT_LT(router.links_scanned(), size_t{100} * ranks);
}

// a and b over s (1 + 1 us) or over t (2 + 2 us).
TEST_F(RouterTest, ARouteThatMeetsAFailingLinkHasADetour) {
  const auto a = Device("a"), b = Device("b"), s = Switch("s"), t = Switch("t");
  builder_.AddLinks(a, s, LinkOf(1));
  builder_.AddLinks(s, b, LinkOf(1));
  builder_.AddLinks(a, t, LinkOf(2));
  builder_.AddLinks(t, b, LinkOf(2));
  const Cluster cluster = builder_.Finish();
  std::vector<bool> failing(cluster.link_count());
  failing[Router(cluster).Between(0, 1).links[1]] = true;  // s->b
  Router router(cluster, {}, failing);
  const Route& there = router.Between(0, 1);
  EXPECT_THAT(NamesAlong(cluster, there), ElementsAre("a->s", "s->b"));
  EXPECT_TRUE(router.MeetsFailure(there));
  std::vector<std::string> detour;
  for (const uint32_t link : there.detour) detour.push_back(cluster.LinkName(link));
  EXPECT_THAT(detour, ElementsAre("a->t", "t->b"));
  const Route& back = router.Between(1, 0);
  EXPECT_FALSE(router.MeetsFailure(back));
  EXPECT_TRUE(back.detour.empty());
}

TEST_F(RouterTest, WhereNothingLeadsRoundThereIsNoDetour) {
  const auto a = Device("a"), b = Device("b"), s = Switch("s");
  builder_.AddLinks(a, s, LinkOf(1));
  builder_.AddLinks(s, b, LinkOf(1));
  const Cluster cluster = builder_.Finish();
  Router router(cluster, {}, std::vector<bool>(cluster.link_count(), true));
  EXPECT_TRUE(router.Between(0, 1).detour.empty());
}

TEST(RouterDetourTest, OnAFatTreeTheDetourTakesAnotherSpine) {
  const auto cluster = BuildPreset("selene", {}, Place());
  const FabricRouting ecmp = {RouteChoice::kEcmp, std::nullopt, std::nullopt};
  Router plain(*cluster, ecmp);
  const uint32_t last = cluster->device_count() - 1;
  std::vector<bool> failing(cluster->link_count());
  const std::vector<uint32_t> links = plain.Between(0, last).links;
  failing[links[links.size() / 2]] = true;
  Router router(*cluster, ecmp, failing);
  const Route& route = router.Between(0, last);
  ASSERT_FALSE(route.detour.empty());
  EXPECT_EQ(route.links, links);
  EXPECT_EQ(route.detour.size(), links.size());
  for (const uint32_t link : route.detour) EXPECT_FALSE(failing[link]);
  // Sprayed, the other cables of the bundle remain.
  Router sprayed(*cluster, {}, failing);
  EXPECT_FALSE(sprayed.MeetsFailure(sprayed.Between(0, last)));
}

// 300 · 299 routes are more than it keeps; afterwards it finds them anew, link by link the same.
TEST(ForgetfulRouterTest, FindsWhatItHasForgottenAgain) {
  constexpr uint32_t kRanks = 300;
  const std::unique_ptr<Cluster> cluster = BuildPreset("dgx-h100", {{"nodes", 40}}, Place());
  Router router(*cluster);
  std::vector<std::vector<uint32_t>> links;
  for (uint32_t from = 0; from < kRanks; ++from)
    for (uint32_t to = 0; to < kRanks; ++to)
      if (from != to) links.push_back(router.Between(from, to).links);
  router.ForgetMany();
  size_t next = 0;
  for (uint32_t from = 0; from < kRanks; ++from) {
    for (uint32_t to = 0; to < kRanks; ++to) {
      if (from == to) continue;
      ASSERT_EQ(router.Between(from, to).links, links[next++]);
    }
  }

  Router small(*cluster);
  const Route& kept = small.Between(0, 1);
  small.ForgetMany();  // one route is not many
  EXPECT_EQ(&small.Between(0, 1), &kept);
}

}  // namespace router_test
}  // namespace rehearse
