// What casts cost, beside measured ones.
#include "workloads/planner/casts.h"

#include <vector>

#include <gtest/gtest.h>

#include "topology/devices/device.h"

namespace rehearse {
namespace casts_test {

Seconds TimeOn(const char* device, const KernelCost& cost) {
  Compute compute;
  compute.kind = ComputeKind::kMemory;
  compute.bytes = Bytes(cost.bytes);
  compute.kernels = cost.kernels;
  return ComputeTime(FindDevice(device), compute, false);
}

Training Of(ProductRecipe recipe, bool reads_columns) {
  Training training;
  training.products = recipe;
  training.reads_columns = reads_columns;
  return training;
}

// The layer of NVIDIA/TransformerEngine d0067d0da, docs/examples/gemm_profiling: 15,872 tokens,
// hidden 4,096, 16,384 between. Each of its twelve products is timed forward with casts: of X both
// copies, of W the one that a forward pass needs.
double MillisecondsOfCasts(const char* device, const Training& training) {
  constexpr double kRows = 15872;
  constexpr double kHidden = 4096;
  struct Shape {
    double m, k, n;
  };
  std::vector<Shape> shapes;
  for (const auto& [k, n] : {std::pair{kHidden, 3 * kHidden},
                             {kHidden, kHidden},
                             {kHidden, 4 * kHidden},
                             {4 * kHidden, kHidden}}) {
    shapes.push_back({kRows, k, n});
    shapes.push_back({kRows, n, k});
    shapes.push_back({k, kRows, n});
  }
  Seconds sum;
  for (const Shape& shape : shapes) {
    sum += TimeOn(device, CostOfCast(training, {.elements = shape.m * shape.k}));
    sum += TimeOn(device, CostOfCast(training, {.elements = shape.k * shape.n, .copies = 1}));
  }
  return sum.value() * 1e3;
}

TEST(CastsTest, TakeWhatTransformerEngineTakesOnABlackwell) {
  EXPECT_NEAR(MillisecondsOfCasts("b300", Of(ProductRecipe::kMxfp8, true)), 1.822, 0.12);
  EXPECT_NEAR(MillisecondsOfCasts("b300", Of(ProductRecipe::kNvfp4, true)), 2.688, 0.05);
  EXPECT_NEAR(MillisecondsOfCasts("b300", Of(ProductRecipe::kFp8Current, true)), 2.335, 0.05);
  EXPECT_NEAR(MillisecondsOfCasts("b300", Of(ProductRecipe::kFp8, true)), 0.99, 0.22);
}

// Not fitted. On an H200 NVL, whose memory is the H200's, casts take 3.49 ms with current scaling
// and 2.19 with delayed scaling, of products of 16.79 ms.
TEST(CastsTest, TakeWhatTransformerEngineTakesOnAHopper) {
  EXPECT_NEAR(MillisecondsOfCasts("h200", Of(ProductRecipe::kFp8Current, false)), 3.49, 0.1);
  EXPECT_NEAR(MillisecondsOfCasts("h200", Of(ProductRecipe::kFp8, false)), 2.19, 0.1);
}

// ROCm/TransformerEngine #598, its column of a B200: 8,192² in bf16, rows and both copies.
TEST(CastsTest, OfOneArrayTakeWhatWasMeasured) {
  const Training training = Of(ProductRecipe::kMxfp8, true);
  constexpr double kElements = 8192.0 * 8192;
  EXPECT_NEAR(TimeOn("b200", CostOfCast(training, {.elements = kElements})).value(), 52.34e-6,
              0.15 * 52.34e-6);
  EXPECT_NEAR(TimeOn("b200", CostOfCast(training, {.elements = kElements, .copies = 1})).value(),
              34.84e-6, 0.35 * 34.84e-6);
}

// NVIDIA/TransformerEngine #3011 saves 25 us at Llama's sizes.
TEST(CastsTest, OrderScalesApartForSo) {
  Training training = Of(ProductRecipe::kNvfp4, true);
  const CastWork work = {.elements = 16384.0 * 4096};
  const Seconds by_casts = TimeOn("gb200", CostOfCast(training, work));
  training.orders_scales_apart = true;
  EXPECT_NEAR((TimeOn("gb200", CostOfCast(training, work)) - by_casts).value(), 25e-6, 5e-6);
}

TEST(CastsTest, OfGradientsAreRoundedAtRandomInFourBits) {
  const Training training = Of(ProductRecipe::kNvfp4, true);
  EXPECT_NEAR(CostOfCast(training, {.elements = 100, .is_gradient = true}).bytes -
                  CostOfCast(training, {.elements = 100}).bytes,
              140, 1e-9);
}

TEST(CastsTest, OneCopyIsEnoughWhereColumnsAreReadToo) {
  EXPECT_EQ(CopiesOf(Of(ProductRecipe::kFp8, true)), 1u);
  EXPECT_EQ(CopiesOf(Of(ProductRecipe::kFp8Current, true)), 1u);
  EXPECT_EQ(CopiesOf(Of(ProductRecipe::kFp8, false)), 2u);
  EXPECT_EQ(CopiesOf(Of(ProductRecipe::kMxfp8, true)), 2u);
  EXPECT_EQ(CopiesOf(Of(ProductRecipe::kNvfp4, true)), 2u);
}

TEST(CastsTest, WhatANormWroteIsTurnedOnAHopperUnlessWeightsAreFrozen) {
  const CastWork behind_norm = {.elements = 100, .behind = CastBehind::kNorm};
  const KernelCost turned = CostOfCast(Of(ProductRecipe::kFp8, false), behind_norm);
  EXPECT_EQ(turned.bytes, 200);
  EXPECT_EQ(turned.kernels, 1u);
  EXPECT_EQ(CostOfCast(Of(ProductRecipe::kFp8, true), behind_norm).bytes, 0);
  EXPECT_EQ(CostOfCast(Of(ProductRecipe::kFp8, false),
                       {.elements = 100, .behind = CastBehind::kNorm, .copies = 1})
                .bytes,
            0);
}

}  // namespace casts_test
}  // namespace rehearse
