// A deliberately naive second engine, against which the real one is checked.
//
// It plays the same Program, following the words of sim/engine/program.h and sim/engine/max_min.h,
// and shares no code with sim/engine/simulate.cc: at every event it looks at all tasks again,
// solves all rates again by textbook progressive filling, and moves all flows forward; there are no
// components and no heaps, and nothing is kept. Rates and bytes are long doubles; the clock is the
// same integer clock, rounded at the same points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/program.h"
#include "sim/engine/timeline.h"

namespace rehearse {

struct ReferenceResult {
  std::vector<Span> spans;                 // as in Timeline
  std::vector<long double> link_bytes;     // credited at the end of each step
  std::vector<long double> link_integral;  // of load over time
  // Sum of multiplicities of the steps that ended on the link.
  std::vector<long double> link_step_ends;
  uint64_t instants = 0;  // how often time stood still to look at all tasks
};

// Throws InternalError when tasks remain that can never end.
ReferenceResult SimulateNaively(const Program& program);

// Progressive filling word by word: all rates grow together until some link is full, whose flows
// then stop.
std::vector<long double> FillProgressively(std::span<const long double> capacities,
                                           const std::vector<std::span<const LinkUse>>& flows);

}  // namespace rehearse
