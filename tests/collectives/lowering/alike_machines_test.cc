// Groups at the same places of equal machines, and groups of the same shape below a fat tree, are
// looked at once; the result must be the same as from looking at each of them.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/lowering/transfers.h"
#include "tests/support/sanitizers.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace alike_machines_test {

using Groups = std::vector<std::vector<uint32_t>>;

// Collectives of these kinds in every group of a communicator.
Schedule Asking(const std::vector<Groups>& communicators, uint32_t ranks,
                const std::string& algorithm, const std::string& protocol, Bytes bytes,
                const std::vector<CollectiveKind>& kinds = {CollectiveKind::kAllReduce,
                                                            CollectiveKind::kAllGather}) {
  Schedule schedule;
  Role role;
  for (size_t i = 0; i < communicators.size(); ++i) {
    schedule.communicators.push_back(
        Communicator::Explicit("groups" + std::to_string(i), communicators[i]));
    role.streams.push_back({"s" + std::to_string(i), StreamKind::kCommunication});
    for (const CollectiveKind kind : kinds) {
      Collective collective;
      collective.kind = kind;
      collective.communicator = CommunicatorId(static_cast<uint32_t>(i));
      collective.bytes = bytes;
      collective.algorithm = ParseAlgorithm(algorithm);
      collective.protocol = ParseProtocol(protocol);
      Op op;
      op.stream = StreamId(static_cast<uint32_t>(i));
      op.work = collective;
      role.ops.push_back(op);
    }
  }
  schedule.roles.push_back(role);
  schedule.role_of_rank.assign(ranks, 0);
  return schedule;
}

// All pairs add up latencies in another order: their last bits may differ.
void ExpectSameTime(Seconds a, Seconds b, bool to_the_bit) {
  if (to_the_bit)
    EXPECT_EQ(a, b);
  else
    EXPECT_DOUBLE_EQ(a.value(), b.value());
}

void ExpectSame(const TransferTable& a, const TransferTable& b, bool to_the_bit = true) {
  ASSERT_EQ(a.sites.size(), b.sites.size());
  for (size_t i = 0; i < a.sites.size(); ++i) {
    EXPECT_EQ(a.sites[i].ranks, b.sites[i].ranks);
    EXPECT_EQ(a.sites[i].transfer_begin, b.sites[i].transfer_begin);
    EXPECT_EQ(a.sites[i].transfer_end, b.sites[i].transfer_end);
    EXPECT_EQ(a.PlanOf(a.sites[i])->choice, b.PlanOf(b.sites[i])->choice);
    ExpectSameTime(a.PlanOf(a.sites[i])->time, b.PlanOf(b.sites[i])->time, to_the_bit);
  }
  ASSERT_EQ(a.transfers.size(), b.transfers.size());
  for (size_t i = 0; i < a.transfers.size(); ++i) {
    const Transfer& x = a.transfers[i];
    const Transfer& y = b.transfers[i];
    EXPECT_EQ(x.is_of_pair, y.is_of_pair);
    EXPECT_EQ(x.share, y.share);
    ExpectSameTime(x.step_latency, y.step_latency, to_the_bit);
    EXPECT_EQ(x.idle_rate, y.idle_rate);
    EXPECT_EQ(x.upstream, y.upstream);
    EXPECT_EQ(x.downstream, y.downstream);
    EXPECT_EQ(x.from, y.from);
    EXPECT_EQ(x.to, y.to);
    ASSERT_EQ(x.use_end - x.use_begin, y.use_end - y.use_begin);
    ASSERT_EQ(x.detour_end - x.use_end, y.detour_end - y.use_end);
    for (uint32_t use = 0; use < x.detour_end - x.use_begin; ++use) {
      EXPECT_EQ(a.uses[x.use_begin + use].link, b.uses[y.use_begin + use].link);
      EXPECT_EQ(a.uses[x.use_begin + use].multiplicity, b.uses[y.use_begin + use].multiplicity);
    }
  }
  EXPECT_EQ(a.sites_of_rank, b.sites_of_rank);
}

TEST(AlikeMachinesTest, HaveTheTransfersThatEachOfThemWouldHave) {
  std::vector<const char*> presets = {"dgx-a100"};
  // Their rings take long to find.
  if (!kIsSanitized) presets.insert(presets.end(), {"frontier", "dgx-1-v100"});
  for (const char* preset : presets) {
    const auto cluster = BuildPreset(preset, {{"nodes", 4}}, {});
    Figures figures = cluster->figures();
    figures.ChangeLinks([](uint32_t, LinkFigures&) {});  // equal, but each with its own
    const Cluster by_itself = cluster->With(std::move(figures));
    // Pairs, fours that are split differently on the machines, eights, and two machines together.
    std::vector<Groups> communicators(4);
    for (uint32_t machine = 0; machine < 4; ++machine) {
      const uint32_t first = 8 * machine;
      for (uint32_t i = 0; i < 8; i += 2) communicators[0].push_back({first + i, first + i + 1});
      const bool odd = machine % 2 == 1;
      std::vector<uint32_t> some;
      std::vector<uint32_t> others;
      for (uint32_t i = 0; i < 8; ++i)
        ((odd ? i % 2 == 0 : i < 4) ? some : others).push_back(first + i);
      communicators[1].push_back(some);
      communicators[1].push_back(others);
      std::vector<uint32_t> all = some;
      all.insert(all.end(), others.begin(), others.end());
      communicators[2].push_back(all);
      if (odd)
        communicators[3].back().insert(communicators[3].back().end(), all.begin(), all.end());
      else
        communicators[3].push_back(all);
    }
    const Schedule schedule = Asking(communicators, 32, "ring", "none", Bytes(1 << 20));
    for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
      Router router(*cluster);
      Router other(by_itself);
      ASSERT_TRUE(router.MachinesAreAlike());
      ASSERT_FALSE(other.MachinesAreAlike());
      ExpectSame(MakeTransfers(schedule, router, fidelity, 0),
                 MakeTransfers(schedule, other, fidelity, 0));
    }
  }
}

