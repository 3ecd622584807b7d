// Logs of nccl-tests as its versions, launchers and NCCL's own lines make them, with made-up
// figures.
#include "tools/foreign/logs/nccl_tests/nccl_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace nccl_log_test {

using enum CollectiveKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NcclLog Log(const std::string& text, std::optional<CollectiveKind> kind = std::nullopt,
            std::optional<uint32_t> ranks = std::nullopt) {
  return ReadNcclLog(text, "nccl.log", kind, ranks);
}

NcclTable Only(const std::string& text) {
  const NcclLog log = Log(text);
  EXPECT_EQ(log.tables.size(), 1u);
  EXPECT_THAT(log.remarks, IsEmpty());
  return log.tables.front();
}

std::string MistakeIn(const std::string& text, std::optional<CollectiveKind> kind = std::nullopt) {
  try {
    Log(text, kind);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The heading since 2.9, with the two lines around it.
const std::string kHeading =
    "#                                          out-of-place                in-place\n"
    "#   size   count   type  redop  root   time  algbw  busbw #wrong   time  algbw  busbw #wrong\n"
    "#    (B) (elements)                    (us) (GB/s) (GB/s)          (us) (GB/s) (GB/s)\n";

// With 8 ranks, 1 MiB is 262,144 floats, and 32,768 per rank.
const std::string kWhole = "  1048576  262144 float ";
const std::string kPart = "  1048576   32768 float ";
const std::string kFigures = " 50.0 20.97 36.70 0  51.0 20.56 35.98 0\n";
const std::string kOnlyOutOfPlace = " 50.0 20.97 36.70 0  51.0 20.56 35.98 N/A\n";
const std::string kUnchecked = " 50.0 20.97 36.70 N/A  51.0 20.56 35.98 N/A\n";

std::optional<CollectiveKind> KindOf(const std::string& row) { return Only(kHeading + row).kind; }

TEST(NcclKindTest, FollowsFromCountTypeAndSize) {
  EXPECT_EQ(KindOf(kWhole + "sum -1" + kFigures), kAllReduce);
  EXPECT_EQ(KindOf(kPart + "sum -1" + kFigures), kReduceScatter);
  EXPECT_EQ(KindOf(kWhole + "max 0" + kFigures), kReduce);
  EXPECT_EQ(KindOf(kWhole + "none 0" + kFigures), kBroadcast);
  EXPECT_EQ(KindOf(kWhole + "none -1" + kOnlyOutOfPlace), kSendReceive);
  // In halves, the same size is 524,288, and an eighth of it 65,536.
  EXPECT_EQ(KindOf("  1048576 524288 half prod -1" + kFigures), kAllReduce);
  EXPECT_EQ(KindOf("  1048576 65536 half avg -1" + kFigures), kReduceScatter);
  EXPECT_EQ(KindOf("  1048576 131072 f8e4m3 sum -1" + kFigures), kReduceScatter);
}

// In-place results of all-to-all cannot be checked, those of all-gather are.
TEST(NcclKindTest, WhatIsCheckedTellsAllGatherFromAllToAll) {
  EXPECT_EQ(KindOf(kPart + "none -1" + kFigures), kAllGather);
  EXPECT_EQ(KindOf(kPart + "none -1" + kOnlyOutOfPlace), kAllToAll);
  const NcclTable unchecked = Only(kHeading + kPart + "none -1" + kUnchecked);
  EXPECT_EQ(unchecked.kind, std::nullopt);
  EXPECT_THAT(unchecked.why_no_kind, HasSubstr("all-gather and all-to-all look alike"));
}

// Before 2.9 each program had the columns that it needed, and all-to-all left redop blank.
TEST(NcclKindTest, OldProgramsAreToldByTheirColumns) {
  const std::string figures = " time algbw busbw error time algbw busbw error\n";
  const auto kind = [&](const std::string& names, const std::string& cells) {
    return Only("# size count type" + names + figures + cells +
                " 50.0 20.97 36.70 0e+00 51.0 20.56 35.98 1e+00\n")
        .kind;
  };
  EXPECT_EQ(kind(" redop", kWhole + "sum"), kAllReduce);
  EXPECT_EQ(kind(" redop", kPart + "sum"), kReduceScatter);
  EXPECT_EQ(kind(" redop root", kWhole + "sum 0"), kReduce);
  EXPECT_EQ(kind(" root", kWhole + "0"), kBroadcast);
  EXPECT_EQ(kind("", kPart), kAllGather);
  EXPECT_EQ(kind(" redop", kPart), kAllToAll);
  EXPECT_EQ(kind(" redop", kWhole), kSendReceive);
}

TEST(NcclKindTest, AShareThatIsNotOfARankTellsNothing) {
  const std::string ranks =
      "#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] X\n"
      "#  Rank  3 Group  0 Pid 4 on a device  3 [0x0b] X\n";
  EXPECT_EQ(Only(ranks + kHeading + kWhole + "sum -1" + kFigures).ranks, 4u);
  const NcclTable table = Only(ranks + kHeading + kPart + "sum -1" + kFigures);
  EXPECT_EQ(table.kind, std::nullopt);
  EXPECT_EQ(table.why_no_kind, "a size is 8 times its count, but 4 ranks take part");
  // Counts of two rows that contradict each other.
  EXPECT_EQ(Only(kHeading + kPart + "sum -1" + kFigures + kWhole + "sum -1" + kFigures).kind,
            std::nullopt);
}

TEST(NcclKindTest, APartOfTheSizeTellsTheRanks) {
  EXPECT_EQ(Only(kHeading + kPart + "sum -1" + kFigures).ranks, 8u);
  EXPECT_EQ(Only("# Collective test starting: all_gather_perf\n" + kHeading + kPart + "none -1" +
                 kUnchecked)
                .ranks,
            8u);
  EXPECT_EQ(Only(kHeading + kWhole + "sum -1" + kFigures).ranks, std::nullopt);
}

TEST(NcclUnitTest, SizesHaveUnitsAndTimesThoseOfTheirColumn) {
  const NcclTable table = Only(
      "#  size  count  type  redop  root  time  algbw  busbw #wrong\n"
      "#   (B) (elements)                 (ms) (GB/s) (GB/s)\n"
      "   512K  131072 float sum -1  0.25  2.10  3.67 0\n"
      "     1M  262144 float sum -1  0.50  2.10  3.67 0\n"
      "   1.5G  402653184 float sum -1  250.0  6.44  11.27 0\n");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].bytes, Bytes(524288));
  EXPECT_EQ(table.rows[1].bytes, Bytes(1048576));
  EXPECT_EQ(table.rows[2].bytes, Bytes(1610612736));
  EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 0.25e-3);
  EXPECT_DOUBLE_EQ(table.rows[2].time.value(), 0.25);
  EXPECT_EQ(table.kind, kAllReduce);
}

