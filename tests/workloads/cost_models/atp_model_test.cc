// ATP's model against the paper's own figures.
#include "workloads/cost_models/atp_model.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "topology/presets/presets.h"

namespace rehearse {
namespace atp_model_test {

CommunicationMatrix MatrixOf(const std::string& preset,
                             const std::map<std::string, uint32_t>& parameters) {
  const std::unique_ptr<Cluster> cluster = BuildPreset(preset, parameters, Place());
  Router router(*cluster);
  std::vector<uint32_t> ranks(cluster->device_count());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return HierarchicalMatrix(router, ranks);
}

TEST(AtpModelTest, Equation2WithCalibratedBandwidthsOfIc1) {
  // Section 5.3: mesh (2,4) has B1 = 1.20 and B2 = 4.95 GB/s, mesh (8,1) has B1 = 0.97 GB/s, and
  // "T_comm of ATP-4 was theoretically 46% lower than that of ATP-1":
  // 7/(2·4.95) + 2/(4·1.20) = 1.1237 against 2/0.97 = 2.0619, 45.5 % less.
  const AtpWorkload workload{1, 4 * 2048.0, 4096};
  const BytesPerSecond infinite = AtpAlgorithmBandwidth(BytesPerSecond(1), 1);
  const Seconds atp4 =
      PredictAtp(workload, {2, 4}, BytesPerSecond(1.20e9), BytesPerSecond(4.95e9)).Total();
  const Seconds atp1 = PredictAtp(workload, {8, 1}, BytesPerSecond(0.97e9), infinite).Total();
  EXPECT_NEAR(1 - atp4 / atp1, 0.455, 0.0005);
  // In seconds: 2·L·b·s·h elements of 2 bytes are 2·8192·4096·2 = 134.2 MB; times 2.0619 / 1e9.
  EXPECT_NEAR(atp1.value(), 2 * 8192.0 * 4096 * 2 * 2 / 0.97e9, 1e-12);
}

TEST(AtpModelTest, Section54IsEquation2WithOneGroupBandwidth) {
  // T = 2·L·b·s·h/GroupBW · (14·d2 + 4·d1 - 18)/(d1·d2), in elements.
  const AtpWorkload workload{3, 1000, 512, Bytes(1)};
  const BytesPerSecond group(25e9);
  for (const AtpMesh mesh : {AtpMesh{16, 1}, {8, 2}, {4, 4}, {64, 4}, {1, 16}}) {
    const double d1 = mesh.d1;
    const double d2 = mesh.d2;
    const double wanted = 2 * 3 * 1000 * 512.0 / 25e9 * (14 * d2 + 4 * d1 - 18) / (d1 * d2);
    EXPECT_NEAR(PredictAtp(workload, mesh, AtpAlgorithmBandwidth(group, mesh.d1),
                           AtpAlgorithmBandwidth(group, mesh.d2))
                    .Total()
                    .value(),
                wanted, 1e-12 * wanted);
  }
}

TEST(AtpModelTest, Figure12RisesForAtp1AndFallsForTheOthers) {
  // ATP-1: 4(N-1)/N rises. ATP-2: (2N+10)/N and ATP-4: (N+38)/N fall. ATP-1 is ahead below 7, where
  // 4(N-1) = 2N+10; from 28 devices ATP-4 is ahead of ATP-2, where 2N+10 = N+38.
  const AtpWorkload workload{1, 1, 1, Bytes(1)};
  const auto time = [&](uint32_t devices, uint32_t i) {
    return PredictAtp(workload, {devices / i, i},
                      AtpAlgorithmBandwidth(BytesPerSecond(2), devices / i),
                      AtpAlgorithmBandwidth(BytesPerSecond(2), i))
        .Total()
        .value();
  };
  for (uint32_t devices = 4; devices <= 2048; devices *= 2) {
    EXPECT_NEAR(time(devices, 1), 4.0 * (devices - 1) / devices, 1e-12);
    EXPECT_LT(time(devices, 1), time(2 * devices, 1));
    EXPECT_GT(time(devices, 2), time(2 * devices, 2));
    EXPECT_GT(time(devices, 4), time(2 * devices, 4));
    EXPECT_EQ(time(devices, 1) < time(devices, 2), devices < 7);
    EXPECT_EQ(time(devices, 2) < time(devices, 4), devices < 28);
  }
}

TEST(AtpModelTest, Figure7aOnDeviceMesh8By2) {
  // Section 3.5: B'2 = 200 GB/s between two GPUs of a node, B'1 = 12.5 GB/s for two all-reduces
  // that share a node's 25 GB/s; both directions of NVLink are counted there, one here, and links
  // have efficiencies of 0.816 and 0.955: 81.6 GB/s and 11.94 GB/s.
  const AtpPrediction prediction =
      PredictAtp({1, 1, 1, Bytes(1)}, {8, 2}, MatrixOf("atp-ic4", {{"nodes", 4}}));
  // B2 = 2/(2·1)·81.6, B1 = 8/(2·7)·11.94 GB/s; qkv = 2·3/8/B2, projection = 2/2/B1.
  EXPECT_NEAR(prediction.qkv.value(), 0.75 / 81.604e9, 1e-14);
  EXPECT_NEAR(prediction.projection.value(), 1 / (8 / 14.0 * 11.9375e9), 1e-14);
  EXPECT_NEAR(prediction.mlp_up / prediction.qkv, 4.0 / 3, 1e-12);
  EXPECT_EQ(prediction.mlp_down, prediction.projection);
  // What eq. 2 leaves out is a sixth of QKV's all-reduce: a third of the columns, half the time.
  EXPECT_NEAR(prediction.core_gather / prediction.qkv, 1.0 / 6, 1e-12);
}

TEST(AtpModelTest, PairsOnPcieAreBestWithOneDimensionOnlyIfRingsOfFourAndEightAreAlike) {
  // Section 5.3 on IC2: "B1 = GroupBW/d2 ... is the same for all ATP strategies. However, the first
  // item in ATP-1 is 0". So it is with B' for B, as the paper argues there:
  const CommunicationMatrix matrix = MatrixOf("atp-ic2", {});
  const AtpWorkload workload{1, 4 * 2048.0, 4096};
  const auto with_bus = [&](const AtpMesh& mesh) {
    const MeshBandwidths found = AllReduceBandwidths(matrix, mesh.d1, mesh.d2);
    return PredictAtp(workload, mesh, found.first, found.second);
  };
  const AtpPrediction one = with_bus({8, 1});
  const AtpPrediction two = with_bus({4, 2});
  EXPECT_NEAR(one.projection / two.projection, 1, 1e-12);
  EXPECT_EQ(one.qkv.value(), 0);
  EXPECT_GT(two.qkv.value(), 0);
  // With eq. 4, the ring of 4 has 3/4 of a pass where that of 8 has 7/8, and the difference is more
  // than NVLink costs.
  const auto ranked = RankAtpMeshes(workload, matrix);
  ASSERT_EQ(ranked.size(), 4u);
  EXPECT_EQ(ranked[0].mesh.d2, 2u);
  EXPECT_EQ(ranked[1].mesh.d2, 1u);
  EXPECT_TRUE(std::isfinite(ranked[1].prediction.Total().value()));
}

}  // namespace atp_model_test
}  // namespace rehearse
