// What one of several jobs did, cut out of the timeline of them all (sim/schedule/jobs.h).
#pragma once

#include <vector>

#include "sim/engine/timeline.h"
#include "sim/report/result.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

struct JobPart {
  Schedule schedule;  // its steps back to back, on its own ranks
  Timeline timeline;  // of these steps, beginning at the job's start; without links
  // Each lasts from the end of the previous one on all ranks to its own; they sum to the timeline's
  // step.
  std::vector<Seconds> steps;
};

JobPart CutOut(const Job& job, const Timeline& joint);
// The same of a job that is alone and takes one step (IsOneStep in sim/schedule/jobs.h): its spans
// are those of the timeline, and are not copied.
JobPart TakeOut(const Job& job, Timeline joint);

// The result of one step: the mean of the job's steps. `peak` as in Summarize(); links and
// simulator stay empty.
Result SummarizeSteps(const Job& job, const JobPart& part, FlopsPerSecond peak);

}  // namespace rehearse