TEST(NcclUnitTest, NamesMayHoldTheUnits) {
  const NcclTable table = Only("Size (MB),Time (ms),algbw (MB/s)\n2,0.5,4194.3\n");
  EXPECT_EQ(table.rows[0].bytes, Bytes(2 << 20));
  EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 0.5e-3);
  EXPECT_DOUBLE_EQ(Only("size_KiB,time_s\n64,0.25\n").rows[0].time.value(), 0.25);
  // 1 MiB at 80 Gb/s: 2^20 / 1e10 s.
  EXPECT_NEAR(Only("size,algbw_Gbps\n1M,80\n").rows[0].time.value(), 1048576 / 1e10, 1e-12);
}

// 1 MiB in 0.0625 at 16.78 GB/s: 1048576 / 16.78e9 = 62.5 us, so the unit was ms.
TEST(NcclUnitTest, AUnitOfTimeThatIsNotNamedFollowsFromTheBandwidth) {
  EXPECT_DOUBLE_EQ(
      Only("size,time,algbw\n8,0.02,0.00\n1048576,0.0625,16.78\n").rows[1].time.value(), 62.5e-6);
  EXPECT_DOUBLE_EQ(Only("size,time,algbw\n1048576,62.5,16.78\n").rows[0].time.value(), 62.5e-6);
  EXPECT_DOUBLE_EQ(Only("size,time\n1048576,62.5\n").rows[0].time.value(), 62.5e-6);
}

