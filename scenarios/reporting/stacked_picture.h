// A report as a picture: its steps one above the other on one axis of time.
#pragma once

#include <string>
#include <vector>

#include "scenarios/reporting/reported_run.h"

namespace rehearse {

// SVG of the first rank of each role, 16 at most; to = 0 is the end of the longest step.
std::string StackedPicture(const std::vector<ReportedRun>& runs, Time from = {}, Time to = {});

}  // namespace rehearse
