// A report as a picture: its steps one above the other on one axis of time.
#pragma once

#include <string>
#include <vector>

#include "scenarios/reporting/reported_run.h"

namespace rehearse {

// SVG of one rank of each group that does the same at the same times, 16 at most, and of all that
// were asked for; to = 0 is the end of the longest step.
std::string StackedPicture(const std::vector<ReportedRun>& runs, Time from = {}, Time to = {});

}  // namespace rehearse
