// Which schedules a calibration learns from: a series of collectives for the ranks of a machine,
// products of many shapes, random training steps, and exactly what a user needs.
//
// Sizes follow from one number, the floating-point operations of the largest training step of a
// rank: steps have between a hundredth of it and all of it, products at most a tenth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "real/calibration/learning.h"
#include "real/calibration/probe_schedule.h"
#include "scenarios/trials/random_step.h"

namespace rehearse {

struct LearningPlan {
  StepDevice device = StepDevice::kCpu;
  Flops largest = Flops(2e9);              // of a training step, per rank
  Bytes largest_message = Bytes(4 << 20);  // of a step of a ring
  size_t product_shapes = 40;
  uint32_t networks = 12;
  uint64_t seed = 1;
  Bytes room = Bytes(0);  // of a device's memory; 0: no limit
};

LearningPlan CpuLearningPlan();
LearningPlan GpuLearningPlan();

// What a world of `ranks` ranks learns from. What there is no room for is added to `left_out`.
struct WorldPlan {
  // Groups of all sizes that divide the number of ranks; none for one rank.
  std::vector<NamedSchedule> ladder;
  std::vector<NamedSchedule> steps;
};
WorldPlan PlanLearning(const LearningPlan& plan, uint32_t ranks,
                       const std::vector<NamedSchedule>& wanted,
                       std::vector<std::string>* left_out);

// Products and copies during all-reduces, some longer and some shorter than these.
std::vector<Encounter> PlanEncounters(const LearningPlan& plan);

}  // namespace rehearse
