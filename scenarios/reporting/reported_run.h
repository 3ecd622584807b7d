// What a page (scenarios/reporting/report_page.h) shows of one step: its ops and when they ran,
// what each waited for, which links they crossed and how full these were, what memory held.
//
// For a scenario all of this is known; for a timeline file (`run --out`, `execute --out`) only what
// is in it. Spans are those of the kept ranks (sim/report/kept_ranks.h); positions of spans are
// positions in TimelineRecord::Median().spans.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/playing/group_memories.h"
#include "scenarios/readers/scenario.h"
#include "scenarios/reporting/cluster_drawing.h"
#include "scenarios/reporting/pipeline_rows.h"
#include "sim/base/progress.h"
#include "sim/report/network_picture.h"
#include "sim/report/span_classes.h"
#include "sim/report/timeline_record.h"

namespace rehearse {

inline constexpr uint32_t kNoSpan = 0xffffffffu;

// An op of a role; its name, kind and tag are those of the record.
struct ReportedOp {
  size_t span_class = 0;  // position in ReportedRun::classes
  uint32_t stream = 0;    // position in ReportedRole::streams
  double bytes = 0;       // of communication
  bool waits = false;     // no real kernel: it occupies nothing
  double bus_factor = 0;  // busbw / algbw, if the group is known
  std::string detail;     // "GEMM 8192x7168x3584 NN"; may be empty
  std::vector<uint32_t>
      after;  // for each op that it waits for, how many positions further back it is
};

struct ReportedStream {
  std::string name;
  bool communicates = false;
};

struct ReportedRole {
  std::vector<ReportedStream> streams;
  std::vector<ReportedOp> ops;
};

struct ReportedRank {
  uint32_t rank = 0;
  std::string name;         // "node0/gpu3", or ""
  uint32_t stands_for = 1;  // ranks that do the same, including this one
};

// The link that held a span back the longest, and for what share of its time.
struct SpanBottleneck {
  uint32_t span = 0;
  uint32_t link = 0;  // position in ReportedRun::links
  double share = 0;
};

// The step waited for this span, or for an op of a rank that is not kept (kNoSpan).
struct ReportedPathPiece {
  uint32_t span = kNoSpan;
  Time begin;
  Time end;
};

struct ReportedLink {
  LinkRecord record;
  std::vector<uint32_t>
      spans;  // that crossed it, ascending; for a collective, that of its first rank
};

// What buffers of a kind took from `at` on, in bytes.
struct MemoryAt {
  Time at;
  double activations = 0;
  double buffers = 0;
};
struct MemoryCurve {
  uint32_t rank = 0;
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;
  std::vector<MemoryAt> points;
};

struct ReportedRun {
  std::string source;  // the file
  TimelineRecord record;
  std::vector<SpanClass> classes;
  std::vector<ReportedRole> roles;  // as the record's
  std::vector<ReportedRank> ranks;  // those with spans, ascending
  bool knows_waits = false;         // whether `after` and released_by are known
  // The span that released each span that communicates, in order (sim/report/release.h).
  std::vector<uint32_t> released_by;
  std::vector<SpanBottleneck> bottlenecks;  // by span
  std::vector<ReportedPathPiece> path;      // the critical path; empty if it is not known
  std::vector<ReportedLink> links;          // in use, busiest first
  size_t links_left_out = 0;
  std::vector<MemoryCurve> memory;
  std::vector<uint32_t> asked;  // ranks that somebody wants to see, ascending
  PipelineRows pipeline;
  std::optional<NetworkPicture> network;  // at fidelity packet
  nlohmann::ordered_json result;          // rehearse.result.v1; null if it is not known
  nlohmann::ordered_json cluster;  // the drawing (scenarios/reporting/cluster_drawing.h), or null
};

struct ReportLimits {
  size_t ranks = 24;
  size_t spans = 1'000'000;
  size_t links = 300;
  size_t loads = 1'500'000;      // changes of load over all of these
  size_t crossings = 1'500'000;  // spans of links over all of these
  size_t memory_curves = 16;
};

// What steps on the same machine have in common, kept for the next one. It keeps the machines, too.
class ReportMemory {
 public:
  GroupMemories& groups() { return groups_; }
  ClusterDrawing& DrawingOf(const std::shared_ptr<const Cluster>& cluster);

 private:
  GroupMemories groups_;
  std::vector<std::unique_ptr<ClusterDrawing>> drawings_;
};

// Plays the scenario with everything recorded. `asked`: ranks to keep in any case. Throws as
// PlayScenario() does. Few ranks are not folded: the page shows what each of them does, and each
// transfer of a link. What comes out does not depend on the memory.
ReportedRun ReportScenario(const Scenario& asked_for, const std::vector<uint32_t>& asked,
                           ProgressObserver& observer = NoObserver(),
                           const ReportLimits& limits = {}, ReportMemory* memory = nullptr);

// Reads the run from a file's record. Throws Error if no step has a span.
ReportedRun ReportRecord(TimelineRecord record);

}  // namespace rehearse
