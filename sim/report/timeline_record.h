// A Timeline that itself says which op each span is: written to a file to be compared later.
//
//   { "schema": "rehearse.timeline.v1", "title": "gpt-20b", "provenance": "measured", "ranks": 2,
//     "environment": {...},        of a measured one; free for the reader
//     "given": {...},              the scenario that was run; older files lack it
//     "roles": [ {"name": "all", "ops": [ {"name": "qkv", "kind": "gemm", "axis": "",
//                                          "phase": "forward", "layer": 0, "micro_batch": 0},
//                                         ... ]} ],
//                                  a measured collective also "algorithm", "protocol", "channels",
//                                  where the library reported them on the first
//                                  rank of the role;
//                                  ops that every micro-batch does are listed once: "repeats":
//                                  [[begin, end, times, micro_batches]], as sim/schedule/schedule.h
//                                  has them
//     "role_of_rank": [[0, 2]],    runs of (role, ranks)
//     "representative": [0, 0],    where not all ranks have spans: by rank, whose spans it
//                                  shares
//     "left_out": [[16, 1008]],    runs of (rank, ranks) that do something else, but whose
//                                  own spans are left out (sim/report/kept_ranks.h)
//     "steps": [ {"warm_up": false, "step_picoseconds": 5,
//                 "disturbed": true, "lost": 0.07,   where other programs took a part of it
//                 "spans": [[rank, op, ready, begin, end], ...]} ] }
//
// Times are integer picoseconds, so that what is read back has the same hash. A simulated
// timeline has one step, a measured one its warm-ups and repeats in the order in which they ran;
// links are not kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/json_reader.h"
#include "sim/engine/timeline.h"
#include "sim/report/timeline_file.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

inline constexpr const char* kTimelineSchema = "rehearse.timeline.v1";

struct RecordedOp {
  std::string name;
  std::string kind;  // "gemm", "attention", "memory", "all-reduce", ..., "send", "receive"
  std::string axis;  // the communicator's name; "" for compute
  Phase phase = Phase::kForward;
  int32_t layer = -1;
  int32_t micro_batch = 0;
  std::string algorithm;  // with protocol and channels; "": not reported
  std::string protocol;
  uint32_t channels = 0;
};

struct RecordedRole {
  std::string name;
  std::vector<RecordedOp> ops;  // as they are kept
  std::vector<Repeat> repeats{};

  uint32_t OpCount() const;
  uint32_t PlaceAt(uint32_t position) const;
  int32_t MicroBatchAt(uint32_t position) const;
};

struct RecordedStep {
  bool is_warm_up = false;
  Timeline timeline;
  // Whether other programs took more of it than they may (real/backends/host.h), and which share.
  bool is_disturbed = false;
  double lost = 0;
};

struct TimelineRecord {
  std::string title;
  Provenance provenance = Provenance::kSimulated;
  nlohmann::ordered_json environment;  // null: not reported
  nlohmann::json given;                // null: not reported
  std::vector<RecordedRole> roles;
  std::vector<uint32_t> role_of_rank;
  std::vector<RecordedStep> steps;  // at least one
  std::vector<uint32_t> left_out;   // ranks, ascending

  uint32_t ranks() const { return static_cast<uint32_t>(role_of_rank.size()); }
  // The op as it is kept: of copies the first, with its micro-batch.
  const RecordedOp& OpOf(const Span& span) const {
    const RecordedRole& role = roles[role_of_rank[span.rank]];
    return role.ops[role.PlaceAt(span.op)];
  }
  int32_t MicroBatchOf(const Span& span) const {
    return roles[role_of_rank[span.rank]].MicroBatchAt(span.op);
  }
  // The step whose time is the median (the lower one of two) of those after the warm-ups that other
  // programs left alone; if there are none, of those after the warm-ups, or of the warm-ups.
  const RecordedStep& MedianStep() const;
  const Timeline& Median() const { return MedianStep().timeline; }
};

const char* KindOf(const Work& work);

// A record of one step; more may be appended to `steps`.
TimelineRecord MakeRecord(std::string title, const Schedule& schedule, Timeline timeline);

// The JSON object as text: as JSON values, a step of a million spans would take gigabytes.
std::string ToJsonText(const TimelineRecord& record);
// Throws Error if anything does not fit together. `spans` are those that are not in the object, but
// stand in its file (sim/report/timeline_file.h).
TimelineRecord ReadTimelineRecord(const JsonReader& object,
                                  std::optional<StepSpans> spans = std::nullopt);

}  // namespace rehearse
