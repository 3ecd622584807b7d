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
};

// Divided by ProfilerSteps where all ranks have them, else all is one step. Steps that do not do
// what the last one does are left out, and so is what lies outside any step. Throws Error where
// ranks have different steps.
std::vector<KinetoStep> StepsOf(const KinetoRanksOfStep& ranks, std::vector<std::string>* remarks);

// What the event is, in a Timeline's terms.
RecordedOp OpOfEvent(const KinetoRanksOfStep& ranks, uint32_t rank, const KinetoEvent& event);

}  // namespace rehearse
