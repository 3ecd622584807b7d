// Random training steps, for a few CPU cores or for GPUs: calibrations learn from them and are
// judged by them.
//
// The i-th network of a seed is the same everywhere. Sizes (hidden, sequence, vocabulary, heads)
// for judging come from other lists than those for learning, so that no matrix product is in both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"

namespace rehearse {

enum class StepUse : uint8_t { kLearning, kJudging };
enum class StepDevice : uint8_t {
  kCpu,  // small, in fp32
  kGpu,  // from small to large, in bf16, with heads of 64 or 128
};

struct RandomStep {
  std::string strategy;  // "4d"
  std::string name;      // "4d 2x1x1x1 h64 l2 s32 b4 v256"
  std::string scenario;  // JSON
  Schedule schedule;
};

// The steps of one random network, one for each kind of strategy, so that strategies can be
// compared; their meshes and switches are also random. "stages" and "experts" change the network:
// they have micro-batches, and experts in place of each MLP. So do "pairs", whose passes go in
// pairs (workloads/planner/pair_order.h): they are drawn for judging only, as their kernels and
// collectives are those of other kinds. Draws again until all can be planned and take `least` to
// `most` floating-point operations per rank.
std::vector<RandomStep> DrawSteps(uint64_t seed, uint32_t index, uint32_t ranks, StepUse use,
                                  Flops least, Flops most, StepDevice device = StepDevice::kCpu);

}  // namespace rehearse
