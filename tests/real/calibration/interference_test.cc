// What compute and communication cost each other: closed forms, and made-up slowdowns that must be
// found again.
#include "real/calibration/interference.h"

#include <gtest/gtest.h>

#include "real/transports/transport_threads.h"
#include "sim/schedule/schedule_check.h"

namespace rehearse {
namespace interference_test {

Compute ProductOf(uint64_t m, uint64_t n) {
  Compute product;
  product.kind = ComputeKind::kGemm;
  product.gemm = {m, n, 4096, GemmMode::kNN, 1};
  return product;
}

TEST(InterferenceTest, ASlowdownFollowsFromTheTimesAloneAndBeside) {
  // 10 ms of work, of which 8 were done at half speed in 16 ms: 2 + 16 = 18 ms.
  EXPECT_NEAR(*SlowdownFrom(Seconds(10e-3), Seconds(18e-3), Seconds(16e-3)), 1, 1e-12);
  EXPECT_EQ(*SlowdownFrom(Seconds(10e-3), Seconds(10e-3), Seconds(10e-3)), 0);
  // Quicker beside than alone is noise.
  EXPECT_EQ(*SlowdownFrom(Seconds(10e-3), Seconds(9e-3), Seconds(9e-3)), 0);
  // They met for less than half of the time, or not at all.
  EXPECT_FALSE(SlowdownFrom(Seconds(10e-3), Seconds(10e-3), Seconds(4e-3)));
  EXPECT_FALSE(SlowdownFrom(Seconds(10e-3), Seconds(10e-3), Seconds(0)));
  // Nothing is slowed down more than a scenario can say: its thread was kept from running.
  EXPECT_TRUE(SlowdownFrom(Seconds(1e-5), Seconds(9e-3), Seconds(9e-3)));
  EXPECT_FALSE(SlowdownFrom(Seconds(1e-5), Seconds(11e-3), Seconds(11e-3)));
}

TEST(InterferenceTest, AProductTakesTheWavesThatCommunicationLeaves) {
  Slowdown slowdown;
  slowdown.gemm = 0.1;
  slowdown.waves = Waves{132, 24, 128, 128};
  // 1024 × 2048 is 8 · 16 = 128 tiles: one wave on 132 multiprocessors, two on 108.
  EXPECT_NEAR(SlowdownOf(slowdown, ProductOf(1024, 2048)), 1.1 * 2 - 1, 1e-12);
  // 1024 × 1536 is 96 tiles: one wave on either.
  EXPECT_NEAR(SlowdownOf(slowdown, ProductOf(1024, 1536)), 0.1, 1e-12);
  // 8192 × 8192 is 4096 tiles: ⌈4096/132⌉ = 32 waves, ⌈4096/108⌉ = 38.
  EXPECT_NEAR(SlowdownOf(slowdown, ProductOf(8192, 8192)), 1.1 * 38 / 32 - 1, 1e-12);
  Compute copy;
  copy.kind = ComputeKind::kMemory;
  EXPECT_EQ(SlowdownOf(slowdown, copy), 0);
}

std::vector<EncounterSamples> MadeUp(const Slowdown& slowdown) {
  std::vector<EncounterSamples> samples;
  for (const uint64_t m : {512u, 1024u, 1536u, 2048u, 3072u, 4096u, 8192u}) {
    for (const uint64_t n : {1024u, 2560u, 4096u, 6144u}) {
      const Compute product = ProductOf(m, n);
      samples.push_back(
          {{product.gemm, 0, Bytes(1 << 20)}, {SlowdownOf(slowdown, product)}, {0.3}, 0});
    }
  }
  samples.push_back({{{}, 1 << 20, Bytes(1 << 20)}, {0.25, 0.2, 0.3}, {}, 1});
  return samples;
}

TEST(InterferenceTest, WavesThatWereMadeUpAreFound) {
  Slowdown truth;
  truth.gemm = 0.05;
  truth.waves = Waves{132, 20, 128, 256};
  const auto fit = FitInterference(MadeUp(truth), 132);
  ASSERT_TRUE(fit.has_value());
  // Other tiles or counts may explain the same times; only the times count.
  EXPECT_LT(fit->wave_errors.largest, 1e-9);
  for (const EncounterSamples& own : MadeUp(truth)) {
    if (own.encounter.product.m == 0) continue;
    Compute product = ProductOf(own.encounter.product.m, own.encounter.product.n);
    EXPECT_NEAR(SlowdownOf(fit->slowdown, product), own.compute[0], 1e-9);
  }
  EXPECT_GT(fit->plain_errors.largest, 0.1);
  EXPECT_EQ(fit->slowdown.memory, 0.25);
  EXPECT_EQ(fit->slowdown.communication, 0.3);
}

TEST(InterferenceTest, APlainFactorStaysPlain) {
  Slowdown truth;
  truth.gemm = 0.2;
  const auto fit = FitInterference(MadeUp(truth), 132);
  ASSERT_TRUE(fit.has_value());
  EXPECT_FALSE(fit->slowdown.waves.has_value());
  EXPECT_NEAR(fit->slowdown.gemm, 0.2, 1e-12);
}

TEST(InterferenceTest, WhereNothingMetNothingIsSaid) {
  EXPECT_FALSE(FitInterference({}, 132).has_value());
  EXPECT_FALSE(FitInterference({{{ProductOf(64, 64).gemm, 0, Bytes(64)}, {}, {}, 5}}, 132));
}

TEST(InterferenceTest, AnEncounterIsEachAloneAndBothTogether) {
  const Schedule schedule = MakeEncounterProbe(
      2, {{ProductOf(64, 64).gemm, 0, Bytes(4096)}, {{}, 1000, Bytes(1024)}}, DType::kBf16);
  CheckSchedule(schedule);
  const std::vector<Op>& ops = schedule.roles[0].ops;
  ASSERT_EQ(ops.size(), 2 * kOpsOfEncounter);
  for (uint32_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(std::holds_alternative<Collective>(ops[i].work), i % 2 == 1);
    EXPECT_EQ(ops[i].stream, StreamId(i % 2));
  }
  // The second pair begins when the first collective is done, and neither waits for the other.
  EXPECT_EQ(ops[2].after, std::vector<OpId>{OpId(1)});
  EXPECT_TRUE(ops[3].after.empty());
}

}  // namespace interference_test
}  // namespace rehearse
