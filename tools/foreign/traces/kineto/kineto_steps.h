// The steps of a run in traces of PyTorch's profiler, and what each of their ops is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/timeline_record.h"
#include "tools/foreign/traces/kineto/kineto_transfers.h"

namespace rehearse {

// Events by rank, position of an op; the same ops in all steps.
struct KinetoStep {
  std::string name;
  std::vector<std::vector<uint32_t>> events;
  // Where steps overlap on the devices, one after the other begins so much later, and what ran
  // later than that has been moved to where it ran in the step before; 0: they do not overlap.
  int64_t period = 0;
};

// Divided by the steps of the profiler, or those that `options` names, where all ranks have them;
// else all is one step. What most steps do is the step: others, a first one that warms up and a
// last one that is cut off among them, are left out, and so is what lies outside any step. Changes
// the times of events where steps overlap. Throws Error where ranks have different steps.
std::vector<KinetoStep> StepsOf(KinetoRanksOfStep* traced, const KinetoOptions& options,
                                std::vector<std::string>* remarks);

// What the event is, in a Timeline's terms.
RecordedOp OpOfEvent(const KinetoRanksOfStep& ranks, uint32_t rank, const KinetoEvent& event);

}  // namespace rehearse
