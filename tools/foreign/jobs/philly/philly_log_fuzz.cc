// Philly's log of jobs.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/jobs/philly/philly_log.h"

namespace rehearse {
namespace {

void ReadPhillyLog(std::string_view input) { ReadPhilly(WriteFuzzFile("cluster_job_log", input)); }

std::vector<std::string> PhillySeeds() {
  return {R"([
  {"status": "Pass", "vc": "v", "jobid": "application_1", "user": "u",
   "submitted_time": "2017-10-07 01:00:00",
   "attempts": [
     {"start_time": "2017-10-07 01:00:09", "end_time": "2017-10-07 01:10:00",
      "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
     {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:10:00",
      "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
  {"status": "Killed", "vc": "v", "jobid": "application_2", "user": null,
   "submitted_time": "2017-10-07 00:00:00 PDT",
   "attempts": [{"start_time": null, "end_time": "None", "detail": []}]},
  {"status": "Failed", "jobid": "application_3", "submitted_time": null, "attempts": []}
])"};
}

std::vector<std::string> PhillyWords() {
  return {"\"jobid\"",
          "\"submitted_time\"",
          "\"attempts\"",
          "\"start_time\"",
          "\"end_time\"",
          "\"detail\"",
          "\"gpus\"",
          "\"user\"",
          "null",
          "\"None\"",
          "\"\"",
          "\"2017-11-05 01:30:00 PST\"",
          "\"2069-12-31 23:59:60\"",
          "{",
          "}",
          "[",
          "]",
          ",",
          ":",
          "\\\"",
          "\n"};
}

const FuzzTargetRow kPhillyLogRow({"philly_log", ReadPhillyLog, PhillySeeds, PhillyWords,
                                   FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