// 48 machines of which 32 share the leaves of their rails: the boundary splits the third of the
// twelves, and the last machines of each.
TEST(AlikeGroupsTest, HaveThePlansThatEachOfThemWouldHave) {
  const auto cluster = BuildPreset("dgx-h100", {{"nodes", 48}}, {});
  Figures figures = cluster->figures();
  figures.ChangeLinks([](uint32_t, LinkFigures&) {});
  const Cluster by_itself = cluster->With(std::move(figures));
  std::vector<Groups> communicators(3);
  for (uint32_t place = 0; place < 8; ++place) {
    for (uint32_t first = 0; first < 48; first += 12) {
      std::vector<uint32_t> twelve;
      for (uint32_t i = 0; i < 12; ++i) twelve.push_back((first + i) * 8 + place);
      communicators[0].push_back(twelve);
    }
    for (uint32_t first = 0; first < 24; ++first)
      communicators[1].push_back({first * 8 + place, (first + 24) * 8 + place});
  }
  for (uint32_t machine = 0; machine < 48; ++machine) {
    communicators[2].emplace_back();
    for (uint32_t i = 0; i < 8; ++i) communicators[2].back().push_back(machine * 8 + i);
  }
  for (const double bytes : {8e3, 1e6, 512e6}) {
    const Schedule schedule = Asking(communicators, 384, "auto", "auto", Bytes(bytes));
    for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
      Router router(*cluster);
      Router other(by_itself);
      const TransferTable shared = MakeTransfers(schedule, router, fidelity, 0);
      const TransferTable alone = MakeTransfers(schedule, other, fidelity, 0);
      ExpectSame(shared, alone);
      if (fidelity == Fidelity::kStep) continue;
      EXPECT_LT(shared.plans.size(), alone.plans.size());
    }
  }
}

// Runs of neighbours, pairs far apart and strides over all groups of a dragonfly, of one dimension
// (Slingshot) and of two (Aries), with switches and groups split by the runs' ends.
TEST(AlikeGroupsTest, OnDragonfliesHaveThePlansThatEachOfThemWouldHave) {
  struct Case {
    const char* preset;
    uint32_t nodes;
    uint32_t devices;  // of a node
  };
  for (const Case& one : {Case{"perlmutter", 300, 4}, Case{"piz-daint", 900, 1}}) {
    SCOPED_TRACE(one.preset);
    const auto cluster = BuildPreset(one.preset, {{"nodes", one.nodes}}, {});
    Figures figures = cluster->figures();
    figures.ChangeLinks([](uint32_t, LinkFigures&) {});
    const Cluster by_itself = cluster->With(std::move(figures));
    std::vector<Groups> communicators(3);
    constexpr uint32_t kRun = 15;
    const uint32_t runs = one.nodes / kRun;
    for (uint32_t place = 0; place < one.devices; ++place) {
      const auto rank = [&](uint32_t node) { return node * one.devices + place; };
      for (uint32_t run = 0; run < runs; ++run) {
        communicators[0].emplace_back();
        communicators[1].emplace_back();
        for (uint32_t i = 0; i < kRun; ++i) {
          communicators[0].back().push_back(rank(run * kRun + i));
          communicators[1].back().push_back(rank(run + i * runs));
        }
      }
      for (uint32_t node = 0; node < one.nodes / 2; ++node)
        communicators[2].push_back({rank(node), rank(node + one.nodes / 2)});
    }
    size_t plans_shared = 0;
    size_t plans_alone = 0;
    for (const double bytes : {8e3, 512e6}) {
      const Schedule schedule =
          Asking(communicators, one.nodes * one.devices, "auto", "auto", Bytes(bytes));
      for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
        Router router(*cluster);
        Router other(by_itself);
        const TransferTable shared = MakeTransfers(schedule, router, fidelity, 0);
        const TransferTable alone = MakeTransfers(schedule, other, fidelity, 0);
        ExpectSame(shared, alone);
        plans_shared += shared.plans.size();
        plans_alone += alone.plans.size();
      }
    }
    EXPECT_LT(plans_shared, plans_alone);
  }
}

