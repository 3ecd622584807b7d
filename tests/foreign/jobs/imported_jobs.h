// What tests of traces of jobs ask: the jobs that an importer finds in a text, as lines.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tests/support/temporary_folder.h"
#include "tools/foreign/jobs/job_collector.h"

namespace rehearse {

using JobImporter = ImportedJobs (*)(const std::string& path, const JobWindow& window);

inline ImportedJobs ImportedFrom(JobImporter read, const std::string& text,
                                 const JobWindow& window = {}) {
  const TemporaryFolder folder("jobs");
  const std::string path = folder / "trace";
  std::ofstream(path, std::ios::binary) << text;
  return read(path, window);
}

// "name at 0 on 8 for 60" and, where it is known, " by user".
inline std::vector<std::string> LinesOf(const ImportedJobs& imported) {
  std::vector<std::string> lines;
  for (const ArrivedJob& job : imported.trace.jobs) {
    lines.push_back(fmt::format("{} at {} on {} for {}{}", job.name, job.submitted, job.devices,
                                job.seconds, job.user.empty() ? "" : " by " + job.user));
  }
  return lines;
}

// The message that is thrown, or "".
template <typename Function>
std::string ErrorOf(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What it says of a mistake, without the folder: "trace:2: ...". "" if there is none.
inline std::string MistakeOf(JobImporter read, const std::string& text,
                             const JobWindow& window = {}) {
  const std::string message = ErrorOf([&] { ImportedFrom(read, text, window); });
  const size_t end = message.find(": ");
  const size_t begin = message.rfind('/', end);
  return message.substr(begin == std::string::npos ? 0 : begin + 1);
}

}  // namespace rehearse
