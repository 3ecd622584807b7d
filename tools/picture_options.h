// Which part of a step pictures show: --window, and the ranks of a pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/trace.h"

namespace rehearse {

// Reads "100ms-250ms", which may end after the step, so that pictures of two steps align. Throws
// Error for text that is no window, and for a window that is empty or begins after the step's end.
void ParseWindow(const std::string& text, Time step, PictureOptions* picture);

// Rank 0, or the first rank of each role where there are several roles, 16 ranks at most.
std::vector<uint32_t> FirstRanksOfRoles(const Schedule& schedule);

}  // namespace rehearse
