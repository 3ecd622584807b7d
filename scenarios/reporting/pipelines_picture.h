// Pipelines as papers draw them, one below the other on one axis of time.
#pragma once

#include <string>
#include <vector>

#include "scenarios/reporting/reported_run.h"

namespace rehearse {

// SVG: a row for each rank, micro-batches numbered, forward, input and weight gradients in three
// colours, paler for later chunks, other colours for what comes from the other end, the bubble
// hatched and counted. CHECKs that each run has a pipeline; to = 0 is the end of the longest step.
std::string PipelinesPicture(const std::vector<ReportedRun>& runs, Time from = {}, Time to = {});

}  // namespace rehearse
