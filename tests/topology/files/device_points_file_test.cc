#include "topology/files/device_points_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/devices/device.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace device_points_file_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

DevicePointsFile ReadText(const std::string& text) {
  return ReadDevicePoints(ParseCsvFile(text, "mine.csv"));
}

std::string MistakeIn(const std::string& text) {
  try {
    ApplyDevicePoints(*ReadClusterArgument("dgx-h100"), ReadText(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kHeader = "op,m,n,k,heads,head_dim,sequence,dtype,microseconds\n";

Compute Product(uint64_t m, uint64_t n, uint64_t k, GemmMode mode, uint32_t batch = 1) {
  Compute compute;
  compute.kind = ComputeKind::kGemm;
  compute.gemm = {m, n, k, mode, batch};
  compute.flops = FlopsOf(compute.gemm);
  compute.bytes = BytesOf(compute.gemm, compute.dtype);
  return compute;
}

TEST(DevicePointsTest, StandForExactlyTheirSizes) {
  const auto cluster =
      ApplyDevicePoints(*ReadClusterArgument("dgx-h100"),
                        ReadText(std::string(kHeader) + "gemm,4096,8192,8192,,,,bf16,812.5\n"));
  const DeviceSpec& device = cluster->DeviceOf(3);
  for (const GemmMode mode : {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN})
    EXPECT_EQ(ComputeTime(device, Product(4096, 8192, 8192, mode), false), Seconds(812.5 * 1e-6));
  const DeviceSpec& plain = FindDevice("h100");
  for (const Compute& other :
       {Product(4096, 8192, 8191, GemmMode::kNT), Product(4096, 8192, 8192, GemmMode::kNT, 2)})
    EXPECT_EQ(ComputeTime(device, other, false), ComputeTime(plain, other, false));
}

TEST(DevicePointsTest, AModesOwnTimeComesFirst) {
  const auto cluster = ApplyDevicePoints(
      *ReadClusterArgument("dgx-h100"),
      ReadText("op,mode,m,n,k,dtype,microseconds\n"
               "gemm,,4096,8192,8192,bf16,812.5\ngemm,TN,4096,8192,8192,bf16,900\n"));
  const DeviceSpec& device = cluster->DeviceOf(0);
  EXPECT_EQ(ComputeTime(device, Product(4096, 8192, 8192, GemmMode::kTN), false),
            Seconds(900 * 1e-6));
  EXPECT_EQ(ComputeTime(device, Product(4096, 8192, 8192, GemmMode::kNN), false),
            Seconds(812.5 * 1e-6));
}

TEST(DevicePointsTest, AttentionHasItsHeadsAndSequences) {
  const auto cluster = ApplyDevicePoints(
      *ReadClusterArgument("dgx-h100"),
      ReadText("op,heads,head_dim,sequence,batch,dtype,microseconds\n"
               "attention,32,128,4096,2,bf16,700\nattention-backward,32,128,4096,2,bf16,1800\n"));
  // 4·s²·d flops per head and sequence, half of that with a mask; 2.5 times as many backward.
  Compute core;
  core.kind = ComputeKind::kAttention;
  core.attributes = {4096, 32, 1, 128, 1};
  core.flops = Flops(2.0 * 64 * 4096 * 4096 * 128);
  const DeviceSpec& device = cluster->DeviceOf(0);
  EXPECT_EQ(ComputeTime(device, core, false), Seconds(700 * 1e-6));
  core.flops *= 2.5;
  EXPECT_EQ(ComputeTime(device, core, true), Seconds(1800 * 1e-6));
  core.attributes[4] = 0;  // no mask: another op
  EXPECT_NE(ComputeTime(device, core, true), Seconds(1800 * 1e-6));
}

TEST(DevicePointsTest, AreWrittenAndReadBack) {
  const std::string text =
      "op,mode,m,n,k,heads,head_dim,sequence,batch,causal,dtype,microseconds\n"
      "gemm,NT,4096,8192,8192,,,,1,,bf16,812.5\n"
      "attention,,,,,32,128,4096,2,0,bf16,1400.25\n";
  EXPECT_EQ(ToCsv(ReadText(text).points), text);
}

TEST(DevicePointsTest, EveryColumnIsDescribed) {
  for (const char* column : {"op", "dtype", "microseconds", "m, n, k", "mode", "heads, head_dim",
                             "sequence", "causal", "batch", "count"})
    EXPECT_THAT(DescribePointColumns(), HasSubstr(std::string("\n  ") + column + " "));
  EXPECT_EQ(ReadText("op,m,n,k,dtype,microseconds,count\ngemm,64,64,64,bf16,5,many\n")
                .points.times.size(),
            1u);
}

TEST(DevicePointsTest, MistakesSayFileAndLine) {
  const auto row = [](const std::string& text) {
    return MistakeIn(std::string(kHeader) + text + "\n");
  };
  EXPECT_EQ(row("gemm,4096,8192,8192,,,,bf16,812.5"), "no error");
  EXPECT_THAT(row("gem,4096,8192,8192,,,,bf16,812.5"),
              AllOf(HasSubstr("mine.csv:2: "), HasSubstr("did you mean \"gemm\"?")));
  EXPECT_THAT(row("gemm,4096,8192,8192,,,,bf17,812.5"), HasSubstr("did you mean \"bf16\"?"));
  EXPECT_THAT(row("gemm,4096,8192,,,,,bf16,812.5"), HasSubstr("mine.csv:2: k: found \"\""));
  EXPECT_THAT(row("gemm,4096,8192,8192,8,,,bf16,812.5"), HasSubstr("as gemm has none"));
  EXPECT_THAT(row("gemm,4096,8192,8192,,,,bf16,-812.5"), HasSubstr("microseconds above 0"));
  EXPECT_THAT(row("gemm,4096,8192,8192,,,,bf16,812us"), HasSubstr("without a unit"));
  EXPECT_THAT(row("gemm,4096,8192,8192,,,,bf16,812.5\n\ngemm,4096,8192,8192,,,,bf16,900"),
              AllOf(HasSubstr("mine.csv:4: "), HasSubstr("in line 2")));
  EXPECT_THAT(MistakeIn("op,m,n,k,dtype,milliseconds\ngemm,1,1,1,bf16,1\n"),
              AllOf(HasSubstr("mine.csv:1: "), HasSubstr("did you mean \"microseconds\"?")));
  EXPECT_THAT(MistakeIn("op,m,n,k,dtype,microseconds\n"), HasSubstr("no points"));
}

TEST(DevicePointsTest, TimesInAnotherUnitAreNoticed) {
  // 2·4096·8192² = 550 GFLOP take 0.56 ms at the peak.
  const auto row = [](const std::string& time) {
    return MistakeIn(std::string(kHeader) + "gemm,4096,8192,8192,,,,bf16," + time + "\n");
  };
  EXPECT_THAT(row("0.8125"), AllOf(HasSubstr("mine.csv:2: "), HasSubstr("times its peak")));
  EXPECT_THAT(row("812500"), AllOf(HasSubstr("mine.csv:2: "), HasSubstr("the model of device")));
}

// The model judges, and not what an earlier file said.
TEST(DevicePointsTest, TimesAreJudgedWithoutEarlierPoints) {
  const auto read = [](const std::string& time) {
    return ReadText(std::string(kHeader) + "gemm,4096,8192,8192,,,,bf16," + time + "\n");
  };
  const auto slow = ApplyDevicePoints(*ReadClusterArgument("dgx-h100"), read("100000"));
  EXPECT_THROW(ApplyDevicePoints(*slow, read("10000000")), Error);
}

}  // namespace device_points_file_test
}  // namespace rehearse
