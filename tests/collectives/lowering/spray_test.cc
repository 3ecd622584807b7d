// Sprayed traffic: against a hand-computed Clos, against a share of every flow on every single
// cable, and never worse for more NICs or less oversubscription.
#include <random>
#include <span>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/lowering/lower.h"
#include "collectives/lowering/trial.h"
#include "sim/engine/max_min.h"
#include "sim/engine/simulate.h"
#include "tests/topology/fabrics/small_fabrics.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace spray_test {

TEST(SprayTrafficTest, ALeafSharesItsCablesAsAPipeWould) {
  // Radix 12 at 2:1: leaves of 8 machines with 4 cables of 10 GB/s up. All 8 of leaf 0 exchange
  // with those of leaf 1: 40 GB/s for 8, 5 GB/s each, both ways. Four hops of 1 us.
  const auto cluster = Single(ClosOf(12, 2, 2), 16);
  Router router(*cluster);
  Trial trial;
  trial.kind = CollectiveKind::kSendReceive;
  trial.algorithm = AlgorithmId::kDirect;
  for (uint32_t i = 0; i < 8; ++i) trial.groups.push_back({i, 8 + i});
  const Bytes bytes(1e9);
  EXPECT_NEAR(TimeOf(trial, bytes, router).value(), 1e9 / 5e9 + 4e-6, 1e-9);
  // One pair alone has all four cables: its own 100 GB/s are more than their 40.
  trial.groups = {{0, 8}};
  EXPECT_NEAR(TimeOf(trial, bytes, router).value(), 1e9 / 40e9 + 4e-6, 1e-9);
}

TEST(SprayTrafficTest, WhenACableFailsTheOthersCarryOn) {
  // One exchange over a leaf's 4 cables of 10 GB/s. At 10 ms it has moved 0.4 of its 1 GB; then one
  // fails, and the rest takes 0.6 / 30 GB/s = 20 ms. Four hops of 1 us come before the bytes.
  const auto cluster = Single(ClosOf(8, 2), 16);
  Trial trial;
  trial.kind = CollectiveKind::kSendReceive;
  trial.algorithm = AlgorithmId::kDirect;
  trial.groups = {{0, 4}};
  Perturbation perturbation;
  Router plain(*cluster);
  const uint32_t trunk = plain.Between(0, 4).links[1];
  perturbation.events = {{ToTime(Seconds(10e-3 + 4e-6)), cluster->CablesOf(trunk)[2], 0}};
  Router router(*cluster, {}, FailingLinks(perturbation, cluster->link_count()));
  const Schedule schedule = TrialSchedule(trial, {Bytes(1e9)}, cluster->device_count());
  for (const bool fold : {true, false}) {
    const Lowered lowered = Lower(schedule, router, {.fold = fold, .perturbation = perturbation});
    EXPECT_NEAR(ToSeconds(Simulate(lowered.program, schedule.ranks()).timeline.step).value(),
                30e-3 + 4e-6, 1e-9);
  }
}

TEST(SprayTrafficTest, FoldedIsUnfolded) {
  const auto cluster = Single(ClosOf(8, 3, 2), 24);
  Trial trial;
  trial.groups = DealRanks(
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}, 4,
      24);
  const Schedule schedule = TrialSchedule(trial, {Bytes(1e8)}, 24);
  Router router(*cluster);
  const Lowered folded = Lower(schedule, router, {.fold = true});
  const Lowered whole = Lower(schedule, router, {.fold = false});
  EXPECT_LT(folded.rank_classes, 24u);
  EXPECT_EQ(Simulate(folded.program, 24).timeline.step, Simulate(whole.program, 24).timeline.step);
}

