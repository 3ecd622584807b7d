// Tables of Slurm's jobs, as Helios and Acme have them, with made-up jobs.
#include "tools/foreign/jobs/helios/cluster_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/jobs/imported_jobs.h"

namespace rehearse {
namespace cluster_log_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string kHelios =
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
    "queue\n";
const std::string kKalos =
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,"
    "start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n";

// A row of Helios in the night of 2020-05-01.
std::string Row(const std::string& job, const std::string& gpus, const std::string& state,
                const std::string& submitted, const std::string& started,
                const std::string& ended) {
  const auto date = [](const std::string& time) {
    return time.empty() || time == "nan" ? time : "2020-05-01 " + time;
  };
  return job + ",ua,vcb," + gpus + ",4,1," + state + "," + date(submitted) + "," + date(started) +
         "," + date(ended) + ",,0\n";
}

TEST(ClusterLogTest, JobsOfHeliosAreThoseOfItsRows) {
  const ImportedJobs imported = ImportedFrom(
      ReadHelios, kHelios + Row("7", "8", "COMPLETED", "01:00:00", "01:00:10", "01:01:10") +
                      Row("8", "1", "FAILED", "01:00:30", "01:00:30", "01:00:40"));
  EXPECT_THAT(LinesOf(imported),
              ElementsAre("7 at 0 on 8 for 60 by ua", "8 at 30 on 1 for 10 by ua"));
  EXPECT_THAT(imported.trace.notes, IsEmpty());
  EXPECT_EQ(imported.trace.name, "helios");
  EXPECT_EQ(imported.trace.source, "trace");
  // 8 * 60 + 10 = 490 s are 0.14 h.
  EXPECT_EQ(imported.what,
            "2 jobs in 30 s, on 1 to 8 GPUs, 50 % of them on one; median 60 s, 0 GPU hours");
}

TEST(ClusterLogTest, JobsComeInTheOrderOfTheirSubmissionAndEqualOnesAsInTheFile) {
  std::string text = kHelios;
  for (const char* job : {"d", "a", "c", "b"})
    text += Row(job, "1", "COMPLETED", "02:00:00", "02:00:00", "02:00:05");
  text += Row("first", "1", "COMPLETED", "01:59:59", "02:00:00", "02:00:05");
  EXPECT_THAT(LinesOf(ImportedFrom(ReadHelios, text)),
              ElementsAre(StartsWith("first at 0 "), StartsWith("d at 1 "), StartsWith("a at 1 "),
                          StartsWith("c at 1 "), StartsWith("b at 1 ")));
}

TEST(ClusterLogTest, WhatIsLeftOutIsCounted) {
  const ImportedJobs imported = ImportedFrom(
      ReadHelios, kHelios + Row("cpu", "0", "COMPLETED", "01:00:00", "01:00:00", "01:01:00") +
                      Row("early", "4", "CANCELLED", "01:00:01", "", "01:00:02") +
                      Row("late", "4", "RUNNING", "01:00:02", "01:00:02", "01:00:03") +
                      Row("open", "4", "NODE_FAIL", "01:00:02", "01:00:02", "nan") +
                      Row("short", "4", "FAILED", "01:00:03", "01:00:03", "01:00:03") +
                      Row("lost", "4", "FAILED", "", "01:00:03", "01:00:04") +
                      Row("odd", "4", "FAILED", "01:00:03", "01:00:04", "01:00:03") +
                      Row("kept", "2", "TIMEOUT", "01:00:04", "01:00:05", "01:00:06"));
  // Times count from the first job that is kept.
  EXPECT_THAT(LinesOf(imported), ElementsAre("kept at 0 on 2 for 1 by ua"));
  EXPECT_THAT(
      imported.trace.notes,
      ElementsAre("left out: 1 job without GPUs", "left out: 1 job without a time of submission",
                  "left out: 1 job that never started", "left out: 2 jobs whose end is missing",
                  "left out: 1 job that ran for no time",
                  "left out: 1 job with an end before the start"));
}

TEST(ClusterLogTest, TimesOfAcmeHaveZones) {
  const ImportedJobs imported = ImportedFrom(
      ReadAcme, kKalos +
                    "dlc1,u1,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:00+00:00,"
                    "2023-05-17 11:00:10+00:00,2023-05-17 11:00:20+00:00,,,20,10.0,1280.0\n"
                    "dlc2,u2,1,8.0,960,,,Other,COMPLETED,2023-05-17 19:01:00+08:00,"
                    "2023-05-17 19:01:00+08:00,2023-05-17 19:01:20+08:00,,,20,0,160.0\n");
  EXPECT_THAT(LinesOf(imported),
              ElementsAre("dlc1 at 0 on 64 for 10 by u1", "dlc2 at 60 on 8 for 20 by u2"));
  // dlc1 has 20 s, from submission to end.
  EXPECT_THAT(imported.trace.notes,
              ElementsAre(StartsWith("1 job with a \"duration\" that is not from start to end")));
  EXPECT_EQ(imported.trace.name, "acme");
}

TEST(ClusterLogTest, MistakesAreSaidWithTheirLine) {
  const std::string good = Row("7", "8", "COMPLETED", "01:00:00", "01:00:10", "01:01:10");
  EXPECT_EQ(MistakeOf(ReadHelios, kHelios + good + "8,ua\n"),
            "trace:3: found 2 cells, expected 12 as in the first line");
  EXPECT_EQ(MistakeOf(ReadHelios, kHelios + "\n" + Row("7", "many", "", "01:00:00", "", "")),
            "trace:3: gpu_num: found \"many\", expected a number from 0 to 1048576");
  EXPECT_EQ(MistakeOf(ReadHelios, kHelios + Row("7", "1.5", "", "01:00:00", "", "")),
            "trace:2: gpu_num: found \"1.5\", expected a whole number up to 1048576");
  EXPECT_EQ(MistakeOf(ReadHelios, kHelios + Row("7", "1", "", "25:00:00", "", "")),
            "trace:2: submit_time: found \"2020-05-01 25:00:00\", expected a date and time such as "
            "2020-06-09 18:41:01");
  EXPECT_EQ(MistakeOf(ReadHelios, kHelios + Row("7", "0", "", "01:00:00", "", "")),
            "trace: found no job that ran on GPUs, expected one or more; left out: 1 job without "
            "GPUs");
  EXPECT_EQ(MistakeOf(ReadHelios, kHelios),
            "trace: found no job that ran on GPUs, expected one or more");
}

// Nothing of another file is shown.
TEST(ClusterLogTest, OtherTextsAreRefusedByWhatWasExpected) {
  for (const char* text : {"", "\n", "secret", "secret,of,others\n1,2,3\n", "\x01\x02", "{}"}) {
    const std::string mistake = MistakeOf(ReadHelios, text);
    EXPECT_THAT(mistake, HasSubstr("expected the cluster_log.csv of Helios, whose first line names "
                                   "its columns: job_id, gpu_num, state, submit_time"))
        << text;
    EXPECT_EQ(mistake.find("secret"), std::string::npos);
  }
  EXPECT_THAT(MistakeOf(ReadAcme, "a,b\n"),
              HasSubstr("trace_seren.csv or trace_kalos.csv of Acme"));
}

TEST(ClusterLogTest, OnlyJobsOfTheWindowAreTaken) {
  std::string text = kHelios;
  for (int day = 1; day <= 5; ++day) {
    text += fmt::format(
        "{0},ua,vcb,1,4,1,COMPLETED,2020-05-0{0} 00:00:00,2020-05-0{0} 00:00:00,2020-05-0{0} "
        "00:01:00,60,0\n",
        day);
  }
  JobWindow window;
  window.from_day = 1;
  window.to_day = 4;
  const ImportedJobs some = ImportedFrom(ReadHelios, text, window);
  EXPECT_THAT(LinesOf(some), ElementsAre(StartsWith("2 at 0 "), StartsWith("3 at 86400 "),
                                         StartsWith("4 at 172800 ")));
  EXPECT_THAT(some.trace.notes, ElementsAre("left out: 1 job before --from, 1 from --to on"));
  window.first = 1;
  const ImportedJobs one = ImportedFrom(ReadHelios, text, window);
  EXPECT_THAT(LinesOf(one), ElementsAre(StartsWith("2 at 0 ")));
  EXPECT_THAT(one.trace.notes, ElementsAre("left out: 1 job before --from, 1 from --to on",
                                           "left out: 2 jobs after the first 1"));
  EXPECT_EQ(one.what, "1 job, on 1 GPU; median 60 s, 0 GPU hours");
  window.from_day = 30;
  window.to_day = 40;
  EXPECT_THAT(MistakeOf(ReadHelios, text, window), HasSubstr("no job between --from and --to"));
}

TEST(ClusterLogTest, CellsMayBeQuotedAndLinesMayEndAsOnWindows) {
  const ImportedJobs imported = ImportedFrom(
      ReadHelios,
      "\xef\xbb\xbf" + std::string("state, gpu_num ,job_id,submit_time,start_time,end_time\r\n") +
          "COMPLETED,2,\"a \"\"b\"\",\nc\",2020-05-01 00:00:00,2020-05-01 00:00:00,\"2020-05-01 "
          "00:00:09\" \r\n"
          "FAILED,1,d\x01\xff,2020-05-01 00:00:00,2020-05-01 00:00:00,2020-05-01 00:00:09");
  EXPECT_THAT(LinesOf(imported),
              ElementsAre("a \"b\",\\nc at 0 on 2 for 9", "d\\x01\\xff at 0 on 1 for 9"));
  const std::string columns = "state,gpu_num,job_id,submit_time,start_time,end_time\n";
  EXPECT_EQ(MistakeOf(ReadHelios, columns + "\n\"a"),
            "trace:3: found a quote that is never closed");
  EXPECT_EQ(MistakeOf(ReadHelios, columns + "\"a\"b,1"),
            "trace:2: found text after a closing quote, expected a comma or the end of the line");
  EXPECT_EQ(MistakeOf(ReadHelios, columns + std::string(70'000, 'x')),
            "trace:2: found a cell of more than 65536 bytes");
  EXPECT_EQ(MistakeOf(ReadHelios, std::string(2'000, ',')),
            "trace:1: found more than 1000 cells in a row");
}

}  // namespace cluster_log_test
}  // namespace rehearse
