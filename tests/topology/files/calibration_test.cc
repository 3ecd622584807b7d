#include "topology/files/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace calibration_test {

using ::testing::HasSubstr;

Calibration ReadText(const std::string& text) {
  return ReadCalibration(JsonDocument::FromText(text, "mine.json").Root());
}

std::string MistakeOf(const std::string& text) {
  try {
    const auto cluster = ReadClusterArgument("dgx-a100");
    ApplyCalibration(*cluster, ReadText(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kText = R"({
  "schema": "rehearse.calibration.v1",
  "links": [{"kind": "nvlink", "bandwidth": "300GBps", "efficiency": 0.5}],
  "collective_overhead": "20us" })";

TEST(CalibrationTest, ChangesTheLinksItNamesAndNoOthers) {
  const auto before = ReadClusterArgument("dgx-a100");
  const auto after = ApplyCalibration(*before, ReadText(kText));
  EXPECT_EQ(after->wiring(), before->wiring());
  EXPECT_EQ(after->collective_overhead(), Seconds(20e-6));
  EXPECT_EQ(before->collective_overhead(), Seconds(0));
  uint32_t changed = 0;
  for (uint32_t i = 0; i < before->link_count(); ++i) {
    if (before->Link(i).kind == LinkKind::kNvLink) {
      EXPECT_EQ(after->Link(i).efficiency, 0.5);
      ++changed;
    } else {
      EXPECT_EQ(after->Link(i).efficiency, before->Link(i).efficiency);
    }
  }
  EXPECT_EQ(changed, 16u);  // 8 devices, both ways
}

TEST(CalibrationTest, IsWrittenAndReadBack) {
  Calibration calibration;
  calibration.cluster = "dgx-a100";
  calibration.links = {{LinkKind::kNetwork, BytesPerSecond(25e9), 0.8125, {}}};
  calibration.collective_overhead = Seconds(26.81e-6);
  calibration.channel_overhead = Seconds(1.34e-6);
  calibration.fit = {{"samples", 3}};
  const Calibration again = ReadText(ToJson(calibration).dump());
  EXPECT_EQ(again.cluster, "dgx-a100");
  ASSERT_EQ(again.links.size(), 1u);
  EXPECT_EQ(again.links[0].kind, LinkKind::kNetwork);
  EXPECT_EQ(again.links[0].bandwidth, BytesPerSecond(25e9));
  EXPECT_EQ(again.links[0].efficiency, 0.8125);
  EXPECT_EQ(again.collective_overhead, Seconds(26.81e-6));
  EXPECT_EQ(again.channel_overhead, Seconds(1.34e-6));
  EXPECT_EQ(again.fit, calibration.fit);
}

TEST(CalibrationTest, WhatAGpuTakesBesideCommunicationIsWrittenAndReadBack) {
  Calibration calibration;
  calibration.launch_overhead = Seconds(2.25e-6);
  calibration.slowdown = Slowdown{.gemm = 0.125, .memory = 0.5, .waves = Waves{132, 24, 128, 256}};
  const Calibration again = ReadText(ToJson(calibration).dump());
  EXPECT_EQ(again.launch_overhead, calibration.launch_overhead);
  EXPECT_EQ(again.slowdown, calibration.slowdown);
  const auto cluster = ApplyCalibration(*ReadClusterArgument("dgx-a100"), again);
  EXPECT_EQ(cluster->DeviceOf(0).launch_overhead, Seconds(2.25e-6));
  EXPECT_EQ(cluster->DeviceOf(7).slowdown, *calibration.slowdown);
  EXPECT_THAT(MistakeOf(R"({"schema": "rehearse.calibration.v1", "slowdown": {"waves":
                {"multiprocessors": 8, "taken": 8, "tile": [128, 128]}}})"),
              HasSubstr("fewer than 8"));
}

TEST(CalibrationTest, IsPartOfAClusterFile) {
  const std::string cluster = std::string(R"({"preset": "dgx-a100", "calibration": )") + kText +
                              R"(, "edits": [{"links": "node0/gpu0", "bandwidth": "0.5x"}]})";
  const auto document = JsonDocument::FromText(cluster, "cluster.json");
  const auto read = ReadCluster(document.Root());
  EXPECT_EQ(read->collective_overhead(), Seconds(20e-6));
  EXPECT_EQ(read->Link(0).efficiency, 0.5);
}

TEST(CalibrationTest, MistakesSayWhere) {
  const auto with = [](const std::string& links) {
    return R"({"schema": "rehearse.calibration.v1", "links": [)" + links + "]}";
  };
  EXPECT_THAT(MistakeOf("{}"), HasSubstr("schema"));
  EXPECT_THAT(MistakeOf(R"({"schema": "rehearse.calibration.v2"})"), HasSubstr("v1"));
  EXPECT_THAT(MistakeOf(with("")), HasSubstr("changes nothing"));
  EXPECT_THAT(MistakeOf(with(R"({"kind": "nvlnk", "bandwidth": "1GBps", "efficiency": 1})")),
              HasSubstr("nvlink"));
  EXPECT_THAT(MistakeOf(with(R"({"kind": "nvlink", "bandwidth": "1GBps", "efficiency": 1.5})")),
              HasSubstr("/links/0/efficiency"));
  EXPECT_THAT(MistakeOf(with(R"({"kind": "nvlink", "bandwidth": "1GBps", "efficiency": 0})")),
              HasSubstr("above 0"));
  EXPECT_THAT(MistakeOf(with(R"({"kind": "nvlink", "bandwidth": "25GBps", "efficiency": 1})")),
              HasSubstr("has no nvlink link of 25 GB/s"));
  EXPECT_THAT(MistakeOf(R"({"schema": "rehearse.calibration.v1", "collective_overhead": "200s"})"),
              HasSubstr("/collective_overhead"));
}

}  // namespace calibration_test
}  // namespace rehearse
