// Calibrations of fake GPUs: what they hold, where it is from, and that scenarios can use it, but
// never times.
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/calibration/calibrate.h"
#include "real/cuda/cuda_backend.h"
#include "real/cuda/overheads.h"
#include "real/transports/transport_threads.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/trials/learning_plan.h"
#include "sim/base/json_document.h"
#include "tests/support/gpu_double.h"
#include "tests/support/gpu_run.h"

namespace rehearse {
namespace cuda_calibrate_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CudaCalibrateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    door_ = gpu_double::OpenGpuDouble();
    door_->Reset();
  }

  static LearningPlan SmallPlan() {
    LearningPlan plan = GpuLearningPlan();
    plan.largest = Flops(5e8);
    plan.largest_message = Bytes(128);
    plan.product_shapes = 2;
    plan.networks = 1;
    return plan;
  }

  static LearningOptions OnPretendedGpus() {
    LearningOptions options;
    options.kept = 1;
    options.backend = OnGpus({}, 8);
    options.computes_in = std::nullopt;
    return options;
  }

  static LearnedWorld LearnWorld(uint32_t ranks, const WorldPlan& plan) {
    LearnedWorld world;
    RunAsThreads(ranks, [&](Transport& transport) {
      Learned ladder = Learn(plan.ladder, transport, OnPretendedGpus());
      Learned steps = Learn(plan.steps, transport, OnPretendedGpus());
      if (transport.rank() == 0) world = {std::move(ladder), std::move(steps)};
    });
    return world;
  }

  gpu_double::Door* door_ = nullptr;
};

TEST_F(CudaCalibrateTest, EveryOpIsMeasuredInItsOwnTypeAndAScenarioCanUseTheResult) {
  std::vector<std::string> left_out;
  const WorldPlan plan = PlanLearning(SmallPlan(), 2, {}, &left_out);
  EXPECT_THAT(left_out, IsEmpty());
  const LearnedWorld world = LearnWorld(2, plan);
  EXPECT_EQ(world.ladder.transport, "nccl");
  EXPECT_TRUE(world.ladder.blocking);  // each op alone
  for (const ProbeTally& probe : world.steps.probes) {
    EXPECT_EQ(probe.kept, 1u) << probe.name;
    EXPECT_EQ(probe.disturbed + probe.other_state, 0u);
  }
  std::set<GemmMode> modes;
  for (const KernelSamples& sample : world.steps.kernels) {
    if (sample.kernel != Kernel::kGemm) continue;
    EXPECT_EQ(sample.dtype, DType::kBf16);
    modes.insert(sample.mode);
  }
  EXPECT_EQ(modes.size(), 3u);
  std::set<CollectiveKind> kinds;
  for (const CollectiveSamples& sample : world.ladder.collectives) {
    EXPECT_EQ(sample.ranks, 2u);
    kinds.insert(sample.kind);
  }
  EXPECT_EQ(kinds, std::set<CollectiveKind>(kAllCollectives.begin(), kAllCollectives.end()));

  GpuFacts gpu;
  gpu.record = {{"nccl", "2.28.9"}};
  gpu.launch = Seconds(2e-6);
  gpu.multiprocessors = 4;
  const std::vector<Encounter> encounters = {{{64, 64, 64, GemmMode::kNN, 1}, 0, Bytes(4096)},
                                             {{}, 1024, Bytes(4096)}};
  RunAsThreads(2, [&](Transport& transport) {
    auto samples = MeasureEncounters(encounters, DType::kBf16, transport,
                                     {.kept = 3, .backend = OnGpus({}, 8)});
    if (transport.rank() == 0) gpu.encounters = std::move(samples);
  });
  ASSERT_EQ(gpu.encounters.size(), 2u);
  for (const EncounterSamples& own : gpu.encounters) {
    // Three steps on two ranks: either they met or they did not.
    EXPECT_LE(own.compute.size() + own.apart, 6u);
    EXPECT_LE(own.communication.size() + own.apart, 6u);
    EXPECT_GE(own.compute.size() + own.communication.size() + own.apart, 6u);
  }
  const Calibration calibration =
      MakeGpuCalibration({world}, {"test", "abc", "2026-11-20T12:00:00Z", 1}, gpu);
  const nlohmann::ordered_json json = ToJson(calibration);
  EXPECT_EQ(json["about"]["backend"], "cuda");
  // The pretended GPUs compute on cores that others use, too: products may be off by any share.
  EXPECT_EQ(json["about"]["representative"], DoubtsOf(calibration).empty());
  EXPECT_EQ(json["about"]["gpu"]["nccl"], "2.28.9");
  EXPECT_FALSE(json.contains("host_cores"));  // GPUs share none
  EXPECT_EQ(json["launch_overhead"], "2us");

  const std::string scenario = fmt::format(
      R"({{"name": "calibrated", "cluster": {{"preset": "local-cpu", "ranks": 2, "device": "h200",
           "calibration": {}}},
           "model": {{"name": "small", "layers": 1, "hidden": 256, "heads": 4, "vocabulary": 1024}},
           "training": {{"batch": 2, "sequence": 128, "recomputation": "none"}},
           "strategy": {{"kind": "data-parallel", "data": 2, "overlap_gradients": false}}}})",
      json.dump());
  const Rehearsal rehearsal =
      Rehearse(ReadScenario(JsonDocument::FromText(scenario, "scenario.json")));
  EXPECT_GT(rehearsal.result.step, Seconds(0));
  EXPECT_THAT(door_->Findings(), IsEmpty());
}

