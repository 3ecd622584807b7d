// What pictures of a step are made of: a lane for each stream of a rank, the phases of the step,
// and round numbers for a time axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct Lane {
  std::string name;
  StreamKind kind = StreamKind::kCompute;
  std::vector<const Span*> spans;  // of the stream, in order
};

struct RankLanes {
  uint32_t rank = 0;
  std::vector<Lane> lanes;  // compute first; lanes in which nothing runs are left out
};

// Points into the timeline; to the rank that represents this one, if the timeline is folded.
RankLanes LanesOf(const Schedule& schedule, const Timeline& timeline, uint32_t rank);

struct PhaseExtent {
  const char* name = "";  // "forward", "backward", "update"
  Time begin;
  Time end;
};
// The phases of the rank's compute, in order; none where micro-batches interleave them.
std::vector<PhaseExtent> PhasesOf(const Schedule& schedule, const RankLanes& rank);

struct TimeInterval {
  Time begin;
  Time end;
};
// When any kernel of the rank runs between `from` and `to`; disjoint, in order.
std::vector<TimeInterval> ComputingOf(const Schedule& schedule, const RankLanes& rank, Time from,
                                      Time to);

// The rank's compute for one micro-batch in one direction, with no other micro-batch in between.
struct MicroBatchBlock {
  Time begin;
  Time end;
  int32_t micro_batch = 0;
  bool backward = false;
};
// In order; none if the role has only one micro-batch.
std::vector<MicroBatchBlock> MicroBatchesOf(const Schedule& schedule, const RankLanes& rank);

// Round times of an axis, in its unit.
struct Ticks {
  std::vector<double> at;
  int decimals = 0;  // that the times need

  std::string Label(double value) const;  // "12,500" or "0.25"
};
// About `wanted` apart: 1, 2 or 5 times a power of ten. CHECKs begin < end.
Ticks TicksBetween(double begin, double end, double wanted);

}  // namespace rehearse