// Max-min rates of transfers from a to b, each of which puts an equal share on every single cable
// of the trunks that it crosses.
std::vector<double> RatesCableByCable(const Cluster& cluster,
                                      const std::vector<const Route*>& routes) {
  // A flow that crosses a trunk of n cables crosses each with 1/n of its bytes. In units of 1/(the
  // product of all n) all multiplicities are whole.
  uint32_t unit = 1;
  for (const Route* route : routes)
    for (const uint32_t link : route->links)
      if (cluster.IsTrunk(link)) {
        const auto n = static_cast<uint32_t>(cluster.CablesOf(link).size());
        if (unit % n != 0) unit *= n;
      }
  std::vector<double> capacities;
  for (uint32_t i = 0; i < cluster.link_count(); ++i)
    capacities.push_back(cluster.Link(i).Capacity().value());
  std::vector<std::vector<LinkUse>> uses;
  for (const Route* route : routes) {
    std::vector<LinkUse>& own = uses.emplace_back();
    for (const uint32_t link : route->links) {
      if (!cluster.IsTrunk(link)) {
        own.push_back({LinkId(link), unit});
        continue;
      }
      const auto cables = cluster.CablesOf(link);
      for (const uint32_t cable : cables)
        own.push_back({LinkId(cable), unit / static_cast<uint32_t>(cables.size())});
    }
    std::sort(own.begin(), own.end(),
              [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
  }
  MaxMinProblem problem;
  problem.capacities = capacities;
  for (const auto& own : uses) problem.flows.emplace_back(own);
  std::vector<double> rates = SolveMaxMin(problem);
  for (double& rate : rates) rate *= unit;
  return rates;
}

std::vector<double> RatesByTrunks(const Cluster& cluster, const std::vector<const Route*>& routes) {
  std::vector<double> capacities;
  for (uint32_t i = 0; i < cluster.way_count(); ++i)
    capacities.push_back(cluster.Link(i).Capacity().value());
  std::vector<std::vector<LinkUse>> uses;
  for (const Route* route : routes) {
    std::vector<LinkUse>& own = uses.emplace_back();
    for (const uint32_t link : route->links) own.push_back({LinkId(link), 1});
  }
  MaxMinProblem problem;
  problem.capacities = capacities;
  for (const auto& own : uses) problem.flows.emplace_back(own);
  return SolveMaxMin(problem);
}

TEST(SprayTrafficTest, ATrunkIsAShareOfEveryFlowOnEveryCable) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    const uint32_t levels = 2 + static_cast<uint32_t>(random() % 2);
    const double oversubscription = 1.0 + static_cast<double>(random() % 3);
    const uint32_t nodes = 8 + static_cast<uint32_t>(random() % 17);
    const auto cluster = Single(ClosOf(8, levels, oversubscription), nodes);
    Router router(*cluster);
    std::vector<const Route*> routes;
    for (uint32_t flow = 0; flow < 30; ++flow) {
      const auto a = static_cast<uint32_t>(random() % nodes);
      const auto b = static_cast<uint32_t>(random() % nodes);
      if (a != b) routes.push_back(&router.Between(a, b));
    }
    const std::vector<double> exact = RatesCableByCable(*cluster, routes);
    const std::vector<double> trunks = RatesByTrunks(*cluster, routes);
    for (size_t i = 0; i < routes.size(); ++i)
      EXPECT_NEAR(trunks[i], exact[i], 1e-6 * exact[i]) << "round " << round;
  }
}

TEST(SprayTrafficTest, ManyQueuePairsComeNearIt) {
  // A hash of 128 queue pairs is a spray with statistics: 8 exchanges leave a leaf by 8 cables. In
  // the mean a cable has 8 · 128 / 8 = 128 parts, with a deviation of sqrt(1024 · 1/8 · 7/8) =
  // 10.6; the fullest of 32 is not 3.5 of them above.
  const auto cluster = Single(ClosOf(16, 2), 32);
  const auto time = [&](const FabricRouting& routing) {
    Router router(*cluster, routing);
    Trial trial;
    trial.kind = CollectiveKind::kSendReceive;
    trial.algorithm = AlgorithmId::kDirect;
    for (uint32_t i = 0; i < 16; ++i) trial.groups.push_back({i, 16 + i});
    return TimeOf(trial, Bytes(1e9), router).value();
  };
  const double sprayed = time({});
  const double hashed = time({RouteChoice::kEcmp, 128, 1});
  EXPECT_GE(hashed, sprayed * (1 - 1e-9));
  EXPECT_LE(hashed, sprayed * (128 + 37) / 128);
  EXPECT_GE(time({RouteChoice::kEcmp, 1, 1}), hashed);
}