TEST_F(CudaCalibrateTest, OneRankIsNotRepresentativeAndHasNoCollectives) {
  std::vector<std::string> left_out;
  const WorldPlan plan = PlanLearning(SmallPlan(), 1, {}, &left_out);
  EXPECT_THAT(plan.ladder, IsEmpty());
  GpuFacts gpu;
  gpu.not_representative = "one rank";
  const Calibration calibration =
      MakeGpuCalibration({LearnWorld(1, plan)}, {"test", "", "", 1}, gpu);
  EXPECT_FALSE(calibration.origin.is_representative);
  EXPECT_EQ(calibration.about["not_representative"], "one rank");
  EXPECT_THAT(calibration.collectives, IsEmpty());
  EXPECT_THAT(DescribeCalibration(calibration), HasSubstr("Not representative: one rank"));
}

TEST_F(CudaCalibrateTest, WhatDoesNotFitIsLeftOutAndNamed) {
  LearningPlan plan = SmallPlan();
  plan.room = Bytes(1000);
  std::vector<std::string> left_out;
  const WorldPlan world = PlanLearning(plan, 1, {}, &left_out);
  EXPECT_THAT(left_out, Contains(HasSubstr("products needs")));
  EXPECT_THAT(left_out, Contains(HasSubstr("4d 1x1x1x1")));
  EXPECT_THAT(world.steps, IsEmpty());
}

TEST_F(CudaCalibrateTest, LaunchesEventsAndCopiesAreMeasuredAtEverySize) {
  const GpuOverheads overheads = MeasureOverheads(LoadGpuLibraries(), 3, Bytes(1 << 20));
  // 4 KiB to 1 MiB in factors of four.
  for (const auto* copies : {&overheads.to_device, &overheads.from_device, &overheads.on_device}) {
    ASSERT_EQ(copies->size(), 5u);
    EXPECT_EQ(copies->front().bytes, Bytes(4096));
    EXPECT_EQ(copies->back().bytes, Bytes(1 << 20));
  }
  EXPECT_GT(overheads.host_launch, Seconds(0));
  EXPECT_GT(overheads.event, Seconds(0));
  const auto json = ToJson(overheads);
  EXPECT_EQ(json["copies"]["from_device"].size(), 5u);
  EXPECT_THAT(door_->Findings(), IsEmpty());
}

}  // namespace cuda_calibrate_test
}  // namespace rehearse
