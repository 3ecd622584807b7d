// AutoDDL's model against the paper's own figures.
#include "workloads/cost_models/autoddl_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace autoddl_model_test {

constexpr double kGibi = 1024.0 * 1024 * 1024;

// Fig. 3: an attention layer of model dimension 8,192 on 64 nodes, 1,024 sequences of 1,024 tokens,
// fp32.
std::vector<SbpProduct> AttentionLayer(const SbpChoice& qkv, const SbpChoice& projection) {
  const double rows = 1024.0 * 1024;
  return {{rows, 8192, 3 * 8192, qkv}, {rows, 8192, 8192, projection}};
}

SbpChoice Choose(uint32_t p0, uint32_t p1, uint32_t p2) { return {{p0, 1}, {p1, 1}, {p2, 1}}; }

TEST(AutoddlModelTest, Table2IsARingOfPMinusOneSteps) {
  const AlphaBeta network{Seconds(3e-6), 1e-10};
  // 2·3·3 us + 2·3/4·1e6·1e-10 s = 18 us + 150 us; the others take half of that.
  EXPECT_NEAR(AutoddlTime(CollectiveKind::kAllReduce, 4, Bytes(1e6), network).value(), 168e-6,
              1e-12);
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll})
    EXPECT_NEAR(AutoddlTime(kind, 4, Bytes(1e6), network).value(), 84e-6, 1e-12);
  EXPECT_EQ(AutoddlTime(CollectiveKind::kAllReduce, 1, Bytes(1e6), network).value(), 0);
}

TEST(AutoddlModelTest, Figure3Megatron15GibibytesAgainst8) {
  // Megatron, 4-way data and 16-way model parallel: QKV split by columns, the projection by rows:
  // what an all-reduce over 16 nodes of 2 Gi elements moves: 2·15/16·2 Gi = 3.75 Gi elements, 15
  // GiB.
  const AutoddlPrediction megatron =
      PredictAutoddl(AttentionLayer(Choose(4, 16, 1), Choose(4, 1, 16)), {});
  EXPECT_EQ(megatron.forward.value(), 15 * kGibi);
  // AutoDDL, 2 Gi elements, 8 GiB: 8 x 2 for QKV and 4 x 4 for the projection, in Gi elements
  // 7/8·8/(4·2) + 1/2·24/(4·8) + 3/4·8/(4·4) + 3/4·8/(4·4) = 7/8 + 3/8 + 3/8 + 3/8.
  const AutoddlPrediction autoddl =
      PredictAutoddl(AttentionLayer(Choose(4, 8, 2), Choose(4, 4, 4)), {});
  EXPECT_EQ(autoddl.forward.value(), 8 * kGibi);
  // "the relative communication ratio is 96:180"
  EXPECT_DOUBLE_EQ(autoddl.forward / megatron.forward, 96.0 / 180);
}

TEST(AutoddlModelTest, Figure3HasTheLeastCommunicationOfAllSplits) {
  // Of all ways to write 16 = p1·p2 for both products, none moves less than the paper's.
  double least = 1e300;
  for (uint32_t a = 1; a <= 16; a *= 2)
    for (uint32_t b = 1; b <= 16; b *= 2)
      least = std::min(
          least, PredictAutoddl(AttentionLayer(Choose(4, a, 16 / a), Choose(4, b, 16 / b)), {})
                     .forward.value());
  EXPECT_EQ(least, 8 * kGibi);
}

TEST(AutoddlModelTest, DataParallelismOnlyAllReducesWeights) {
  const SbpNetwork network{{}, {Seconds(0), 1e-9}, Bytes(4)};
  const AutoddlPrediction prediction =
      PredictAutoddl({{512, 100, 200, Choose(8, 1, 1), true}}, network);
  // 2·7/8 · 100·200 elements · 4 bytes at 1 GB/s.
  EXPECT_NEAR(prediction.gradient.value(), 2 * 7 / 8.0 * 100 * 200 * 4 * 1e-9, 1e-15);
  EXPECT_EQ(prediction.Total(), prediction.gradient);
}

TEST(AutoddlModelTest, CubesReachTheLowerBound) {
  // Section 4.4.2: n×n matrices on p = q³ devices, p0 = p1 = p2 = q: each collective has n²/q²
  // elements, so 64 times the devices have a 16th of the communication, n²/p^(2/3).
  const SbpNetwork network{{}, {Seconds(0), 1e-9}, Bytes(4)};
  const auto time = [&](uint32_t q) {
    // Without the factor (q-1)/q of a ring, which goes to 1.
    return PredictAutoddl({{4096, 4096, 4096, Choose(q, q, q)}}, network).Total().value() * q /
           (q - 1);
  };
  EXPECT_NEAR(time(2) / time(8), 16, 1e-9);
}

TEST(AutoddlModelTest, OnlyWhatStaysInANodeFindsItsLinks) {
  // Two nodes of 16: p1 on the GPUs of a node, p0 over the nodes.
  const SbpNetwork network{{Seconds(0), 1e-12}, {Seconds(0), 1e-9}, Bytes(2)};
  const SbpChoice choice{{2, 1}, {1, 16}, {1, 1}};
  const AutoddlPrediction prediction = PredictAutoddl({{64, 32, 48, choice, true}}, network);
  EXPECT_NEAR(prediction.gather.value(), 15 / 16.0 * 64 * 32 / 2 * 2 * 1e-12, 1e-18);
  EXPECT_NEAR(prediction.gradient.value(), 2 * 1 / 2.0 * 32 * 48 / 16 * 2 * 1e-9, 1e-18);
}

TEST(AutoddlModelTest, AChangeOfP0IsAnAllToAllBothWays) {
  const SbpNetwork network{{}, {Seconds(0), 1e-9}, Bytes(4)};
  const AutoddlPrediction prediction =
      PredictAutoddl({{64, 32, 48, Choose(8, 1, 1), true}, {64, 48, 16, Choose(1, 8, 1)}}, network);
  // Each of 8 devices has 64·48/8 elements and sends 7/8 of them, forward and backward.
  EXPECT_NEAR(prediction.change.value(), 2 * 7 / 8.0 * 64 * 48 / 8 * 4 * 1e-9, 1e-15);
}

TEST(AutoddlModelTest, LeastSquaresFindsWhatMadeTheSamples) {
  const AlphaBeta truth{Seconds(12e-6), 1 / 8.5e9};
  std::vector<AlphaBetaSample> samples;
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllToAll})
    for (const uint32_t devices : {2u, 8u, 32u})
      for (const double bytes : {1e4, 1e6, 1e8})
        samples.push_back(
            {kind, devices, Bytes(bytes), AutoddlTime(kind, devices, Bytes(bytes), truth)});
  const AlphaBeta fit = FitAlphaBeta(samples);
  EXPECT_NEAR(fit.alpha.value(), 12e-6, 1e-9);
  EXPECT_NEAR(fit.beta * 8.5e9, 1, 1e-9);
  samples.resize(1);
  EXPECT_THROW(FitAlphaBeta(samples), Error);
}

}  // namespace autoddl_model_test
}  // namespace rehearse
