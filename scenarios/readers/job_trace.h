// The jobs that came to a cluster, one after the other: what public traces (Microsoft's Philly,
// Alibaba's PAI, SenseTime's Helios, Shanghai AI Laboratory's Acme) say about each. `rehearse
// import` writes such files from theirs.
//
//   { "schema": "rehearse.job-trace.v1", "name": "philly", "source": "cluster_job_log",
//     "jobs": [ {"name": "application_1",
//                "submitted_seconds": 0,     after the first of the trace; in this order
//                "devices": 8,               GPUs that it held, all at once
//                "seconds": 5400,            how long it ran, on the machine of the trace
//                "user": "a"} ] }            optional
//
// "notes" says what was left out of the trace, for people. Traces of a million jobs are of the size
// InputSize::kLarge (sim/base/read_options.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_fields.h"
#include "sim/base/json_reader.h"

namespace rehearse {

inline constexpr char kJobTraceSchema[] = "rehearse.job-trace.v1";

struct ArrivedJob {
  std::string name;
  double submitted = 0;  // seconds
  uint32_t devices = 1;
  double seconds = 0;
  std::string user;  // "" where the trace does not say
};

struct JobTrace {
  std::string name;
  std::string source;              // what it was read from
  std::vector<ArrivedJob> jobs;    // by the time of their submission, the first at 0
  std::vector<std::string> notes;  // what was left out, and how often
};

// Throws Error for anything else, such as jobs that are not in the order of their submission.
JobTrace ReadJobTrace(const JsonReader& root);
nlohmann::ordered_json ToJson(const JobTrace& trace);
// The same as a text, with a line for each job.
std::string JobTraceText(const JobTrace& trace);

const Fields<JobTrace>& JobTraceFields();

}  // namespace rehearse
