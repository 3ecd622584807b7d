#include "tools/foreign/traces/trace_files.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

namespace {

namespace fs = std::filesystem;

bool EndsInOne(const std::string& name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return name.ends_with(ending); });
}

}  // namespace

std::vector<std::string> TraceFiles(const std::vector<std::string>& paths,
                                    const std::vector<std::string>& traces,
                                    const std::vector<std::string>& beside,
                                    const std::string& called) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code problem;
    if (!fs::is_directory(path, problem)) {
      files.push_back(path);
      continue;
    }
    const size_t before = files.size();
    bool has_traces = false;
    for (fs::directory_iterator entry(path, problem), end; !problem && entry != end;
         entry.increment(problem)) {
      const std::string name = entry->path().string();
      const bool is_trace = EndsInOne(name, traces);
      has_traces = has_traces || is_trace;
      if (is_trace || EndsInOne(name, beside)) files.push_back(name);
    }
    if (problem) throw Error(fmt::format("cannot read {}: {}", path, problem.message()));
    if (!has_traces) throw Error(fmt::format("{}: found no traces {} there", path, called));
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

}  // namespace rehearse