TEST(NcclUnitTest, HeadingsWithoutASignAndUnitsBetweenCommasAreRead) {
  const NcclTable plain = Only(
      "    size(B)  count(elems)   type   time(us)   algbw(GB/s)  busbw(GB/s)\n"
      "    1048576        524288   bf16        100         10.49        18.35\n"
      "Avg bus bandwidth: 18.35GB/s\n");
  EXPECT_DOUBLE_EQ(plain.rows[0].time.value(), 100e-6);
  const NcclTable commas = Only(
      ",,,,,out-of-place,,,,in-place,,,\n"
      "size,count,type,redop,root,time,algbw,busbw,#wrong,time,algbw,busbw,#wrong\n"
      "(B),(elements),,,,(us),(GB/s),(GB/s),,(us),(GB/s),(GB/s),\n"
      "1048576,262144,float,sum,-1,50.0,20.97,36.70,0,51.0,20.56,35.98,0\n");
  EXPECT_EQ(commas.kind, kAllReduce);
  EXPECT_DOUBLE_EQ(commas.rows[0].time.value(), 50e-6);
}

TEST(NcclLinesTest, LaunchersMarkLines) {
  for (const std::string mark :
       {"[1,0]<stdout>:", "[0] ", "0: ", "[pod/launcher-x/main] ", "2024-05-01T12:34:56.789Z ",
        "2024-05-01 12:34:56,789 ", "2024-05-01T12:34:56.7+02:00 stdout F ",
        "[2024-05-01 12:34:56] ", "12:34:56.789 [1,0]<stdout>: ", "May  1 12:34:56 ",
        "node-01: ", "worker-0  | ", "(worker pid=77) ", "\x1b[32m", "[1;32m",
        "\x1b[36m[pod/a/b]\x1b[0m 2024-05-01T12:34:56Z [0]: "}) {
    std::string text;
    for (const std::string line :
         {"#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] X", "#  Rank  1 Group  0 Pid 2 on a X",
          "#  size  count  type  redop  root  time  algbw  busbw #wrong",
          "#   (B) (elements)                 (us) (GB/s) (GB/s)",
          "   1048576  262144 float sum -1  50.0 20.97 20.97 0"})
      text += mark + line + (mark.find('m') != std::string::npos ? "\x1b[0m\n" : "\n");
    ASSERT_TRUE(LooksLikeNcclLog(text)) << mark;
    const NcclTable table = Only(text);
    EXPECT_EQ(table.kind, kAllReduce) << mark;
    EXPECT_EQ(table.ranks, 2u) << mark;
    EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 50e-6) << mark;
  }
}

// With NCCL_DEBUG=INFO: the program prints a row piece by piece, and NCCL in between.
TEST(NcclLinesTest, NcclsOwnLinesCutRows) {
  const NcclTable table =
      Only(kHeading +
           "     8192   2048 float  sum  -1node0:11:12 [0] NCCL INFO 8192 Bytes -> Algo 1 proto 0\n"
           "node0:11:12 [0] NCCL INFO AllReduce: opCount 3 count 2048\n"
           "  24.50  0.33  0.59      0node0:11:12 [0] NCCL INFO AllReduce: opCount 4\n"
           "  23.10  0.35  0.62      0\n"
           "    16384   4096 float  sum  -1  26.00  0.63  1.10  0  25.00  0.66  1.15  0\n"
           "    32768   8192 float  sum  -1[1,0]<stdout>:node0:11:12 [0] NCCL INFO Algo 1\n"
           "[1,0]<stdout>:  28.00  1.17  2.05  0  27.00  1.21  2.12  0\n");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 24.5e-6);
  EXPECT_DOUBLE_EQ(table.rows[1].time.value(), 26e-6);
  EXPECT_EQ(table.rows[2].bytes, Bytes(32768));
  EXPECT_DOUBLE_EQ(table.rows[2].time.value(), 28e-6);
  EXPECT_EQ(table.kind, kAllReduce);
}

TEST(NcclLinesTest, ARowThatBreaksOffIsLeftOutAndSaid) {
  const NcclLog log = Log(kHeading + kWhole + "sum -1" + kFigures +
                          "  2097152  524288 float sum -1node0:11:12 [0] NCCL WARN peer is gone\n");
  EXPECT_EQ(log.tables.front().rows.size(), 1u);
  EXPECT_THAT(log.remarks,
              ElementsAre("nccl.log:5: the row breaks off after 5 of 13 columns and is left out"));
}

TEST(NcclLinesTest, OneOfTheTwoResultsMayBeMissing) {
  const NcclTable table = Only(kHeading + kWhole + "sum -1  51.0 20.56 35.98 0\n");
  EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 51e-6);
}

