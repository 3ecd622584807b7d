#include "topology/devices/attention_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/topology/devices/attention_measured.h"
#include "topology/devices/device.h"

namespace rehearse {
namespace attention_model_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 16 multiprocessors of 1 TFLOP/s, of which half is reached, 0.6 with heads of 128; starting a
// block costs as much as 100 keys.
AttentionModel RoundModel() {
  const AttentionPass pass = {.rates = {0.5, 0.6, 0.7}, .causal = 0.9, .setup = 100, .tail = 0.25};
  return {.multiprocessors = 16,
          .launch = Seconds(0),
          .kernels = {{AttentionKernel::kFlash2, 128, pass, pass}}};
}

double Cores(const AttentionShape& shape, bool backward = false) {
  const AttentionModel model = RoundModel();
  return TimeOfCores(model, model.kernels.front(), shape, backward, FlopsPerSecond(16e12)).value();
}

TEST(AttentionModelTest, EveryBlockOfQueriesGoesOverAllKeys) {
  // 32 sequences and heads of 1,024 tokens are 256 blocks, 16 per multiprocessor; each has 1,124
  // keys of 4·128·64 flops at 0.5 TFLOP/s, and the last ones a quarter of a block.
  const double key = 4.0 * 128 * 64 / 0.5e12;
  EXPECT_DOUBLE_EQ(Cores({32, 1024, 64, false}), key * 16.25 * 1124);
  // Backward has five products instead of two.
  EXPECT_DOUBLE_EQ(Cores({32, 1024, 64, false}, true), 2.5 * key * 16.25 * 1124);
}

TEST(AttentionModelTest, AMaskLeavesHalfOfTheKeysAndTheDiagonal) {
  // (1,024 + 128)/2 keys in the mean, 1,024 of the last block.
  const double key = 4.0 * 128 * 64 / (0.9 * 0.5e12);
  EXPECT_DOUBLE_EQ(Cores({32, 1024, 64, true}), key * (16 * (576 + 100) + 0.25 * 1124));
}

TEST(AttentionModelTest, FewHeadsDoNotFillTheDevice) {
  // Up to 16 blocks on 16 multiprocessors take as long as one block; here 8.
  EXPECT_DOUBLE_EQ(Cores({1, 1024, 64, false}), Cores({0.5, 1024, 64, false}));
  EXPECT_DOUBLE_EQ(Cores({1, 1024, 64, false}), 4.0 * 128 * 64 / 0.5e12 * 1124);
}

TEST(AttentionModelTest, RatesBetweenHeadSizesAreInterpolated) {
  const double flops_per_key = 4.0 * 128;
  const auto rate = [&](double size) {
    return flops_per_key * size * 16.25 * 1124 / Cores({32, 1024, size, false}) / 1e12;
  };
  EXPECT_NEAR(rate(32), 0.25, 1e-12);
  EXPECT_NEAR(rate(96), 0.55, 1e-12);
  EXPECT_NEAR(rate(192), 0.65, 1e-12);
  EXPECT_NEAR(rate(512), 0.7, 1e-12);
}

// ---- Ops ----------------------------------------------------------------------------------------

// As the planner counts: 4 flops for each query, key and element of a head, half of that with a
// mask, 2.5 times as many backward; q, k, v and the result once each.
Compute Core(AttentionKernel kernel, double sequences, double heads, double sequence, double size,
             bool causal, bool backward) {
  Compute compute;
  compute.kind = ComputeKind::kAttention;
  compute.kernel = backward ? Kernel::kAttentionBackward : Kernel::kAttention;
  compute.attention = kernel;
  compute.attributes = {sequence, heads, 1, size, causal ? 1.0 : 0.0};
  compute.flops = Flops((backward ? 10 : 4) * (causal ? 0.5 : 1) * sequences * heads * sequence *
                        sequence * size);
  compute.bytes = Bytes((backward ? 2 : 1) * 4 * 2 * sequences * heads * sequence * size);
  return compute;
}

TEST(AttentionModelTest, AnOpSaysItsSequencesAndHeads) {
  for (const bool causal : {false, true}) {
    for (const bool backward : {false, true}) {
      const auto shape =
          ShapeOf(Core(AttentionKernel::kFused, 4, 16, 2048, 128, causal, backward), backward);
      ASSERT_TRUE(shape);
      EXPECT_DOUBLE_EQ(shape->sequences_times_heads, 64);
      EXPECT_EQ(shape->causal, causal);
    }
  }
}

TEST(AttentionModelTest, AnOpWithoutACoreHasTheOneEfficiency) {
  Compute compute = Core(AttentionKernel::kFused, 4, 16, 2048, 128, true, false);
  compute.attributes.clear();
  compute.bytes = Bytes(0);
  const DeviceSpec& h100 = FindDevice("h100");
  EXPECT_NEAR(ComputeTime(h100, compute, false).value(),
              compute.flops.value() / 989.4e12 / h100.attention_forward_efficiency + 5.5e-6, 1e-12);
}

TEST(AttentionModelTest, FusedIsWhatTheDevicesSoftwareUsuallyRuns) {
  for (const auto& [device, kernel] :
       std::map<std::string, AttentionKernel>{{"a100-40g", AttentionKernel::kFlash2},
                                              {"h100", AttentionKernel::kCudnn},
                                              {"b200", AttentionKernel::kCudnn},
                                              {"l40s", AttentionKernel::kFlash2},
                                              {"v100-32g", AttentionKernel::kEfficient},
                                              {"mi300x", AttentionKernel::kFlash2}}) {
    const auto time = [&, name = device](AttentionKernel of) {
      return ComputeTime(FindDevice(name), Core(of, 4, 16, 2048, 128, true, true), true);
    };
    EXPECT_EQ(time(AttentionKernel::kFused), time(kernel)) << device;
  }
}

TEST(AttentionModelTest, WhatADeviceCannotHaveIsRefusedWithWhatItCan) {
  try {
    ComputeTime(FindDevice("a100-40g"),
                Core(AttentionKernel::kFlash3, 4, 16, 2048, 128, true, false), false);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"a100-40g\" has no attention \"flash-3\""),
                                    HasSubstr("\"fused\", \"unfused\", \"flash-2\"")));
  }
  EXPECT_EQ(WhyNot(FindDevice("h100"), AttentionKernel::kFlash3), "");
  EXPECT_EQ(WhyNot(FindDevice("tpu-v4"), AttentionKernel::kUnfused), "");
  EXPECT_THAT(WhyNot(FindDevice("tpu-v4"), AttentionKernel::kCudnn), HasSubstr("\"unfused\""));
}

