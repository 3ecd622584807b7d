// Jobs that came to a cluster, as import writes them.
#include "scenarios/readers/job_trace.h"

#include "sim/base/json_document.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

void ReadJobTraceText(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(input, "jobs.json");
  JobTraceText(ReadJobTrace(document.Root()));
}

std::vector<std::string> JobTraceSeeds() {
  return {JobTraceText({"philly",
                        "cluster_job_log",
                        {{"a", 0, 1, 60, "u"}, {"b", 0, 8, 5400, ""}, {"c", 7.5, 16, 0.25, "v"}},
                        {"left out: 3 jobs without GPUs"}})};
}

std::vector<std::string> JobTraceWords() { return SchemaWords("job-trace"); }

const FuzzTargetRow kJobTraceRow({"job_trace", ReadJobTraceText, JobTraceSeeds, JobTraceWords,
                                  FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
