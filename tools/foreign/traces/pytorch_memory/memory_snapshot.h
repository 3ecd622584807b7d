// What PyTorch's allocator of a GPU did while a program ran, as it wrote it down: to stand beside
// the memory that is predicted (scenarios/explaining/memory_picture.h).
//
//   torch.cuda.memory._record_memory_history()
//   ... some steps ...
//   torch.cuda.memory._dump_snapshot("snapshot.pickle")
//
// Read are that pickle, the same as JSON, either of them gzipped, and the page that PyTorch's
// _memory_viz.py makes of it (trace_plot). Sizes of events are what was asked for; allocated counts
// them in blocks of 512 bytes, as memory_allocated() does, but for what of a large block is left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/explaining/memory_picture.h"
#include "sim/base/quantity.h"

namespace rehearse {

// The fullest moment of an interval.
struct SnapshotMoment {
  Seconds after;  // the first event; 0 where the snapshot has no times
  uint64_t event = 0;
  Bytes allocated;  // asked for and not given back
  Bytes reserved;   // from the driver
};

// Blocks that were asked for at one place of the program.
struct SnapshotPlace {
  std::string where;  // "linear.py:125 forward, in model.py:88 forward"
  uint64_t blocks = 0;
  Bytes bytes;
};

struct MemorySnapshot {
  uint32_t device = 0;
  std::vector<uint32_t> others;  // devices that the snapshot has, too
  uint64_t events = 0;           // 0: only the state at its end is known
  bool has_times = false;
  Seconds lasted;
  Bytes before;                         // allocated before the first event
  std::vector<SnapshotMoment> moments;  // at most kMostMoments, in order
  SnapshotMoment peak;                  // most allocated
  Bytes active;                         // most, freed blocks that a stream still uses included
  Bytes reserved;                       // most
  uint64_t living = 0;                  // blocks at the peak
  std::vector<SnapshotPlace> largest;   // at the peak, most bytes first, at most ten
  uint64_t places = 0;                  // of which these are the largest
  std::optional<Bytes> refused;         // what was asked for when memory ran out, the last time
  bool is_expandable = false;           // expandable_segments was on
};

inline constexpr size_t kMostMoments = 2000;
inline constexpr uint32_t kMostSnapshotDevices = 1024;

// `device`: which of several; nothing: the one that had most reserved, the first of equal ones.
// Throws Error, naming the file `name`, for what is damaged, no snapshot, one of another version,
// or has no such device.
MemorySnapshot ReadMemorySnapshot(std::string_view bytes, const std::string& name,
                                  std::optional<uint32_t> device);

// What was measured beside the picture's fullest rank.
std::string ToText(const MemorySnapshot& snapshot, const std::string& name,
                   const MemoryPicture& picture, bool color);
nlohmann::ordered_json ToJson(const MemorySnapshot& snapshot, const std::string& name);

}  // namespace rehearse
