// Random training steps, small enough for a few CPU cores: what calibrations learn from, and what they are judged by.
//
// The i-th scenario of a seed is the same everywhere. Sizes (hidden, sequence, vocabulary, heads) for judging are drawn
// from other lists than those for learning, so that no matrix product is in both.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/scenario.h"

namespace rehearse {

enum class StepUse : uint8_t { kLearning, kJudging };

struct RandomStep {
  std::string strategy;  // "4d"
  std::string scenario;  // JSON
  Schedule schedule;
};

// Strategies take turns. Draws again until the step can be planned and takes `least` to `most` floating-point operations
// a rank.
RandomStep DrawStep(uint64_t seed, uint32_t index, uint32_t ranks, StepUse use, Flops least,
                    Flops most);

}  // namespace rehearse
