// The file of a timeline, of any size: nearly all of a large one are spans, so they are read from
// the stream, 32 bytes each, and only what is left is parsed as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_document.h"
#include "sim/engine/timeline.h"

namespace rehearse {

// As numbers that have not been checked against the rest, by step.
using StepSpans = std::vector<std::vector<Span>>;

struct TimelineFile {
  std::string name;
  std::string text;                // of the JSON
  std::optional<StepSpans> spans;  // not set: they are in the text
};

// Files up to this size are read whole; they have fewer than the 4 million values of a document.
inline constexpr uint64_t kSmallTimeline = uint64_t{4} << 20;
// Of all steps of a file together: 2 GiB.
inline constexpr uint64_t kMostSpans = uint64_t{1} << 26;

// Reads any file of JSON, gzipped or not. Where it is larger than `small` and not a pipe, the lists
// /steps/N/spans are taken out of the text, which becomes []. Throws Error when the file cannot be
// read, when those lists are not whole numbers in fives or are too long, or when the rest has more
// than 64 MiB.
TimelineFile ReadTimelineFile(const std::string& path, uint64_t small = kSmallTimeline);

}  // namespace rehearse
