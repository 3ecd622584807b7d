// What `rehearse compare` can compare: recognises its arguments by their content.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/program_options.hpp>

#include "sim/report/timeline_file.h"
#include "tools/output_format.h"

namespace rehearse {

enum class SubjectKind : uint8_t {
  kNothing,
  kNcclTable,  // what nccl-tests prints
  kTimeline,   // a file of `run --out` or `execute`, or a scenario, which is simulated on the spot
  kResult,     // what `run --format json` prints
};

struct Subject {
  SubjectKind kind = SubjectKind::kNothing;
  std::string path;
  std::string text;
  std::optional<StepSpans> spans;  // of a large timeline: they are not in the text
};

// Reads a file, or the folder that `run --out` wrote. Throws Error for anything unknown.
Subject RecogniseSubject(const std::string& path);

struct CompareFormat {
  OutputFormat format = OutputFormat::kText;
  std::optional<size_t> rows;  // --rows: at most this many of each list
};

// Returns what is printed. --cluster, --kind and the like are in `values`.
std::string CompareNcclLog(const Subject& log, const boost::program_options::variables_map& values,
                           const std::string& usage, const CompareFormat& format);
// Warns where A and B are not of the same work.
std::string CompareTimelines(const Subject& a, const Subject& b, const CompareFormat& format);
std::string CompareResults(const Subject& a, const Subject& b, const CompareFormat& format);

}  // namespace rehearse
