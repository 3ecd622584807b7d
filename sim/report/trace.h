// Writers of a Timeline for other tools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Names that only the layers above know: how ranks nest in the cluster.
struct TraceNames {
  std::string title;                        // the scenario
  std::vector<std::string> node_of_rank;    // "node0"; empty strings or an empty list: one node
  std::vector<std::string> device_of_rank;  // "gpu0"
};
// "gpu0 (rank 3)", or "rank 3" if the device has no name.
std::string DeviceName(const TraceNames& names, uint32_t rank);

// How much a trace is to hold. The trace says what it leaves out: in the name of the topmost track,
// in that of the track of links, and as a slice in place of copies.
struct TraceOptions {
  static constexpr size_t kAll = static_cast<size_t>(-1);

  std::vector<uint32_t> ranks;  // ascending; empty: all
  // If a rank has more, the middle copies of what it repeats are left out (sim/schedule/repeats.h).
  size_t most_ops = kAll;
  size_t most_links = kAll;  // those that carried the largest share of what they could
};

// A merged Perfetto trace (protobuf, uncompressed bytes): cluster -> node -> device -> stream, one
// slice per op (waiting for the group is a slice of its own, named "wait: ..."), an arrow to each
// communication op from the op that released it (see sim/report/release.h), a counter track in GB/s
// for each recorded link load. Times are integer nanoseconds, rounded so that slices of one track
// never partly overlap: an end is never after the next begin. Folded timelines are taken too.
std::string PerfettoTrace(const Schedule& schedule, const Timeline& timeline,
                          const TraceNames& names, const TraceOptions& options = {});

// A picture (SVG, self-contained) of the streams of the chosen ranks over the step: as shown in the
// README. Colours by kind of work (forward, recompute, backward GEMMs; attention; memory-bound
// work; one hue per axis for communication, hatched or pale for waiting), a legend, a time axis in
// ms. Spans too narrow to see are merged by pixel. from/to cut a window out; to = 0 means the whole
// step.
struct PictureOptions {
  std::vector<uint32_t> ranks = {0};
  Time from;
  Time to;
  int width = 1200;
};
std::string TimelineSvg(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
                        const PictureOptions& options);

}  // namespace rehearse
