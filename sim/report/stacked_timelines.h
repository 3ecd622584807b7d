// Pictures of several steps (sim/report/trace.h), one above the other on one axis of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/report/trace.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct PicturedStep {
  const Schedule* schedule = nullptr;
  const Timeline* timeline = nullptr;
  TraceNames names;
  std::vector<uint32_t> ranks = {0};
};

// from/to as in PictureOptions; to = 0 is the end of the longest step. CHECKs that there is a step.
std::string StackedTimelinesSvg(const std::vector<PicturedStep>& steps, Time from = {},
                                Time to = {});

}  // namespace rehearse