// All to all: on rails, on plain leaves, on a dragonfly, on a torus, in one machine, hashed, hashed
// in several parts; all ranks, and halves that have more of one machine than of another.
TEST(AllPairsTest, AreCountedAsTheyAreOneByOne) {
  using PresetParameters = std::map<std::string, uint32_t>;
  const auto nodes = [](uint32_t count) { return PresetParameters{{"nodes", count}}; };
  FabricRouting by_queue_pair;
  by_queue_pair.choice = RouteChoice::kEcmp;
  by_queue_pair.queue_pairs = 3;
  by_queue_pair.seed = 5;
  const std::vector<std::tuple<const char*, PresetParameters, FabricRouting>> clusters = {
      {"dgx-h100", nodes(40), {}},
      {"dgx-a100", nodes(3), {}},
      {"perlmutter", nodes(40), {}},
      {"tpu-v4", {{"x", 4}, {"y", 2}, {"z", 2}}, {}},
      {"dgx-a100", nodes(1), {}},
      {"roce-h100", nodes(13), {}},
      {"roce-h100", nodes(13), by_queue_pair},
      {"dgx-h100", nodes(40), by_queue_pair}};
  for (const auto& [preset, parameters, routing] : clusters) {
    SCOPED_TRACE(preset);
    const auto cluster = BuildPreset(preset, parameters, {});
    Figures figures = cluster->figures();
    figures.ChangeLinks([](uint32_t, LinkFigures&) {});
    const Cluster by_itself = cluster->With(std::move(figures));
    const uint32_t devices = cluster->device_count();
    std::vector<uint32_t> all(devices);
    std::iota(all.begin(), all.end(), 0u);
    std::vector<uint32_t> mixed = all;
    std::sort(mixed.begin(), mixed.end(),
              [](uint32_t x, uint32_t y) { return x * 2654435761u < y * 2654435761u; });
    const auto middle = mixed.begin() + devices / 2;
    const Groups halves = {{mixed.begin(), middle}, {middle, mixed.end()}};
    for (const Groups& groups : {Groups{all}, halves}) {
      const Schedule schedule =
          Asking({groups}, devices, "direct", "none", Bytes(1 << 20), {CollectiveKind::kAllToAll});
      for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid}) {
        Router router(*cluster, routing);
        Router other(by_itself, routing);
        size_t visited = 0;
        ASSERT_TRUE(router.VisitAllPairs(groups[0], [&](uint32_t, uint32_t) { ++visited; }));
        ASSERT_FALSE(other.VisitAllPairs(groups[0], [&](uint32_t, uint32_t) { ++visited; }));
        EXPECT_GT(visited, 0u);
        ExpectSame(MakeTransfers(schedule, router, fidelity, 0),
                   MakeTransfers(schedule, other, fidelity, 0), /*to_the_bit=*/false);
      }
    }
  }
}

// Hashed: over two and three levels, on rails, by several queue pairs, of ranks that are unevenly
// spread over machines. Every pair's way is looked up by itself.
TEST(AllPairsTest, CrossTheCablesThatTheirHashesSay) {
  struct Case {
    const char* preset = "";
    uint32_t nodes = 1;
    uint32_t queue_pairs = 1;
    uint32_t ranks_apart = 1;
  };
  const std::vector<Case> cases = {{"roce-h100", 12, 1, 1},   {"roce-h100", 260, 1, 13},
                                   {"roce-h100", 260, 4, 37}, {"dgx-h100", 260, 2, 19},
                                   {"dgx-b300", 40, 1, 3},    {"dgx-b300", 40, 3, 7}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.preset) + " of " + std::to_string(one.nodes));
    const auto cluster = BuildPreset(one.preset, {{"nodes", one.nodes}}, {});
    FabricRouting routing;
    routing.choice = RouteChoice::kEcmp;
    routing.queue_pairs = one.queue_pairs;
    routing.seed = 3;
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < cluster->device_count(); ++rank)
      if (rank < 5 || rank % one.ranks_apart == 0) ranks.push_back(rank);
    Router router(*cluster, routing);
    ASSERT_TRUE(router.IsHashed());
    std::vector<uint64_t> expected(cluster->way_count());
    Seconds longest;
    for (const uint32_t from : ranks) {
      for (const uint32_t to : ranks) {
        if (from == to) continue;
        const Route& route = router.Between(from, to);
        longest = std::max(longest, route.latency);
        ForEachCrossing(route, router.ways(),
                        [&](uint32_t link, uint32_t parts) { expected[link] += parts; });
      }
    }
    std::vector<uint64_t> found(cluster->way_count());
    const auto latency = router.VisitAllPairs(ranks, [&](uint32_t link, uint32_t times) {
      EXPECT_GT(times, 0u);
      found[link] += times;
    });
    ASSERT_TRUE(latency.has_value());
    EXPECT_EQ(found, expected);
    EXPECT_NEAR(latency->value(), longest.value(), 1e-9 * longest.value());
  }
}

}  // namespace alike_machines_test
}  // namespace rehearse
