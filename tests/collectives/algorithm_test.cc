// Every algorithm at every fidelity: how long it takes, what travels, and whether folding changes it.
#include "collectives/algorithm.h"

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/collectives/schedules.h"

namespace rehearse {
namespace {

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
  collective.algorithm = algorithm;
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

// ---- On a plain switch: ports of 25 GB/s, 2 us from port to port -------------------------------------

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
      // On a switch both directions share the ports, so that two half rings are as fast as one.
      {"ring-both", kAllReduce, [=](uint32_t p, double n) { return 2 * ring(p, n); }},
      {"ring-both", kAllGather, ring},
      {"ring-both", kReduceScatter, ring},
      {"halving-doubling", kAllReduce, [=](uint32_t p, double n) { return 2 * half(p, n); }},
      {"halving-doubling", kAllGather, half},
      {"halving-doubling", kReduceScatter, half},
      {"doubling", kAllGather, half},
      {"doubling", kBarrier, [](uint32_t p, double) { return Log2Up(p) * kAlpha; }},
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
      // One device a machine: rings across, nothing inside; no neighbour to go through.
      {"hierarchical", kAllReduce, [=](uint32_t p, double n) { return 2 * ring(p, n); }},
      {"pxn", kAllToAll, [](uint32_t p, double n) { return kAlpha + (p - 1.0) / p * n / kPort; }},
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

double DoublingAllReduce(uint32_t p, double n) {
  const double extra = std::has_single_bit(p) ? 0 : 2;
  return (std::floor(std::log2(p)) + extra) * (kAlpha + n / kPort);
}

TEST(AlgorithmTest, DoublingAllReduceAgreesForPowersOfTwo) {
  for (const uint32_t p : {2u, 4u, 8u, 16u}) {
    const auto cluster = Preset("switch", "devices", p);
    for (const double bytes : {12345.0, 1e9}) {
      ExpectTime(By("doubling", CollectiveKind::kAllReduce, bytes, p), *cluster,
                 DoublingAllReduce(p, bytes));
    }
  }
}

TEST(AlgorithmTest, DoublingAllReduceOfOtherNumbersSharesPortsStepByStep) {
  // Ranks without a partner beyond the power of two begin their first exchange while others still add in
  // theirs; where both come to one port they share it, and what was to take n/B there takes 2n/B. No port ever
  // carries more than the two, so that no exchange is later than by one n/B.
  for (const uint32_t p : {3u, 5u, 6u, 7u, 12u}) {
    const auto cluster = Preset("switch", "devices", p);
    const double bytes = 1e8;
    const Schedule schedule = By("doubling", CollectiveKind::kAllReduce, bytes, p);
    const double expected = DoublingAllReduce(p, bytes);
    EXPECT_NEAR(TimeOf(schedule, *cluster, Fidelity::kFormula), expected, 1e-3 * expected);
    EXPECT_NEAR(TimeOf(schedule, *cluster, Fidelity::kFluid), expected, 1e-3 * expected);
    const double step = TimeOf(schedule, *cluster, Fidelity::kStep);
    EXPECT_GE(step, expected * (1 - 1e-3));
    EXPECT_LE(step, expected + bytes / kPort * (1 + 1e-3));
  }
}

// ---- On machines with several GPUs --------------------------------------------------------------------

struct MachineCase {
  const char* algorithm;
  CollectiveKind kind;
  const char* preset;
  const char* parameter;
  uint32_t value;
};

const MachineCase kMachineCases[] = {
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
    {"collnet", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 4},
    {"collnet", CollectiveKind::kAllReduce, "perlmutter", "nodes", 4},
    {"tree", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 1},
    {"tree", CollectiveKind::kAllReduce, "dgx-h100", "nodes", 4},
    {"tree", CollectiveKind::kBroadcast, "dgx-h100", "nodes", 4},
    {"tree", CollectiveKind::kReduce, "dgx-h100", "nodes", 4},
    {"tree", CollectiveKind::kAllReduce, "switch", "devices", 7},
    {"tree", CollectiveKind::kAllReduce, "switch", "devices", 16},
    {"tree", CollectiveKind::kBroadcast, "switch", "devices", 16},
    {"tree", CollectiveKind::kReduce, "switch", "devices", 9},
    {"bucket", CollectiveKind::kAllReduce, "tpu-v4", "x", 4},
    {"bucket", CollectiveKind::kAllGather, "tpu-v4", "x", 4},
    {"bucket", CollectiveKind::kReduceScatter, "tpu-v4", "x", 4},
    {"ring-both", CollectiveKind::kAllReduce, "tpu-v4", "x", 4},
    {"halving-doubling", CollectiveKind::kAllReduce, "dgx-a100", "nodes", 4},
    {"pairwise", CollectiveKind::kAllToAll, "dgx-a100", "nodes", 2},
    {"bruck", CollectiveKind::kAllToAll, "dgx-a100", "nodes", 2},
    {"direct", CollectiveKind::kAllToAll, "dgx-a100", "nodes", 2},
};

TEST(AlgorithmTest, FidelitiesAgreeOnRealMachines) {
  for (const MachineCase& own : kMachineCases) {
    const auto cluster = Preset(own.preset, own.parameter, own.value);
    const uint32_t p = cluster->device_count();
    for (const double bytes : {65536.0, 1e9}) {
      SCOPED_TRACE(fmt::format("{} {} on {} with {} ranks, n {}", own.algorithm, Name(own.kind),
                               own.preset, p, bytes));
      const Schedule schedule = By(own.algorithm, own.kind, bytes, p);
      const double formula = TimeOf(schedule, *cluster, Fidelity::kFormula);
      EXPECT_NEAR(TimeOf(schedule, *cluster, Fidelity::kFluid), formula, 1e-3 * formula) << "fluid";
      EXPECT_NEAR(TimeOf(schedule, *cluster, Fidelity::kStep), formula, 1e-3 * formula) << "step";
    }
  }
}

TEST(AlgorithmTest, FoldedIsUnfolded) {
  for (const MachineCase& own : kMachineCases) {
    const auto cluster = Preset(own.preset, own.parameter, own.value);
    const uint32_t p = cluster->device_count();
    const Schedule schedule = By(own.algorithm, own.kind, 1e7, p);
    for (const Fidelity fidelity : kFidelities) {
      SCOPED_TRACE(fmt::format("{} {} on {} with {} ranks, {}", own.algorithm, Name(own.kind),
                               own.preset, p, Name(fidelity)));
      const double unfolded = TimeOf(schedule, *cluster, fidelity, false);
      EXPECT_NEAR(TimeOf(schedule, *cluster, fidelity, true), unfolded, 1e-9 * unfolded + 1e-11);
    }
  }
}

}  // namespace
}  // namespace rehearse