TEST(AttentionModelTest, UnfusedStoresItsScores) {
  // 64 heads of 2,048 tokens: 268 million scores of 13 bytes at 0.88 · 3.35 TB/s take 1.18 ms, five
  // launches 28 us; the products some 0.4 ms.
  Compute compute = Core(AttentionKernel::kUnfused, 4, 16, 2048, 128, false, false);
  compute.bytes = Bytes(64.0 * 2048 * 2048 * 13);
  compute.kernels = 5;
  const double time = ComputeTime(FindDevice("h100"), compute, false).value();
  EXPECT_GT(time, 1.18e-3 + 0.25e-3);
  EXPECT_LT(time, 1.18e-3 + 0.5e-3);
}

TEST(AttentionModelTest, LongerSequencesAndMoreHeadsTakeLonger) {
  for (const DeviceSpec& device : KnownDevices()) {
    if (!device.attention_model) continue;
    for (const AttentionRates& rates : device.attention_model->kernels) {
      for (const bool backward : {false, true}) {
        double last = 0;
        for (double sequence = 256; sequence <= 65536; sequence *= 2) {
          const double time =
              ComputeTime(device, Core(rates.kernel, 2, 16, sequence, 128, true, backward),
                          backward)
                  .value();
          EXPECT_GT(time, 1.5 * last) << device.name << " " << Name(rates.kernel);
          last = time - 5e-6;
          EXPECT_GT(ComputeTime(device, Core(rates.kernel, 2, 32, sequence, 128, true, backward),
                                backward)
                        .value(),
                    time * (1 - 1e-12));
        }
      }
    }
  }
}

TEST(AttentionModelTest, MeasuredCoresRanAsFast) {
  std::map<std::string, std::vector<double>> errors;
  for (const MeasuredAttention& row : kMeasuredAttentions) {
    double flops = 0;
    double time = 0;
    for (const bool backward : {false, true}) {
      if (row.pass == MeasuredPass::kForward && backward) continue;
      if (row.pass == MeasuredPass::kBackward && !backward) continue;
      const Compute core =
          Core(row.kernel, row.sequences, row.heads, static_cast<double>(row.sequence),
               row.head_size, row.causal, backward);
      flops += core.flops.value();
      time += ComputeTime(FindDevice(row.device), core, backward).value();
    }
    const double error = std::abs(row.teraflops * 1e12 / (flops / time) - 1);
    errors[row.device].push_back(error);
    EXPECT_LT(error, std::string(row.device) == "b200" ? 0.2 : 0.1)
        << row.device << " " << Name(row.kernel) << " heads of " << row.head_size << " sequence "
        << row.sequence << ": " << flops / time / 1e12 << ", measured " << row.teraflops;
  }
  for (auto& [device, list] : errors) {
    std::sort(list.begin(), list.end());
    RecordProperty(device + "_median", std::to_string(list[list.size() / 2]));
    EXPECT_LT(list[list.size() / 2], device == "b200" ? 0.1 : 0.04) << device;
  }
}

}  // namespace attention_model_test
}  // namespace rehearse