TEST(NcclLinesTest, TimestampsAndDistributionsStandBehind) {
  const NcclTable table = Only(
      "#  size  count  type  redop  root  time  algbw  busbw #wrong  i_min i_max "
      "time  algbw  busbw #wrong  i_min i_max timestamp\n"
      "   1048576 262144 float sum -1  50.0 20.97 36.70 0 49.0 52.0 51.0 20.56 35.98 0 50.0 53.0 "
      "2026-01-02 03:04:05\n");
  EXPECT_DOUBLE_EQ(table.rows[0].time.value(), 50e-6);
}

TEST(NcclLinesTest, TimesOfTheProcessorAreRemarkedOn) {
  const NcclLog log =
      Log("#  size  count  type  redop  root  cputime  algbw  busbw #wrong\n"
          "   1048576 262144 float sum -1  50.0 20.97 36.70 0\n");
  EXPECT_THAT(log.remarks, ElementsAre(HasSubstr("cputime")));
}

// ---- Several tables -----------------------------------------------------------------------------

const std::string kTwoPrograms =
    "+ mpirun -n 8 build/all_reduce_perf -b 1M -e 2M -f 2\n"
    "#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] X\n"
    "#  Rank  7 Group  0 Pid 8 on a device  7 [0x0f] X\n" +
    kHeading + kWhole + "sum -1" + kFigures + "  2097152  524288 float sum -1" + kFigures +
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 36.3\n"
    "# Collective test concluded: all_reduce_perf\n"
    "+ mpirun -n 4 build/all_gather_perf -b 1M\n"
    "#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] X\n"
    "#  Rank  3 Group  0 Pid 4 on a device  3 [0x0b] X\n" +
    kHeading + "  1048576 65536 float none -1 " + kUnchecked;

TEST(NcclTablesTest, EachProgramHasItsOwn) {
  const NcclLog log = Log(kTwoPrograms);
  ASSERT_EQ(log.tables.size(), 2u);
  EXPECT_EQ(log.tables[0].kind, kAllReduce);
  EXPECT_EQ(log.tables[0].ranks, 8u);
  EXPECT_EQ(log.tables[0].rows.size(), 2u);
  EXPECT_EQ(log.tables[1].kind, kAllGather);
  EXPECT_EQ(log.tables[1].ranks, 4u);
  EXPECT_EQ(log.tables[1].line, 16);
}

TEST(NcclTablesTest, TheUsersKindChoosesAmongThem) {
  const NcclLog log = Log(kTwoPrograms, kAllGather);
  ASSERT_EQ(log.tables.size(), 1u);
  EXPECT_EQ(log.tables[0].ranks, 4u);
  EXPECT_THAT(log.remarks, ElementsAre(HasSubstr("found all-reduce, expected all-gather")));
  EXPECT_THAT(MistakeIn(kTwoPrograms, kBroadcast), HasSubstr("found no table of broadcast"));
}

TEST(NcclTablesTest, WhatIsNotSimulatedIsLeftOut) {
  const std::string gather =
      "# Collective test starting: gather_perf\n" + kHeading + kPart + "none 0" + kFigures;
  const NcclLog log = Log(gather + kTwoPrograms);
  EXPECT_EQ(log.tables.size(), 2u);
  EXPECT_THAT(log.remarks, ElementsAre(HasSubstr("gather_perf is not simulated")));
  EXPECT_THAT(MistakeIn(gather),
              HasSubstr("gather_perf is not simulated, and there is no other table"));
  // Without the program's name, the columns tell.
  EXPECT_THAT(Log(kHeading + kPart + "none 0" + kFigures + kTwoPrograms).remarks,
              ElementsAre(HasSubstr("gather and scatter are not simulated")));
}

TEST(NcclTablesTest, GroupsThatRanAtTheSameTimeAreListed) {
  std::string ranks;
  for (const char* rank : {"0 Group  0", "1 Group  1", "2 Group  0", "3 Group  1"})
    ranks += std::string("#  Rank  ") + rank + " Pid 1 on a device  0 [0x07] X\n";
  const NcclTable table = Only(ranks + kHeading + kWhole + "sum -1" + kFigures);
  EXPECT_EQ(table.ranks, 2u);
  EXPECT_THAT(table.groups, ElementsAre(ElementsAre(0u, 2u), ElementsAre(1u, 3u)));
}

}  // namespace nccl_log_test
}  // namespace rehearse
