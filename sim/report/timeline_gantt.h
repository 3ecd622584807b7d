// A picture, in block characters for a terminal, of the streams of chosen ranks over the step: what
// timeline.svg shows (sim/report/trace.h), as far as characters can.
//
// A character stands for a piece of time. Compute, and communication that no kernel of the rank
// hides, are solid, as high as their share of that time (▁ to █); communication behind compute is
// shaded (░, ▒ from a half on); · is waiting for the group. So exposed communication shows even
// without colours; with them, the classes of SpanClasses have the hues of the SVG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/report/trace.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct GanttOptions {
  std::vector<uint32_t> ranks = {0};
  Time from = {};
  Time to = {};            // 0: the whole step
  unsigned columns = 100;  // characters per line; at least 48 are used
  bool color = false;
};

// Lines are at most that wide, except for long names of ranks; ends with a newline. Folded
// timelines are taken too.
std::string TimelineGantt(const Schedule& schedule, const Timeline& timeline,
                          const TraceNames& names, const GanttOptions& options);

}  // namespace rehearse
