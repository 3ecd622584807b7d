#include "real/calibration/learning.h"

#include <csignal>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/calibration/calibrate.h"
#include "real/calibration/probe_schedule.h"
#include "real/transports/transport_threads.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/json_document.h"
#include "sim/schedule/schedule_check.h"

namespace rehearse {
namespace learning_test {

std::vector<Seconds> Pings(const std::vector<double>& microseconds) {
  std::vector<Seconds> pings;
  for (const double value : microseconds) pings.emplace_back(value * 1e-6);
  return pings;
}

TEST(LearningTest, TwoStatesOfTheHostAreSplitAtTheWidestGap) {
  EXPECT_EQ(SplitStates(Pings({0.25, 0.5, 0.26, 0.52, 0.24, 0.51})), Seconds(0.26e-6));
}

TEST(LearningTest, OneStateIsNotSplit) {
  EXPECT_EQ(SplitStates(Pings({0.25, 0.27, 0.31, 0.35, 0.40})), Seconds(0));
  EXPECT_EQ(SplitStates({}), Seconds(0));
}

// One long ping of twenty is an accident, not a state.
TEST(LearningTest, AFewOutliersAreNoState) {
  std::vector<double> pings(19, 0.25);
  pings.push_back(5);
  EXPECT_EQ(SplitStates(Pings(pings)), Seconds(0));
}

// By a clock that the test sets.
TEST(LearningTest, HopeIsLostWhenNoStepWasLeftAloneForSoLong) {
  int64_t now = 5;
  const auto clock = [&] { return now; };
  GivingUp never(Seconds(30), clock);
  GivingUp once(Seconds(30), clock);
  now += 29'000'000'000;
  EXPECT_FALSE(never.IsOver(0));
  EXPECT_FALSE(once.IsOver(1));
  now += 1'000'000'000;
  EXPECT_TRUE(never.IsOver(0));
  EXPECT_FALSE(once.IsOver(0));
}

TEST(LearningTest, ItIsWaitedNoLongerWhenFewStepsWereLeftAloneForSoLong) {
  int64_t now = 5;
  const auto clock = [&] { return now; };
  Haste few(Seconds(30), clock);
  Haste enough(Seconds(30), clock);
  now += 29'000'000'000;
  few.Add(9, 100);
  enough.Add(10, 100);
  EXPECT_FALSE(few.IsOn());
  now += 1'000'000'000;
  few.Add(0, 0);
  enough.Add(0, 0);
  EXPECT_TRUE(few.IsOn());
  EXPECT_FALSE(enough.IsOn());
  enough.Add(0, 1);  // 10 of 101
  EXPECT_TRUE(enough.IsOn());
  few.Add(100, 100);
  EXPECT_TRUE(few.IsOn());
}

// Patience would last for minutes; the first schedule's steps are said to be disturbed.
TEST(LearningTest, InHasteEveryScheduleGetsOneBatch) {
  const std::vector<NamedSchedule> schedules(
      3, {"products", MakeProductProbe(2, ProbeProducts(1, {.most = Flops(1e5)}), 1)});
  LearningOptions options;
  options.kept = 1000;
  options.patience = Seconds(600);
  Haste haste(Seconds(0));
  haste.Add(0, 1'000'000);
  ASSERT_TRUE(haste.IsOn());
  options.haste = &haste;
  Learned learned;
  RunAsThreads(2, [&](Transport& transport) {
    Learned own = Learn(schedules, transport, options);
    if (transport.rank() == 0) learned = std::move(own);
  });
  ASSERT_EQ(learned.probes.size(), 3u);
  for (const ProbeTally& probe : learned.probes) {
    EXPECT_TRUE(probe.hurried);
    EXPECT_EQ(probe.kept + probe.disturbed + probe.other_state, 10u);
  }
}

TEST(LearningTest, StepSizesHaveBothSidesOfProtocolSwitches) {
  const std::vector<Bytes> sizes = ProbeStepSizes(Bytes(1 << 20));
  const auto has = [&](double bytes) {
    return std::find(sizes.begin(), sizes.end(), Bytes(bytes)) != sizes.end();
  };
  for (const double at : {4096.0, 8192.0, 65536.0}) {
    EXPECT_TRUE(has(at - 128) && has(at + 128)) << at;
  }
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
  EXPECT_EQ(sizes.front(), Bytes(64));
  EXPECT_EQ(sizes.back(), Bytes(1 << 20));
}

TEST(LearningTest, ProductsToMeasureAreWithinBoundsInAllModes) {
  const std::vector<Gemm> products = ProbeProducts(10, {.most = Flops(1e8)});
  EXPECT_EQ(products.size(), 30u);
  std::set<std::tuple<uint64_t, uint64_t, uint64_t>> shapes;
  for (const Gemm& gemm : products) {
    EXPECT_LE(FlopsOf(gemm).value(), 1e8);
    EXPECT_EQ(gemm.m % 8, 0u);
    shapes.insert({gemm.m, gemm.n, gemm.k});
  }
  EXPECT_EQ(shapes.size(), 10u);
}

TEST(LearningTest, ProbesAreValidSchedulesOfEverySize) {
  const std::vector<Bytes> steps = {Bytes(64), Bytes(4096)};
  const Schedule schedule = MakeCollectiveProbe(4, 2, steps, 1);
  CheckSchedule(schedule);
  // Four kinds at two sizes, each after a copy.
  EXPECT_EQ(schedule.roles[0].ops.size(), 16u);
  EXPECT_EQ(schedule.communicators[0].group_count(), 2u);
  CheckSchedule(MakeProductProbe(2, ProbeProducts(4, {.most = Flops(1e7)}), 1));
}

// Runs for real, on threads; times are not checked. A busy machine may leave no step undisturbed:
// then nothing is learned, and the test says so.
TEST(LearningTest, ACalibrationHasSamplesRejectionsMachineAndErrors) {
  std::vector<NamedSchedule> ladder = {
      {"collectives of 2", MakeCollectiveProbe(2, 2, ProbeStepSizes(Bytes(16384)), 1)}};
  std::vector<NamedSchedule> steps = {
      {"products", MakeProductProbe(2, ProbeProducts(4, {.most = Flops(1e6)}), 1)}};
  LearningOptions options;
  options.kept = 2;
  options.patience = Seconds(0.2);
  LearnedWorld world;
  RunAsThreads(2, [&](Transport& transport) {
    Learned first = Learn(ladder, transport, options);
    Learned second = Learn(steps, transport, options);
    if (transport.rank() == 0) world = {std::move(first), std::move(second)};
  });
  ASSERT_EQ(world.ladder.probes.size(), 1u);
  EXPECT_GT(world.ladder.probes[0].kept + world.ladder.probes[0].disturbed +
                world.ladder.probes[0].other_state,
            0u);
  if (world.steps.kernels.empty()) {
    EXPECT_THROW(MakeCalibration({world}, {"test", "", "", 0}), Error);
    GTEST_SKIP() << "other programs disturbed every step";
  }
  const auto json = ToJson(MakeCalibration({world}, {"test", "abc", "2026-11-20", 1}));
  EXPECT_EQ(json["schema"], "rehearse.calibration.v1");
  for (const char* key : {"tool", "commit", "date", "machine", "libraries", "environment",
                          "representative", "probes", "host_states"})
    EXPECT_TRUE(json["about"].contains(key)) << key;
  EXPECT_TRUE(json["about"]["probes"][0].contains("rejected_disturbed"));
  EXPECT_FALSE(json["samples"].empty());
  // What is written can be used.
  const Calibration read =
      ReadCalibration(JsonDocument::FromText(json.dump(), "calibration.json").Root());
  EXPECT_EQ(read.kernels->kernels.size(), 4u);  // copies, and products in three modes
}

// Ranks that are processes each say why they end, and the others do not know the steps.
TEST(LearningTest, AllRanksSayOfHowManyStepsNoneWasLeftAlone) {
  std::vector<pid_t> others;  // two for each core, which leave no step alone
  for (uint32_t i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      for (volatile uint64_t turns = 0;;) turns = turns + 1;
    others.push_back(child);
  }
  const std::vector<NamedSchedule> schedules = {
      {"products", MakeProductProbe(2, ProbeProducts(4, {.most = Flops(1e7)}), 1)}};
  LearningOptions options;
  options.kept = 2;
  options.patience = Seconds(0);
  options.hope = Seconds(0);
  std::vector<std::string> said(2);
  RunAsThreads(2, [&](Transport& transport) {
    try {
      Learn(schedules, transport, options);
    } catch (const Error& error) {
      said[transport.rank()] = error.what();
    }
  });
  for (const pid_t child : others) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  if (said[0].empty()) GTEST_SKIP() << "a step was left alone all the same";
  EXPECT_EQ(said[0].find("none of 2 steps"), 0u) << said[0];
  EXPECT_EQ(said[1], said[0]);
}

TEST(LearningTest, AStopEndsItOnAllRanks) {
  const std::vector<NamedSchedule> schedules(
      3, {"products", MakeProductProbe(2, ProbeProducts(1, {.most = Flops(1e5)}), 1)});
  uint32_t measured = 0;
  LearningOptions options;
  options.kept = 1;
  options.patience = Seconds(0);
  options.progress = [&](const std::string&) { ++measured; };
  options.is_stopped = [&] { return measured == 2; };
  const auto learn = [&](Transport& transport) { Learn(schedules, transport, options); };
  EXPECT_THROW(RunAsThreads(2, learn), Stopped);
  EXPECT_EQ(measured, 2u);
}

}  // namespace learning_test
}  // namespace rehearse
