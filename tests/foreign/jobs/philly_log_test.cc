// Philly's log of jobs, with made-up jobs.
#include "tools/foreign/jobs/philly/philly_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/jobs/imported_jobs.h"

namespace rehearse {
namespace philly_log_test {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// An attempt on so many GPUs of each machine, at times of 2017-10-07; "" is null.
std::string Attempt(const std::string& start, const std::string& end,
                    const std::vector<int>& gpus) {
  const auto date = [](const std::string& time) {
    return time.empty() ? "null" : "\"2017-10-07 " + time + "\"";
  };
  std::string detail;
  for (const int count : gpus) {
    std::string names;
    for (int i = 0; i < count; ++i) names += fmt::format("{}\"gpu{}\"", i == 0 ? "" : ", ", i);
    detail +=
        fmt::format("{}{{\"ip\": \"m1\", \"gpus\": [{}]}}", detail.empty() ? "" : ", ", names);
  }
  return fmt::format("{{\"start_time\": {}, \"end_time\": {}, \"detail\": [{}]}}", date(start),
                     date(end), detail);
}

std::string Job(const std::string& name, const std::string& submitted,
                const std::string& attempts) {
  return fmt::format(
      "{{\"status\": \"Pass\", \"vc\": \"v\", \"jobid\": \"{}\", \"attempts\": [{}],\n"
      "  \"submitted_time\": \"2017-10-07 {}\", \"user\": \"u\"}}",
      name, attempts, submitted);
}

TEST(PhillyLogTest, AJobRunsAsLongAsItsAttemptsTogether) {
  const ImportedJobs imported = ImportedFrom(
      ReadPhilly, "[" +
                      Job("b", "01:00:10",
                          Attempt("01:00:20", "01:00:30", {4}) + "," +
                              Attempt("01:05:00", "01:05:50", {4, 4})) +
                      ",\n" + Job("a", "01:00:00", Attempt("01:00:00", "01:00:05", {1})) + "]\n");
  EXPECT_THAT(LinesOf(imported), ElementsAre("a at 0 on 1 for 5 by u", "b at 10 on 8 for 60 by u"));
  EXPECT_THAT(imported.trace.notes,
              ElementsAre("1 job of several attempts: each runs as long as these together",
                          StartsWith("1 job whose attempts had different numbers of GPUs"),
                          StartsWith("times are without a zone")));
}

TEST(PhillyLogTest, WhatIsLeftOutIsCounted) {
  const ImportedJobs imported = ImportedFrom(
      ReadPhilly,
      "[" + Job("never", "01:00:00", "") + "," + Job("lost", "01:00:00", Attempt("", "", {1})) +
          "," +
          Job("running", "01:00:00",
              Attempt("01:00:00", "01:00:05", {1}) + "," + Attempt("01:01:00", "", {1})) +
          "," +
          Job("cut", "01:00:00",
              Attempt("01:00:00", "01:00:05", {1}) + "," + Attempt("", "", {1})) +
          "," + Job("cpu", "01:00:00", Attempt("01:00:00", "01:00:05", {})) + "," +
          Job("odd", "01:00:00", Attempt("01:00:06", "01:00:05", {1})) + "," +
          Job("short", "01:00:00", Attempt("01:00:05", "01:00:05", {1})) + "," +
          R"({"jobid": "when", "submitted_time": "None", "attempts": null, "user": null},)" +
          Job("kept", "01:00:00",
              Attempt("", "01:00:05", {1}) + "," + Attempt("01:01:00", "01:02:00", {2})) +
          "]");
  EXPECT_THAT(LinesOf(imported), ElementsAre("kept at 0 on 2 for 60 by u"));
  EXPECT_THAT(
      imported.trace.notes,
      ElementsAre("left out: 1 job without GPUs", "left out: 1 job without a time of submission",
                  "left out: 2 jobs that never started", "left out: 2 jobs whose end is missing",
                  "left out: 1 job that ran for no time",
                  "left out: 1 job with an end before the start",
                  StartsWith("passed over: 1 attempt without a start or an end"),
                  StartsWith("times are without a zone")));
}

// Clocks were set back in between: from 00:30 PDT to 01:30 PST are two hours.
TEST(PhillyLogTest, ZonesCountWhereTheyAreSaid) {
  const ImportedJobs imported =
      ImportedFrom(ReadPhilly,
                   R"([{"jobid": "a", "submitted_time": "2017-11-05 00:00:00 PDT", "attempts":
          [{"start_time": "2017-11-05 00:30:00 PDT", "end_time": "2017-11-05 01:30:00 PST",
            "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]}])");
  EXPECT_THAT(LinesOf(imported), ElementsAre("a at 0 on 1 for 7200"));
  EXPECT_TRUE(imported.trace.notes.empty());
}

TEST(PhillyLogTest, MistakesAreSaidWithLineAndPointer) {
  const std::string good = Job("a", "01:00:00", Attempt("01:00:00", "01:00:05", {1}));
  EXPECT_EQ(MistakeOf(ReadPhilly, "[\n" + good + ",\n" + R"({"jobid": "b",
  "submitted_time": "yesterday"}])"),
            "trace:5: /1/submitted_time: found \"yesterday\", expected a date and time such as "
            "\"2017-10-07 01:11:39\"");
  EXPECT_EQ(MistakeOf(ReadPhilly, "[" + good + ", {\"jobid\": 3}]"),
            "trace:2: /1/jobid: found 3, expected the name of a job");
  EXPECT_EQ(MistakeOf(ReadPhilly, "[" + good + ", {}]"),
            "trace:2: /1/jobid: found null, expected the name of a job");
  EXPECT_EQ(MistakeOf(ReadPhilly, R"([{"jobid": "a", "attempts": {}}])"),
            "trace:1: /0/attempts: found {}, expected a list");
  EXPECT_EQ(MistakeOf(ReadPhilly, R"([{"jobid": "a", "attempts": [1]}])"),
            "trace:1: /0/attempts/0: found 1, expected an object");
  EXPECT_EQ(MistakeOf(ReadPhilly, R"([{"jobid": "a", "attempts": [{"detail": [{"gpus": 8}]}]}])"),
            "trace:1: /0/attempts/0/detail/0/gpus: found 8, expected a list");
  EXPECT_EQ(MistakeOf(ReadPhilly, "[1]"), "trace:1: /0: expected an object");
}

TEST(PhillyLogTest, DamagedTextsAreRefusedWhereTheyAreDamaged) {
  const std::string good = Job("a", "01:00:00", Attempt("01:00:00", "01:00:05", {1}));
  EXPECT_EQ(MistakeOf(ReadPhilly, "[" + good),
            "trace:2: the text ends in the middle; it may be truncated");
  EXPECT_EQ(MistakeOf(ReadPhilly, "[" + good.substr(0, good.size() - 3)),
            "trace:2: the text ends in the middle; it may be truncated");
  EXPECT_EQ(MistakeOf(ReadPhilly, "[" + good + good + "]"),
            "trace:2: expected a comma, or the end of the list");
  EXPECT_EQ(MistakeOf(ReadPhilly, "[" + good + "] x"),
            "trace:2: found text behind the list, expected its end");
  EXPECT_THAT(MistakeOf(ReadPhilly, "[\n" + good + ",\n{\"jobid\":\n nothing}]"),
              StartsWith("trace:5: /1"));
  EXPECT_THAT(MistakeOf(ReadPhilly, "[" + good + ", {\"user\": 1, \"user\": 2}]"),
              HasSubstr("/1: key \"user\" appears twice, first in line "));
  EXPECT_THAT(MistakeOf(ReadPhilly, "[{\"a\": \"" + std::string(5 << 20, 'x') + "\"}]"),
              EndsWith("/0: found more than 4194304 bytes"));
  for (const char* text : {"", "secret", "{\"secret\": 1}", "\x01"}) {
    EXPECT_EQ(MistakeOf(ReadPhilly, text),
              "trace:1: expected Philly's cluster_job_log: a list of jobs in JSON");
  }
  EXPECT_EQ(MistakeOf(ReadPhilly, "[]"),
            "trace: found no job that ran on GPUs, expected one or more");
}

}  // namespace philly_log_test
}  // namespace rehearse
