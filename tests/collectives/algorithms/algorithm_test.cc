// Every algorithm at every fidelity: how long it takes, what travels, and whether folding changes
// it.
#include "collectives/algorithms/algorithm.h"

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/algorithms/ring.h"
#include "sim/base/error.h"
#include "tests/collectives/schedules.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace algorithm_test {

using testing::OneCollective;
using testing::Preset;

std::vector<uint32_t> Range(uint32_t count) {
  std::vector<uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

Schedule By(const char* algorithm, CollectiveKind kind, double bytes, uint32_t ranks,
            uint32_t root = 0) {
  Schedule schedule = OneCollective(kind, bytes, {Range(ranks)});
  auto& collective = std::get<Collective>(schedule.roles[0].ops[0].work);
  collective.algorithm = ParseAlgorithm(algorithm);
  collective.root = root;
  return schedule;
}

double TimeOf(const Schedule& schedule, const Cluster& cluster, Fidelity fidelity,
              bool fold = true) {
  Router router(cluster);
  const Lowered lowered =
      Lower(schedule, router, {.fidelity = fidelity, .channels = 0, .fold = fold});
  return ToSeconds(Simulate(lowered.program, schedule.ranks()).timeline.step).value();
}

constexpr Fidelity kFidelities[] = {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep};

void ExpectTime(const Schedule& schedule, const Cluster& cluster, double expected) {
  for (const Fidelity fidelity : kFidelities) {
    EXPECT_NEAR(TimeOf(schedule, cluster, fidelity), expected, 1e-3 * expected) << Name(fidelity);
  }
}

// ---- On a plain switch: ports of 25 GB/s, 2 us from port to port --------------------------------

constexpr double kAlpha = 2e-6;
constexpr double kPort = 25e9;

double Log2Up(uint32_t p) { return std::ceil(std::log2(p)); }

// The best pipeline of up to 256 pieces through `hops` hops.
double BestPipeline(uint32_t hops, double bytes) {
  double best = INFINITY;
  for (uint32_t m = 1; m <= 256; ++m) {
    best = std::min(best, (m + hops - 1.0) * (kAlpha + bytes / m / kPort));
  }
  return best;
}

struct SwitchCase {
  const char* algorithm;
  CollectiveKind kind;
  // Closed form for p ranks and n bytes, port rate and latency as above.
  std::function<double(uint32_t p, double n)> time;
};

std::vector<SwitchCase> SwitchCases() {
  using enum CollectiveKind;
  const auto half = [](uint32_t p, double n) {
    return Log2Up(p) * kAlpha + (p - 1.0) / p * n / kPort;
  };
  const auto chain = [](uint32_t p, double n) { return BestPipeline(p - 1, n); };
  const auto ring = [](uint32_t p, double n) { return (p - 1) * (kAlpha + n / p / kPort); };
  return {
      {"ring", kBroadcast, chain},
      {"ring", kReduce, chain},
      {"chain", kBroadcast, chain},
      {"chain", kReduce, chain},
      // On a switch both directions share the ports, so two half rings are as fast as one.
      {"ring-both", kAllReduce, [=](uint32_t p, double n) { return 2 * ring(p, n); }},
      {"ring-both", kAllGather, ring},
      {"ring-both", kReduceScatter, ring},
      {"halving-doubling", kAllReduce, [=](uint32_t p, double n) { return 2 * half(p, n); }},
      {"halving-doubling", kAllGather, half},
      {"halving-doubling", kReduceScatter, half},
      {"doubling", kAllGather, half},
      {"pat", kAllGather, half},
      {"pat", kReduceScatter, half},
      {"doubling", kBarrier, [](uint32_t p, double) { return Log2Up(p) * kAlpha; }},
      {"doubling", kAllReduce,
       [](uint32_t p, double n) {
         const double extra = std::has_single_bit(p) ? 0 : 2;
         return (std::floor(std::log2(p)) + extra) * (kAlpha + n / kPort);
       }},
      {"direct", kAllToAll,
       [](uint32_t p, double n) { return kAlpha + (p - 1.0) / p * n / kPort; }},
      {"direct", kSendReceive, [](uint32_t, double n) { return kAlpha + n / kPort; }},
      {"pairwise", kAllToAll, ring},
      {"bruck", kAllToAll,
       [](uint32_t p, double n) {
         double time = 0;
         for (uint32_t bit = 1; bit < p; bit *= 2) {
           uint32_t blocks = 0;
           for (uint32_t distance = 1; distance < p; ++distance) blocks += (distance & bit) ? 1 : 0;
           time += kAlpha + static_cast<double>(blocks) / p * n / kPort;
         }
         return time;
       }},
      // One device per machine: rings across, nothing inside; no neighbour to go through.
      {"hierarchical", kAllReduce, [=](uint32_t p, double n) { return 2 * ring(p, n); }},
      {"pxn", kAllToAll, [](uint32_t p, double n) { return kAlpha + (p - 1.0) / p * n / kPort; }},
      {"deepep", kAllToAll,
       [](uint32_t p, double n) { return kAlpha + (p - 1.0) / p * n / kPort; }},
      // Two hops, to the switch and back, of n bytes each, one link of 1 us each.
      {"collnet", kAllReduce,
       [](uint32_t, double n) {
         double best = INFINITY;
         for (uint32_t m = 1; m <= 256; ++m) {
           best = std::min(best, (m + 1) * (1e-6 + n / m / kPort));
         }
         return best;
       }},
  };
}

TEST(AlgorithmTest, ClosedFormFluidAndStepAgreeOnAnIdleSwitch) {
  for (const SwitchCase& expected : SwitchCases()) {
    for (const uint32_t p : {2u, 3u, 4u, 5u, 7u, 8u, 12u, 16u}) {
      const auto cluster = Preset("switch", "devices", p);
      for (const double bytes : {12345.0, 1048577.0, 1e9 + 7}) {
        SCOPED_TRACE(
            fmt::format("{} {} p {} n {}", expected.algorithm, Name(expected.kind), p, bytes));
        const double size = expected.kind == CollectiveKind::kBarrier ? 0 : bytes;
        ExpectTime(By(expected.algorithm, expected.kind, size, p, p / 2), *cluster,
                   expected.time(p, size));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// ---- On machines with several GPUs --------------------------------------------------------------

struct MachineCase {
  const char* algorithm;
  CollectiveKind kind;
  const char* preset;
  const char* parameter;
  uint32_t value;
};

// Machines on which every member of a round has the same links for itself.
const MachineCase kSymmetricCases[] = {
    {"direct", CollectiveKind::kAllReduce, "dgx-a100", "nodes", 1},
    {"direct", CollectiveKind::kAllGather, "dgx-a100", "nodes", 1},
    {"direct", CollectiveKind::kReduceScatter, "perlmutter", "nodes", 1},
    {"direct", CollectiveKind::kAllToAll, "perlmutter", "nodes", 1},
    {"nvls", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 1},
    {"nvls", CollectiveKind::kAllGather, "dgx-h100", "nodes", 1},
    {"nvls", CollectiveKind::kReduceScatter, "dgx-h100", "nodes", 1},
    {"hierarchical", CollectiveKind::kAllReduce, "dgx-a100", "nodes", 4},
    {"hierarchical", CollectiveKind::kAllGather, "perlmutter", "nodes", 4},
    {"hierarchical", CollectiveKind::kReduceScatter, "dgx-h100", "nodes", 3},
    {"pxn", CollectiveKind::kAllToAll, "dgx-a100", "nodes", 4},
    {"pxn", CollectiveKind::kAllToAll, "perlmutter", "nodes", 3},
    {"deepep", CollectiveKind::kAllToAll, "dgx-h800", "nodes", 1},
    {"deepep", CollectiveKind::kAllToAll, "dgx-h800", "nodes", 4},
    {"deepep", CollectiveKind::kAllToAll, "perlmutter", "nodes", 3},
    {"tree", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 1},
    {"tree", CollectiveKind::kAllReduce, "switch", "devices", 7},
    {"tree", CollectiveKind::kAllReduce, "switch", "devices", 16},
    {"tree", CollectiveKind::kBroadcast, "switch", "devices", 16},
    {"bucket", CollectiveKind::kAllReduce, "tpu-v4", "x", 4},
    {"bucket", CollectiveKind::kAllGather, "tpu-v4", "x", 4},
    {"bucket", CollectiveKind::kReduceScatter, "tpu-v4", "x", 4},
    {"ring-both", CollectiveKind::kAllReduce, "tpu-v4", "x", 4},
    {"halving-doubling", CollectiveKind::kAllReduce, "dgx-a100", "nodes", 4},
    {"direct", CollectiveKind::kAllToAll, "dgx-a100", "nodes", 2},
};

// Pipelines over hops of different latency. The closed form waits for the longest chain of
// messages, but lets the hops of a step share their links only with each other; step by step, those
// on quicker hops run ahead.
const MachineCase kMixedPipelines[] = {
    {"tree", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 4},
    {"tree", CollectiveKind::kBroadcast, "dgx-h100", "nodes", 4},
    {"tree", CollectiveKind::kReduce, "dgx-h100", "nodes", 4},
    {"tree", CollectiveKind::kReduce, "switch", "devices", 9},
    {"nvls-tree", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 3},
    {"nvls-tree", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 4},
    {"collnet", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 4},
    {"collnet", CollectiveKind::kAllReduce, "perlmutter", "nodes", 4},
};

// Rounds whose members have unequal paths: those inside a machine end sooner, and free their links
// for others, so only the closed form and fluid, which both take rounds as a whole, can be
// compared.
const MachineCase kUnequalCases[] = {
    {"pairwise", CollectiveKind::kAllToAll, "dgx-a100", "nodes", 2},
    {"bruck", CollectiveKind::kAllToAll, "dgx-a100", "nodes", 2},
    {"chain", CollectiveKind::kBroadcast, "perlmutter", "nodes", 2},
    {"ring", CollectiveKind::kReduce, "perlmutter", "nodes", 2},
};

template <typename Visit>
void ForEachMachine(std::span<const MachineCase> cases, const Visit& visit) {
  for (const MachineCase& own : cases) {
    const auto cluster = Preset(own.preset, own.parameter, own.value);
    for (const double bytes : {65536.0, 1e9}) {
      SCOPED_TRACE(fmt::format("{} {} on {} with {} ranks, n {}", own.algorithm, Name(own.kind),
                               own.preset, cluster->device_count(), bytes));
      visit(By(own.algorithm, own.kind, bytes, cluster->device_count()), *cluster);
    }
  }
}

TEST(AlgorithmTest, FidelitiesAgreeOnSymmetricMachines) {
  ForEachMachine(kSymmetricCases, [](const Schedule& schedule, const Cluster& cluster) {
    ExpectTime(schedule, cluster, TimeOf(schedule, cluster, Fidelity::kFormula));
  });
}

TEST(AlgorithmTest, PipelinesOverUnequalHopsAreALittleQuickerStepByStep) {
  ForEachMachine(kMixedPipelines, [](const Schedule& schedule, const Cluster& cluster) {
    const double formula = TimeOf(schedule, cluster, Fidelity::kFormula);
    EXPECT_NEAR(TimeOf(schedule, cluster, Fidelity::kFluid), formula, 1e-3 * formula);
    const double step = TimeOf(schedule, cluster, Fidelity::kStep);
    EXPECT_LE(step, formula * (1 + 1e-3));
    EXPECT_GE(step, formula * 0.95);
  });
}

TEST(AlgorithmTest, ClosedFormAndFluidAgreeWhereRoundsAreUnequal) {
  ForEachMachine(kUnequalCases, [](const Schedule& schedule, const Cluster& cluster) {
    const double formula = TimeOf(schedule, cluster, Fidelity::kFormula);
    EXPECT_NEAR(TimeOf(schedule, cluster, Fidelity::kFluid), formula, 1e-3 * formula);
  });
}

TEST(AlgorithmTest, FoldedIsUnfolded) {
  for (const auto& cases : {std::span<const MachineCase>(kSymmetricCases),
                            std::span<const MachineCase>(kMixedPipelines),
                            std::span<const MachineCase>(kUnequalCases)}) {
    ForEachMachine(cases, [](const Schedule& schedule, const Cluster& cluster) {
      for (const Fidelity fidelity : kFidelities) {
        const double unfolded = TimeOf(schedule, cluster, fidelity, false);
        EXPECT_NEAR(TimeOf(schedule, cluster, fidelity, true), unfolded, 1e-9 * unfolded + 1e-10)
            << Name(fidelity);
      }
    });
  }
}

// ---- On any machine -----------------------------------------------------------------------------

// `count` groups of `size` ranks, drawn from all; other ranks are idle.
std::vector<std::vector<uint32_t>> RandomGroups(Random& random, uint32_t ranks, uint32_t size,
                                                uint32_t count) {
  std::vector<uint32_t> all = Range(ranks);
  for (uint32_t i = 0; i < ranks; ++i) std::swap(all[i], all[i + random.Below(ranks - i)]);
  std::vector<std::vector<uint32_t>> groups;
  for (uint32_t g = 0; g < count; ++g) {
    groups.emplace_back(all.begin() + g * size, all.begin() + (g + 1) * size);
  }
  return groups;
}

Schedule Among(const char* algorithm, CollectiveKind kind, double bytes,
               const std::vector<std::vector<uint32_t>>& groups, uint32_t ranks, uint32_t root) {
  Schedule schedule = OneCollective(kind, bytes, groups);
  auto& collective = std::get<Collective>(schedule.roles[0].ops[0].work);
  collective.algorithm = ParseAlgorithm(algorithm);
  collective.root = root;
  schedule.roles.emplace_back();
  schedule.roles.back().name = "idle";
  schedule.role_of_rank.assign(ranks, 1);
  for (const auto& group : groups) {
    for (const uint32_t rank : group) schedule.role_of_rank[rank] = 0;
  }
  return schedule;
}

// Visits every algorithm and kind that random groups of a random machine can have.
template <typename Visit>
uint32_t ForEachRandomCase(uint64_t seeds, const Visit& visit) {
  uint32_t played = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    const uint32_t ranks = 2 + random.Below(14);
    const auto cluster = testing::RandomCluster(random, ranks);
    const uint32_t size = 2 + random.Below(ranks - 1);
    const auto groups = RandomGroups(random, ranks, size, 1 + random.Below(ranks / size));
    const double bytes = 1e4 * (1 + random.Below(1000));
    const uint32_t root = random.Below(size);
    for (const Algorithm& algorithm : Algorithms()) {
      for (const CollectiveKind kind :
           {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
            CollectiveKind::kAllToAll, CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
        if (!algorithm.kinds.Has(kind)) continue;
        SCOPED_TRACE(fmt::format("seed {} {} {}", seed, algorithm.name(), Name(kind)));
        const Schedule schedule = Among(algorithm.name(), kind, bytes, groups, ranks, root);
        try {
          visit(schedule, *cluster, kind, groups);
          ++played;
        } catch (const Error&) {
          // These groups cannot have it.
        }
        if (::testing::Test::HasFailure()) return played;
      }
    }
  }
  return played;
}

TEST(AlgorithmTest, FoldedIsUnfoldedForRandomGroupsOnRandomMachines) {
  const uint32_t played = ForEachRandomCase(
      kIsSanitized ? 10 : 40, [](const Schedule& schedule, const Cluster& cluster, CollectiveKind,
                                 const std::vector<std::vector<uint32_t>>&) {
        for (const Fidelity fidelity : kFidelities) {
          const double unfolded = TimeOf(schedule, cluster, fidelity, false);
          EXPECT_NEAR(TimeOf(schedule, cluster, fidelity, true), unfolded, 1e-9 * unfolded + 1e-10)
              << Name(fidelity);
        }
      });
  EXPECT_GT(played, kIsSanitized ? 125u : 500u);
}

// What no algorithm can exceed without switches that add. Every member has to receive and to send
// this many bytes in one collective; in all-reduces all members together, since one may do more for
// another.
double MostBusBandwidth(CollectiveKind kind, const Cluster& cluster,
                        const std::vector<std::vector<uint32_t>>& groups, Router& router) {
  double most = INFINITY;
  for (const auto& group : groups) {
    double sum = 0;
    double least = INFINITY;
    for (const uint32_t rank : group) {
      // A device of these machines has one cable each way.
      const uint32_t other = rank == group[0] ? group[1] : group[0];
      const double out = cluster.Link(router.Between(rank, other).links.front()).Capacity().value();
      sum += out;
      least = std::min(least, out);
    }
    const bool shares_work = kind == CollectiveKind::kAllReduce ||
                             kind == CollectiveKind::kReduce || kind == CollectiveKind::kBroadcast;
    // A broadcast moves (p-1)·n, an all-reduce 2(p-1)·n; busbw counts 1 and 2(p-1)/p of that.
    const double p = static_cast<double>(group.size());
    const double total = kind == CollectiveKind::kAllReduce ? sum / p : sum / (p - 1);
    most = std::min(most, shares_work ? total : least);
  }
  return most;
}

TEST(AlgorithmTest, BusBandwidthIsNeverAboveTheBottleneck) {
  ForEachRandomCase(60, [](const Schedule& schedule, const Cluster& cluster, CollectiveKind kind,
                           const std::vector<std::vector<uint32_t>>& groups) {
    const auto& collective = std::get<Collective>(schedule.roles[0].ops[0].work);
    if (collective.algorithm == AlgorithmId::kCollnet) return;
    Router router(cluster);
    const double most = MostBusBandwidth(kind, cluster, groups, router);
    for (const Fidelity fidelity : kFidelities) {
      // The closed form is that of a group alone, which can only be quicker.
      const double time = TimeOf(schedule, cluster, fidelity);
      const double busbw = BusBandwidth(kind, static_cast<uint32_t>(groups.front().size()),
                                        collective.bytes, Seconds(time))
                               .value();
      EXPECT_LE(busbw, most * (1 + 1e-9)) << Name(fidelity);
    }
  });
}

// ---- Sizes that differ --------------------------------------------------------------------------

Schedule Uneven(const char* algorithm, const std::vector<double>& pairs, uint32_t p) {
  double largest = 0;
  for (uint32_t from = 0; from < p; ++from) {
    largest = std::max(
        largest, std::accumulate(pairs.begin() + from * p, pairs.begin() + (from + 1) * p, 0.0));
  }
  Schedule schedule = By(algorithm, CollectiveKind::kAllToAll, largest, p);
  auto& collective = std::get<Collective>(schedule.roles[0].ops[0].work);
  for (const double bytes : pairs) collective.pair_bytes.emplace_back(bytes);
  return schedule;
}

TEST(AlgorithmTest, AGroupedSendTakesWhatItsBusiestPortNeeds) {
  // 0 sends 1 GB to 1 and 1 GB to 2, 3 sends 1 GB to 2: 2 GB leave 0 and 2 GB come to 2. One step.
  std::vector<double> pairs(16, 0);
  pairs[0 * 4 + 1] = pairs[0 * 4 + 2] = pairs[3 * 4 + 2] = 1e9;
  const auto cluster = Preset("switch", "devices", 4);
  ExpectTime(Uneven("direct", pairs, 4), *cluster, kAlpha + 2e9 / kPort);
}

TEST(AlgorithmTest, ExpertsOfDifferentPopularityTakeAsLongAsTheMostPopular) {
  // Every rank has 7 MB for rank 0 and 1 MB for each of the others: 7·7 MB come to rank 0.
  std::vector<double> pairs;
  for (uint32_t from = 0; from < 8; ++from) {
    for (uint32_t to = 0; to < 8; ++to) pairs.push_back(to == 0 ? 7e6 : 1e6);
  }
  const auto cluster = Preset("switch", "devices", 8);
  ExpectTime(Uneven("direct", pairs, 8), *cluster, kAlpha + 49e6 / kPort);
  // Pairwise: 7 steps, in each of which somebody sends 7 MB to rank 0.
  ExpectTime(Uneven("pairwise", pairs, 8), *cluster, 7 * (kAlpha + 7e6 / kPort));
}

TEST(AlgorithmTest, UnevenSizesThroughTheNeighboursNic) {
  // 2 machines of 4: local 0 of machine 0 has 1 GB for each of machine 1's locals, nobody else has
  // anything. Step 0 hands three of these to the other locals, step 1 sends each over its own NIC.
  const auto cluster = Preset("perlmutter", "nodes", 2);
  std::vector<double> pairs(64, 0);
  for (uint32_t to = 4; to < 8; ++to) pairs[to] = 1e9;
  Router router(*cluster);
  const Route& inside = router.Between(0, 1);
  const Route& across = router.Between(1, 5);
  const double expected = inside.latency.value() + 1e9 / inside.bandwidth.value() +
                          across.latency.value() + 1e9 / across.bandwidth.value() +
                          2 * cluster->step_overhead().value();
  ExpectTime(Uneven("pxn", pairs, 8), *cluster, expected);
}

TEST(AlgorithmTest, TokensThatComeOnceToAMachineTakeAsLongAsTheSlowerOfBothWays) {
  // 4 machines of 8. Of 1 GB, a fifth crosses to machines: 3/4 of that over a NIC; half goes to
  // ranks: 7/8 of that over NVLink. Whichever takes longer.
  const auto cluster = Preset("dgx-h800", "nodes", 4);
  Router router(*cluster);
  const Route& inside = router.Between(0, 1);
  const Route& across = router.Between(0, 8);
  const double latency = inside.latency.value() + across.latency.value();
  for (const auto& [rank_share, machine_share] : {std::pair(0.5, 0.2), std::pair(0.9, 0.1)}) {
    Schedule schedule = By("deepep", CollectiveKind::kAllToAll, 1e9, 32);
    auto& collective = std::get<Collective>(schedule.roles[0].ops[0].work);
    collective.rank_share = rank_share;
    collective.machine_share = machine_share;
    const double over_nic = machine_share * 3 / 4 * 1e9 / across.bandwidth.value();
    const double over_nvlink = rank_share * 7 / 8 * 1e9 / inside.bandwidth.value();
    ExpectTime(schedule, *cluster, latency + std::max(over_nic, over_nvlink));
  }
}

TEST(AlgorithmTest, BlocksOfBruckCannotDiffer) {
  const auto cluster = Preset("switch", "devices", 2);
  EXPECT_THROW(TimeOf(Uneven("bruck", {0, 1, 2, 0}, 2), *cluster, Fidelity::kFluid), Error);
}

// ---- What cannot be had -------------------------------------------------------------------------

std::string Refusal(const Schedule& schedule, const Cluster& cluster) {
  Router router(cluster);
  try {
    Lower(schedule, router);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AlgorithmTest, WhatAGroupCannotHaveIsSaid) {
  using enum CollectiveKind;
  const auto flat = Preset("switch", "devices", 4);
  const auto box = Preset("perlmutter", "nodes", 1);
  const auto boxes = Preset("perlmutter", "nodes", 2);
  using ::testing::HasSubstr;
  EXPECT_THAT(Refusal(By("nvls", kAllReduce, 1e6, 4), *flat), HasSubstr("different ones"));
  EXPECT_THAT(Refusal(By("nvls", kAllReduce, 1e6, 4), *box), HasSubstr("NVSwitch"));
  EXPECT_THAT(Refusal(By("collnet", kAllReduce, 1e6, 4), *box), HasSubstr("one machine"));
  EXPECT_EQ(Refusal(By("direct", kAllReduce, 1e6, 8), *boxes), "");  // over the network's switches
  const auto torus = Preset("tpu-v4", "x", 4);
  EXPECT_THAT(Refusal(By("direct", kAllReduce, 1e6, 64), *torus), HasSubstr("routers of others"));
  EXPECT_THAT(Refusal(By("bucket", kAllReduce, 1e6, 4), *flat), HasSubstr("torus"));
  EXPECT_THAT(Refusal(By("pairwise", kAllReduce, 1e6, 4), *flat),
              HasSubstr("cannot do all-reduce"));
  EXPECT_THAT(Refusal(By("ring", kAllToAll, 1e6, 4), *flat), HasSubstr("direct, pairwise, bruck"));
  const Schedule uneven = Among("hierarchical", kAllReduce, 1e6, {{0, 1, 2, 5}}, 8, 0);
  EXPECT_THAT(Refusal(uneven, *boxes),
              HasSubstr("equally many ranks of the group in every machine"));
}

TEST(AlgorithmTest, EveryRowIsFoundByItsName) {
  for (const Algorithm& row : Algorithms()) {
    EXPECT_EQ(&FindAlgorithm(row.id), &row);
    EXPECT_EQ(ParseAlgorithm(row.name()), row.id);
  }
  EXPECT_THROW(FindAlgorithm(AlgorithmId::kAuto), Error);
  EXPECT_THROW(FindAlgorithm(AlgorithmId::kCopy), Error);
}

TEST(AlgorithmTest, NamesAreOursOrNccls) {
  EXPECT_EQ(ParseAlgorithm("Ring"), AlgorithmId::kRing);
  EXPECT_EQ(ParseAlgorithm("NVLS"), AlgorithmId::kNvls);
  EXPECT_EQ(ParseAlgorithm("CollnetDirect"), AlgorithmId::kCollnet);
  EXPECT_EQ(ParseProtocol("LL128"), Protocol::kLL128);
  EXPECT_THROW(ParseAlgorithm(""), Error);
  EXPECT_THROW(ParseAlgorithm("rign"), Error);
  EXPECT_THROW(ParseProtocol(""), Error);
}

}  // namespace algorithm_test
}  // namespace rehearse
