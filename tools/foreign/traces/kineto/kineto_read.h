// Traces of PyTorch's profiler, one per rank, in Rehearse's own terms: the Timeline that they
// measured, or a Schedule in which kernels take as long as they did and collectives and messages
// are simulated anew. Where a trace has several steps (ProfilerStep#N) that all do the same, each
// is a step of the Timeline; the Schedule is of the median one. Traces may be of only some of the
// ranks, which are then all that there is: what they did with others lasts as long as measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/foreign/traces/kineto/kineto_file.h"

namespace rehearse {

enum class KinetoResult : uint8_t { kTimeline, kSchedule };

struct ImportedKineto {
  std::string text;  // rehearse.timeline.v1 or rehearse.schedule.v1
  uint32_t ranks = 0;
  size_t steps = 0;
  std::vector<std::string> remarks;  // what is left out, not understood, or taken for something
};

// Throws Error, naming file, rank and event or byte as far as they apply.
ImportedKineto ImportKineto(const std::vector<std::string>& paths, KinetoResult result,
                            const KinetoOptions& options = {});
// The same for Nsight Systems' exports (tools/foreign/traces/nsys/nsys_file.h).
ImportedKineto ImportNsys(const std::vector<std::string>& paths, KinetoResult result,
                          const KinetoOptions& options = {});

}  // namespace rehearse