TEST(SprayTrafficTest, FormulaFluidAndStepAgreeOnHashedWays) {
  // A lone ring of 8 machines on 4 leaves: no two of its edges share a link, whatever their routes.
  const auto cluster = Single(ClosOf(4, 2), 8);
  for (const uint32_t queue_pairs : {1u, 2u, 4u}) {
    std::vector<double> times;
    for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
      Router router(*cluster, {RouteChoice::kEcmp, queue_pairs, 3});
      Trial trial;
      trial.groups = {{0, 1, 2, 3, 4, 5, 6, 7}};
      trial.fidelity = fidelity;
      times.push_back(TimeOf(trial, Bytes(1e9), router).value());
    }
    EXPECT_NEAR(times[1], times[0], 1e-3 * times[0]) << queue_pairs;
    EXPECT_NEAR(times[2], times[0], 1e-3 * times[0]) << queue_pairs;
  }
}

// 8 devices on NVSwitch and `nics` NICs of 10 GB/s.
std::unique_ptr<Cluster> BoxesWith(uint32_t nics, const ClosSpec& fabric, uint32_t nodes) {
  Host host;
  host.switches = 8;
  host.nics = nics;
  host.device = host.root_port = host.nic = Cable(50);
  NodeSpec node;
  node.devices = 8;
  node.nvswitch = MakeLink(LinkKind::kNvLink, BytesPerSecond(300e9), 1, Seconds(0.5e-6));
  node.host = host;
  node.cable = Cable(10);
  return BuildMachine({"boxes", node, nodes, fabric, {}}, FindDevice("h100"));
}

// All other things being equal. With more NICs on an oversubscribed tree they are not: a leaf then
// has the NICs of fewer machines, so more of what they exchange goes up the tree. A leaf of a rail
// has as many machines as before.
TEST(SprayTrafficTest, MoreNicsOrLessOversubscriptionNeverCost) {
  constexpr double kMost = 1.005;
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    const auto nodes = static_cast<uint32_t>(2 + random() % 15);
    const bool rails = random() % 2 == 0;
    const uint32_t radix = random() % 2 == 0 ? 8 : 16;
    const auto channels = static_cast<uint32_t>(1 + random() % 8);
    const auto groups = 1u << random() % 4;
    const char* const algorithm = random() % 2 == 0 ? "ring" : "tree";
    const auto time = [&](uint32_t nics, double oversubscription) {
      const auto cluster = BoxesWith(nics, ClosOf(radix, 3, oversubscription, rails), nodes);
      Router router(*cluster);
      Trial trial;
      std::vector<uint32_t> ranks(cluster->device_count());
      for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
      trial.groups = DealRanks(ranks, groups, cluster->device_count());
      trial.algorithm = ParseAlgorithm(algorithm);
      trial.channels = channels;
      return TimeOf(trial, Bytes(100e9), router).value();
    };
    const std::string what = fmt::format("round {}: {} nodes, radix {}, {}, {} channels, {} groups",
                                         round, nodes, radix, algorithm, channels, groups);
    for (const double oversubscription : {1.0, 4.0}) {
      if (!rails && oversubscription > 1) continue;
      double before = time(1, oversubscription);
      for (const uint32_t nics : {2u, 4u, 8u}) {
        const double now = time(nics, oversubscription);
        EXPECT_LE(now, kMost * before)
            << what << ", rails " << rails << ", " << nics << " NICs, " << oversubscription << ":1";
        before = now;
      }
    }
    for (const uint32_t nics : {1u, 8u}) {
      double before = time(nics, 4);
      for (const double oversubscription : {2.0, 1.0}) {
        const double now = time(nics, oversubscription);
        EXPECT_LE(now, kMost * before)
            << what << ", rails " << rails << ", " << nics << " NICs, " << oversubscription << ":1";
        before = now;
      }
    }
  }
}

}  // namespace spray_test
}  // namespace rehearse
