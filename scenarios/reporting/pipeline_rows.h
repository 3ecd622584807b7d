// A step of a pipeline as papers draw it: a row for each rank, a piece for each pass of a
// micro-batch, and nothing of messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/readers/job_request.h"
#include "sim/engine/timeline.h"
#include "sim/report/timeline_record.h"

namespace rehearse {

struct ReportedRun;

enum class PipelineWork : uint8_t {
  kForward,
  kInputGradient,
  kWeightGradient,
  kBackward,  // both gradients
};
const char* Name(PipelineWork work);  // "input gradient"

// A rank's work on one micro-batch in one stage, with nothing else in between. What it waits for
// within a piece, as for collectives of its layers, is part of it.
struct PipelinePiece {
  Time begin;
  Time end;
  PipelineWork work = PipelineWork::kForward;
  int32_t micro_batch = 0;
  uint32_t chunk = 0;     // which of the rank's stages, in the order of the layers
  bool from_end = false;  // of the second copy of the model, whose first stage is on the last rank
};

struct PipelineRow {
  uint32_t rank = 0;
  std::string name;  // of its role
  std::vector<PipelinePiece> pieces;
  // What the rank's share of the step is: until the last piece of all; or, where steps follow each
  // other rank by rank, as long as the longest rank works, from its own first piece on.
  Time from;
  Time to;

  double Bubble() const;  // the share of it without a piece
};

struct PipelineRows {
  std::vector<PipelineRow> rows;  // the first rank of each role; empty unless several work in turn
  Time end;                       // of the last piece of all

  double Bubble() const;  // the mean of all rows
};

// Which stages ranks have, if a workload says so.
struct PipelineStages {
  std::vector<uint32_t> stage_of_layer;  // of one copy of the model
  uint32_t copies = 1;
  uint32_t micro_batches = 1;
  bool follow_rank_by_rank = false;  // steps: no rank waits for all others to update
};
std::optional<PipelineStages> StagesOf(const Workload& workload);

// Without stages a rank has one chunk.
PipelineRows PipelineRowsOf(const ReportedRun& run, const std::optional<PipelineStages>& stages);

}  // namespace rehearse
