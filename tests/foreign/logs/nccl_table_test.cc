#include "real/calibration/nccl_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "collectives/algorithms/ring.h"
#include "sim/base/error.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"

namespace rehearse {
namespace nccl_table_test {

using enum CollectiveKind;
using ::testing::HasSubstr;

NcclTable Read(const std::string& text, std::optional<CollectiveKind> kind = std::nullopt,
               std::optional<uint32_t> ranks = std::nullopt) {
  const NcclLog log = ReadNcclLog(text, "nccl.log", kind, ranks);
  EXPECT_EQ(log.tables.size(), 1u);
  return log.tables.front();
}

std::string MistakeOf(const std::string& text, std::optional<CollectiveKind> kind = std::nullopt,
                      std::optional<uint32_t> ranks = std::nullopt) {
  try {
    Read(text, kind, ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// As nccl-tests 2.13 prints it under mpirun, with other output of the job.
constexpr const char* kLog = R"(Warning: Permanently added 'node1' to the list of known hosts.
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
# Collective test starting: all_gather_perf
#
# Using devices
#  Rank  0 Group  0 Pid   1234 on      node0 device  0 [0x07] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid   1234 on      node0 device  1 [0x0f] NVIDIA A100-SXM4-40GB
NCCL version 2.18.3+cuda12.2
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        131072     float    none      -1    44.21   23.72   11.86      0    45.10   23.25   11.62      0
node0: some warning in between
     2097152        262144     float    none      -1    1234.5   1.70   0.85    N/A    51.13   41.01   20.50    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 6.355
#
)";

TEST(NcclTableTest, ALogSaysItsKindItsRanksAndItsTimes) {
  const NcclTable table = Read(kLog);
  EXPECT_EQ(table.kind, kAllGather);
  EXPECT_EQ(table.ranks, 2u);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].bytes, Bytes(1048576));
  EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 44.21e-6);  // out of place
  EXPECT_DOUBLE_EQ(table.rows[1].time.value(), 1234.5e-6);
}

TEST(NcclTableTest, WhatTheUserSaysOverridesTheLog) {
  const NcclTable table = Read(kLog, kReduceScatter, 16);
  EXPECT_EQ(table.kind, kReduceScatter);
  EXPECT_EQ(table.ranks, 16u);
}

// Versions before 2.9 have "error" for "#wrong" and no root.
TEST(NcclTableTest, ColumnsAreFoundByTheirNames) {
  const NcclTable table = Read(
      "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n"
      "#   (B)  (elements)          (us)  (GB/s) (GB/s)        (us)  (GB/s) (GB/s)\n"
      "   1024    256  float  sum   20.5   0.05   0.09  1e-07  19.0   0.05   0.09  1e-07\n",
      kAllReduce, 8);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 20.5e-6);
}

