#include "scenarios/readers/job_trace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/file_kind.h"
#include "sim/base/schema_version.h"

namespace rehearse {
namespace {

constexpr double kCentury = 3.2e9;  // seconds
constexpr int64_t kMostDevicesOfJob = 1 << 24;

const Fields<ArrivedJob>& ArrivedJobFields() {
  static const Fields<ArrivedJob> fields(
      "arrived job", "What the trace says of one job.",
      {{"name", &ArrivedJob::name, AText(), Required(), "what the trace calls it",
        "\"application_1\""},
       {"submitted_seconds", &ArrivedJob::submitted, ANumber(0, kCentury, "s"), Required(),
        "when it came, after the first job, which came at 0; jobs stand in this order", "0"},
       {"devices", &ArrivedJob::devices, AWhole(1, kMostDevicesOfJob), Required(),
        "GPUs that it held, all at once", "8"},
       {"seconds", &ArrivedJob::seconds, ANumberAbove(0, kCentury, "s"), Required(),
        "how long it ran, on the machine of the trace", "5400"},
       {"user", &ArrivedJob::user, AText(), Optional("the trace does not say"), "who sent it",
        "\"u1\""}});
  return fields;
}

void CheckOrder(const JsonReader& reader, JobTrace* trace) {
  const std::vector<ArrivedJob>& jobs = trace->jobs;
  if (jobs.empty()) reader.At("jobs").Expected("at least one job");
  const auto submitted = [&](size_t index) {
    return reader.At("jobs").Elements()[index].At("submitted_seconds");
  };
  if (jobs.front().submitted != 0)
    submitted(0).Expected("0: times are counted from the first job's submission");
  for (size_t i = 1; i < jobs.size(); ++i) {
    if (jobs[i].submitted >= jobs[i - 1].submitted) continue;
    submitted(i).Expected(
        fmt::format("at least {} as of the job before: jobs stand in the order of their submission",
                    jobs[i - 1].submitted));
  }
}

// The jobs apart, since there may be a million of them, which are written line by line.
nlohmann::ordered_json WithoutJobs(const JobTrace& trace) {
  JobTrace head;
  head.name = trace.name;
  head.source = trace.source;
  head.notes = trace.notes;
  nlohmann::ordered_json json = {{"schema", kJobTraceSchema}};
  JobTraceFields().Write(head, &json);
  json.erase("jobs");
  return json;
}

nlohmann::ordered_json JobJson(const ArrivedJob& job) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  ArrivedJobFields().Write(job, &json);
  return json;
}

}  // namespace

const Fields<JobTrace>& JobTraceFields() {
  static const Fields<JobTrace> fields(
      "job trace", "The jobs that came to a cluster, in the order of their submission.",
      {SchemaForEditors(),
       SchemaVersion(kJobTraceSchema),
       {"name", &JobTrace::name, AText(), Required(), "of the trace", "\"philly\""},
       {"source", &JobTrace::source, AText(), Optional("not given"), "what it was read from",
        "\"cluster_job_log\""},
       {"notes", &JobTrace::notes, ListOf(AText()), Optional("nothing was left out"),
        "what was left out, and how often, for people", R"(["left out: 3 jobs without GPUs"])"},
       {"jobs", &JobTrace::jobs, ListOf(ObjectIn<ArrivedJobFields>()), Required(), "at least one",
        R"([{"name": "application_1", "submitted_seconds": 0, "devices": 8, "seconds": 5400}])"}},
      CheckOrder);
  return fields;
}

JobTrace ReadJobTrace(const JsonReader& root) {
  RefuseOtherKinds(root, FileKind::kJobTrace);
  const JsonReader reader = root.As(JobTraceFields().shape());
  CheckVersion(reader.At("schema"), kJobTraceSchema);
  JobTrace trace;
  JobTraceFields().ReadInto(reader, &trace);
  return trace;
}

nlohmann::ordered_json ToJson(const JobTrace& trace) {
  nlohmann::ordered_json json = WithoutJobs(trace);
  nlohmann::ordered_json& jobs = json["jobs"] = nlohmann::ordered_json::array();
  for (const ArrivedJob& job : trace.jobs) jobs.push_back(JobJson(job));
  return json;
}

std::string JobTraceText(const JobTrace& trace) {
  std::string text = WithoutJobs(trace).dump(2);
  text.resize(text.find_last_not_of("\n}") + 1);
  text += ",\n  \"jobs\": [";
  const char* separator = "\n    ";
  for (const ArrivedJob& job : trace.jobs) {
    text += separator + JobJson(job).dump();
    separator = ",\n    ";
  }
  return text + "\n  ]\n}\n";
}

}  // namespace rehearse
