// What `rehearse compare` can compare: what its arguments are, told from their content.
#pragma once

#include <cstdint>
#include <string>

#include "tools/command.h"

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

// What is printed.
std::string CompareTimelines(const Subject& a, const Subject& b, OutputFormat format);
std::string CompareResults(const Subject& a, const Subject& b, OutputFormat format);

}  // namespace rehearse