TEST(NcclTableTest, TablesWithCommasNameTheirUnits) {
  const NcclTable nanoseconds = Read(
      "size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)\n"
      "1048576,262144,float,44210,23.72,45100,23.25\n");
  ASSERT_EQ(nanoseconds.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(nanoseconds.rows[0].time.value(), 44.21e-6);
  EXPECT_EQ(nanoseconds.kind, std::nullopt);
  EXPECT_DOUBLE_EQ(Read("size_B,time_us_oop\n8,34.66\n").rows[0].time.value(), 34.66e-6);
}

// 32 KiB at an algbw of 0.82 GB/s; or at a busbw of 1.435, which is 14/8 of it on 8 ranks.
TEST(NcclTableTest, BandwidthsStandForTimes) {
  const double seconds = 32768 / 0.82e9;
  EXPECT_NEAR(Read("size_B,busbw,algbw\n32768,1.44,0.82\n").rows[0].time.value(), seconds, 1e-15);
  EXPECT_NEAR(Read("size_B,busbw\n32768,1.435\n", kAllReduce, 8).rows[0].time.value(), seconds,
              1e-15);
  EXPECT_THAT(MistakeOf("size_B,busbw\n32768,1.435\n"), HasSubstr("nccl.log:2"));
}

TEST(NcclTableTest, MistakesNameTheLine) {
  EXPECT_THAT(MistakeOf(""), HasSubstr("no line names the columns"));
  EXPECT_THAT(MistakeOf("hello\n"), HasSubstr("nccl.log"));
  EXPECT_THAT(MistakeOf("size_B,time_us\n"), HasSubstr("no row"));
  EXPECT_THAT(MistakeOf("size_B,time_us\n8,x\n"), HasSubstr("nccl.log:2: found \"x\""));
  EXPECT_THAT(MistakeOf("size_B,time_us\n8,-3\n"), HasSubstr("-3"));
  EXPECT_THAT(MistakeOf("size_B,time_us\n-8,3\n"), HasSubstr("size in bytes"));
  EXPECT_THAT(MistakeOf("size_B,time_us\n8.5,3\n"), HasSubstr("8.5"));
  EXPECT_THAT(MistakeOf("size_B,time_us\n9223372036854775808,3\n"),
              HasSubstr("9223372036854775808"));
  EXPECT_THAT(MistakeOf("size_B,time_us\n8,nan\n"), HasSubstr("nan"));
  EXPECT_THAT(MistakeOf("size_B,time_us\n8,0\n"), HasSubstr("above 0"));
  EXPECT_THAT(MistakeOf("size_B,time_us\n8,3,4\n"), HasSubstr("3 columns, expected 2"));
  EXPECT_THAT(MistakeOf("#  size  count  time\n  8  2\n"), HasSubstr("2 columns, expected 3"));
}

// What we write can be read by any reader of nccl-tests' tables, and by us: times to the printed
// digits.
RC_GTEST_PROP(NcclTableProperty, WrittenTablesAreReadBack, ()) {
  constexpr CollectiveKind kKinds[] = {kAllReduce, kAllGather, kReduceScatter, kAllToAll,
                                       kBroadcast, kReduce,    kSendReceive};
  NcclTable table;
  table.kind = *rc::gen::elementOf(std::vector(std::begin(kKinds), std::end(kKinds)));
  table.ranks = *rc::gen::inRange(2u, 5000u);
  const auto rows = *rc::gen::inRange<size_t>(1, 20);
  for (size_t i = 0; i < rows; ++i) {
    table.rows.push_back(
        {Bytes(static_cast<double>(*rc::gen::inRange<int64_t>(1, int64_t{1} << 50))),
         Seconds(*rc::gen::inRange(1, 1000000000) * 1e-8)});
  }
  const std::string text =
      WriteNcclTable(table, 0, {fmt::format("1 group of {} ranks", *table.ranks)});
  const NcclTable again = Read(text);
  RC_ASSERT(again.kind == table.kind);
  RC_ASSERT(again.ranks == table.ranks);
  RC_ASSERT(again.rows.size() == table.rows.size());
  for (size_t i = 0; i < rows; ++i) {
    RC_ASSERT(again.rows[i].bytes == table.rows[i].bytes);
    // Two decimals below 100 us, one below 10 ms, none above: half a unit of the last digit is at
    // most 0.5 us.
    const double microseconds = table.rows[i].time.value() * 1e6;
    const double half = microseconds < 100 ? 0.005 : microseconds < 10000 ? 0.05 : 0.5;
    RC_ASSERT(std::abs(again.rows[i].time.value() * 1e6 - microseconds) <= half * 1.001);
  }
}

// Without the name of the program, the columns that we write identify it, as nccl-tests' own do.
TEST(NcclTableTest, WhatWeWriteTellsItsKindByTheColumnsToo) {
  for (const CollectiveKind kind :
       {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kReduce, kSendReceive}) {
    std::string text = WriteNcclTable({kind, 8, {{Bytes(1048576), Seconds(20e-6)}}}, 0, {});
    text.erase(0, text.find('\n') + 1);
    EXPECT_EQ(Read(text).kind, kind) << Name(kind);
  }
}

// all_gather_perf counts what one rank gives, all_reduce_perf the whole buffer;
// broadcast has a root.
TEST(NcclTableTest, CountsAndRootsAreNcclTests) {
  const auto line = [](CollectiveKind kind) {
    const std::string text = WriteNcclTable({kind, 4, {{Bytes(1024), Seconds(20e-6)}}}, 2, {});
    const size_t begin = text.find("        1024");
    return text.substr(begin, 48);
  };
  EXPECT_EQ(line(kAllReduce), "        1024           256     float     sum    ");
  EXPECT_EQ(line(kAllGather), "        1024            64     float    none    ");
  EXPECT_THAT(WriteNcclTable({kBroadcast, 4, {{Bytes(1024), Seconds(20e-6)}}}, 2, {}),
              HasSubstr("float    none       2    20.00    0.05    0.05      0"));
}

}  // namespace nccl_table_test
}  // namespace rehearse
