#include "scenarios/readers/job_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace job_trace_test {

using ::testing::HasSubstr;

JobTrace ReadText(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "jobs.json");
  return ReadJobTrace(document.Root());
}

std::string Mistake(const std::string& text) {
  try {
    ReadText(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string WithJobs(const std::string& jobs) {
  return R"({"schema": "rehearse.job-trace.v1", "name": "t", "jobs": )" + jobs + "}";
}

std::string JobAt(const std::string& submitted, const std::string& devices = "1",
                  const std::string& seconds = "1") {
  return R"({"name": "a", "submitted_seconds": )" + submitted + R"(, "devices": )" + devices +
         R"(, "seconds": )" + seconds + "}";
}

JobTrace Example() {
  return {"philly",
          "cluster_job_log",
          {{"b", 0, 8, 5400, "u"}, {"a", 0, 1, 0.25, ""}, {"c \"d\"\n", 3.5, 16, 1, "v"}},
          {"left out: 3 jobs without GPUs"}};
}

TEST(JobTraceTest, ComesBackAsItWasWritten) {
  const JobTrace trace = Example();
  for (const std::string& text : {JobTraceText(trace), ToJson(trace).dump()}) {
    const JobTrace read = ReadText(text);
    EXPECT_TRUE(JobTraceFields().IsSame(read, trace)) << text;
    EXPECT_EQ(JobTraceText(read), JobTraceText(trace));
  }
  EXPECT_EQ(nlohmann::ordered_json::parse(JobTraceText(trace)), ToJson(trace));
}

TEST(JobTraceTest, HasALineForEachJob) {
  EXPECT_EQ(JobTraceText({"t", "", {{"a", 0, 1, 2, ""}, {"b", 1, 2, 3, "u"}}, {}}),
            R"({
  "schema": "rehearse.job-trace.v1",
  "name": "t",
  "jobs": [
    {"name":"a","submitted_seconds":0.0,"devices":1,"seconds":2.0},
    {"name":"b","submitted_seconds":1.0,"devices":2,"seconds":3.0,"user":"u"}
  ]
}
)");
}

TEST(JobTraceTest, EachMistakeIsSaidAtItsPlace) {
  EXPECT_EQ(Mistake(WithJobs("[]")), "jobs.json:1: /jobs: found [], expected at least one job");
  EXPECT_EQ(Mistake(WithJobs("[" + JobAt("1") + "]")),
            "jobs.json:1: /jobs/0/submitted_seconds: found 1, expected 0: times are counted from "
            "the first job's submission");
  EXPECT_EQ(Mistake(WithJobs("[" + JobAt("0") + "," + JobAt("7.5") + ",\n" + JobAt("7") + "]")),
            "jobs.json:2: /jobs/2/submitted_seconds: found 7, expected at least 7.5 as of the job "
            "before: jobs stand in the order of their submission");
  EXPECT_THAT(Mistake(WithJobs("[" + JobAt("-1") + "]")),
              HasSubstr("/jobs/0/submitted_seconds: found -1, expected a number from 0 to"));
  EXPECT_THAT(Mistake(WithJobs("[" + JobAt("1e300") + "]")),
              HasSubstr("/jobs/0/submitted_seconds: found 1e+300, expected a number from 0 to"));
  EXPECT_THAT(Mistake(WithJobs("[" + JobAt("0", "0") + "]")),
              HasSubstr("/jobs/0/devices: found 0, expected a whole number from 1 to"));
  EXPECT_THAT(Mistake(WithJobs("[" + JobAt("0", "1", "0") + "]")),
              HasSubstr("/jobs/0/seconds: found 0, expected a number above 0"));
  EXPECT_THAT(Mistake(WithJobs(R"([{"name": "a", "submitted_seconds": 0, "devices": 1}])")),
              HasSubstr("/jobs/0: missing key \"seconds\""));
  EXPECT_THAT(Mistake(R"({"schema": "rehearse.job-trace.v2", "name": "t", "jobs": []})"),
              HasSubstr("/schema: "));
  EXPECT_THAT(Mistake(R"({"name": "t", "strategy": {}, "jobs": []})"),
              HasSubstr("found a scenario, expected a trace of jobs"));
}

}  // namespace job_trace_test
}  // namespace rehearse
