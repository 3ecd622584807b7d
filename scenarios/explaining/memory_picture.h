// When is a step's memory fullest, and with what? The fullest rank's memory over its ops, what
// lives at the peak, and what would lower it: "rehearse explain --memory".
//
// Memory is counted in the order of a rank's ops, as an allocator sees it that frees what no later
// op touches (sim/schedule/memory.h); times are those at which kernels begin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/playing/memory_fit.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/progress.h"
#include "sim/report/result.h"

namespace rehearse {

// From an op on, until the next moment.
struct MemoryMoment {
  Seconds begin;
  std::string op;
  Tag tag;
  MemoryUse use;
};

struct BufferAtPeak {
  std::string name;
  BufferKind kind = BufferKind::kActivation;
  Bytes bytes;
  std::string made_by;  // the op with which it begins to live; "" if it is always there
  std::string last_use;
  int32_t micro_batch = -1;  // of that op
};

// The step with one change of the scenario.
struct MemoryChangeTried {
  std::string what;
  Bytes needed;  // driver and libraries too
  Seconds step;
  std::string refused;  // why it cannot be; then it has no figures
};

struct MemoryPicture {
  std::string scenario;
  MemoryFit fit;
  std::string role;
  std::string rank_name;
  Bytes idle;
  Seconds step;
  std::vector<MemoryMoment> moments;     // where it changes
  size_t peak = 0;                       // of them
  std::vector<std::string> ops_at_peak;  // that op, and those before and behind it
  std::vector<BufferAtPeak> largest;     // at the peak, the ten largest
  size_t living = 0;                     // buffers at the peak
  std::vector<MemoryChangeTried>
      changes;  // that lower it, those that need least first; refused ones last
  std::vector<std::string> left_out;  // changes that were not tried
};

// Plays the step, whether it fits or not. Throws Error for a scenario that lists jobs.
MemoryPicture PictureMemory(const Scenario& asked, ProgressObserver& observer);

std::string ToText(const MemoryPicture& picture, bool color);
nlohmann::ordered_json ToJson(const MemoryPicture& picture);

}  // namespace rehearse
