// What `rehearse compare` can compare: what its arguments are, told from their content.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/program_options.hpp>

#include "tools/output_format.h"

namespace rehearse {

enum class SubjectKind : uint8_t {
  kNothing,
  kNcclTable,  // what nccl-tests print
  kTimeline,   // a file of `run --out` or `execute`, or a scenario, which is played on the spot
  kResult,     // what `run --format json` prints
};

struct Subject {
  SubjectKind kind = SubjectKind::kNothing;
  std::string path;
  std::string text;
};

// A file, or the folder that `run --out` wrote. Throws Error when it is nothing that is known.
Subject RecogniseSubject(const std::string& path);

struct CompareFormat {
  OutputFormat format = OutputFormat::kText;
  std::optional<size_t> rows;  // --rows: at most so many of each list
};

// What is printed. --cluster, --kind and the like are in `values`.
std::string CompareNcclLog(const Subject& log, const boost::program_options::variables_map& values,
                           const std::string& usage, const CompareFormat& format);
// Where A and B are not of the same work, that is said beside it.
std::string CompareTimelines(const Subject& a, const Subject& b, const CompareFormat& format);
std::string CompareResults(const Subject& a, const Subject& b, const CompareFormat& format);

}  // namespace rehearse
