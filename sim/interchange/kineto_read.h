// Traces of PyTorch's profiler, one a rank, as what Rehearse takes: the Timeline that they
// measured, or a Schedule in which kernels take as long as they did and collectives and messages
// are played again. One of several steps (ProfilerStep#N) is a step of the Timeline each where all
// do the same; the Schedule is of the median one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

enum class KinetoResult : uint8_t { kTimeline, kSchedule };

struct ImportedKineto {
  std::string text;  // rehearse.timeline.v1 or rehearse.schedule.v1
  uint32_t ranks = 0;
  size_t steps = 0;
  std::vector<std::string> remarks;  // what is left out, not understood, or taken for something
};

// Throws Error, naming file, rank and event or byte where one is to blame.
ImportedKineto ImportKineto(const std::vector<std::string>& paths, KinetoResult result);
// The same of Nsight Systems' exports (sim/interchange/nsys_file.h).
ImportedKineto ImportNsys(const std::vector<std::string>& paths, KinetoResult result);

}  // namespace rehearse
