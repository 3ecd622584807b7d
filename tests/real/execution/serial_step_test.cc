// The serial step of the planner and the CPU kernels against a textbook's decoder with automatic
// differentiation, which is checked by finite differences.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "real/execution/check.h"
#include "tests/support/preset_strategies.h"
#include "tests/support/reference_decoder.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace serial_step_test {

constexpr uint64_t kSeed = 5;

struct Step {
  GptModel model;
  Training training;
};

Step TinyGpt() {
  Step step;
  step.model.name = "tiny";
  step.model.layers = 2;
  step.model.hidden = 8;
  step.model.heads = 2;
  step.model.vocabulary = 11;
  step.training.batch = 4;
  step.training.sequence = 3;
  step.training.micro_batches = 2;
  step.training.recomputation = Recomputation::kNone;
  return step;
}

// Grouped queries, RMS norms, SwiGLU, an output layer of its own.
Step TinyLlama() {
  Step step = TinyGpt();
  step.model.heads = 4;
  step.model.llama = true;
  step.model.groups = 2;
  step.model.feed_forward = 12;
  step.model.tied = false;
  return step;
}

// Latent attention, and a token further ahead.
Step TinyLatent() {
  Step step = TinyLlama();
  step.model.groups = 0;
  step.model.latent = LatentAttention{5, 3, 2, 3, 4};
  step.model.predict_ahead = 1;
  return step;
}

// Low-rank adapters beside frozen matrices.
Step TinyAdapted() {
  Step step = TinyLlama();
  step.model.lora = LoraAdapters{3, {true, true, true, true}};
  return step;
}

// Two documents in a sequence, adapters beside some products.
Step TinyPacked() {
  Step step = TinyLlama();
  step.training.sequence = 6;
  step.training.document = 3;
  step.model.lora = LoraAdapters{2, {true, false, false, true}};
  return step;
}

// Attention and MLP side by side.
Step TinyParallel(bool llama, ParallelBlocks parallel) {
  Step step = llama ? TinyLlama() : TinyGpt();
  step.model.parallel = parallel;
  return step;
}

// State-space layers beside attention and an MLP with a squared ReLU. Chunks do not divide the
// sequence, which is longer than what the convolution sees.
Step TinyHybrid() {
  Step step = TinyLlama();
  step.model.layers = 4;
  step.model.layer_pattern = "M*-M";
  step.model.squared_relu = true;
  step.model.mamba = StateSpaceModel{
      .state = 3, .head = 2, .groups = 2, .heads = 4, .expand = 2, .conv = 3, .chunk = 2};
  step.training.sequence = 5;
  step.training.batch = 2;
  step.training.micro_batches = 1;
  return step;
}

// Three tokens further ahead, by layers with weights of their own or the first one's.
Step TinyAhead(bool shares) {
  Step step = TinyLlama();
  step.model.layers = 1;
  step.model.predict_ahead = 3;
  step.model.shares_ahead = shares;
  return step;
}

// The same with letters, each layer an MLP and attention.
Step TinyAheadOfPattern() {
  Step step = TinyHybrid();
  step.model.layers = 2;
  step.model.layer_pattern = "M*";
  step.model.predict_ahead = 2;
  step.model.ahead_pattern = "-*";
  step.model.shares_ahead = true;
  return step;
}

std::vector<Step> AllSteps() {
  return {TinyGpt(),
          TinyLlama(),
          TinyLatent(),
          TinyAdapted(),
          TinyPacked(),
          TinyParallel(true, ParallelBlocks::kOneNorm),
          TinyParallel(true, ParallelBlocks::kTwoNorms),
          TinyParallel(false, ParallelBlocks::kOneNorm),
          TinyParallel(false, ParallelBlocks::kTwoNorms),
          TinyHybrid(),
          TinyAhead(true),
          TinyAhead(false),
          TinyAheadOfPattern()};
}

TEST(ReferenceDecoderTest, ItsGradientsAreFiniteDifferences) {
  for (const Step& step : AllSteps()) {
    const StepNumbers numbers = ReferenceDecoderStep(step.model, step.training, kSeed);
    for (const auto& [name, gradient] : numbers.arrays) {
      const std::string parameter = name.substr(std::string("gradient of ").size());
      const auto loss = [&](double shift) {
        return ReferenceDecoderStep(step.model, step.training, kSeed, parameter, shift).loss;
      };
      // Central differences with two shifts, whose errors of h² cancel (norms of 3 columns curve
      // strongly): what is left is h⁴, and 1e-16/h.
      const auto slope = [&](double shift) { return (loss(shift) - loss(-shift)) / (2 * shift); };
      constexpr double kShift = 1e-5;
      EXPECT_NEAR(gradient.values[0], (4 * slope(kShift) - slope(2 * kShift)) / 3, 1e-9) << name;
    }
  }
}

TEST(SerialStepTest, IsTheTextbooks) {
  for (const Step& step : AllSteps()) {
    const StepNumbers expected = ReferenceDecoderStep(step.model, step.training, kSeed);
    const Network network = MakeDecoder(step.model, step.training);
    const StepNumbers actual = ComputeSerially(
        PlanStep(network, step.training, MakeDataParallel(1, false, network)), kSeed);
    EXPECT_NEAR(actual.loss, expected.loss, 1e-13 * expected.loss);
    for (const auto& [name, array] : expected.arrays) {
      ASSERT_EQ(actual.arrays.count(name), 1u) << name;
      const GlobalArray& own = actual.arrays.at(name);
      ASSERT_EQ(own.values.size(), array.values.size()) << name;
      double scale = 1e-8;  // gradients of key biases are zero except for rounding
      for (const double value : array.values) scale = std::max(scale, std::abs(value));
      for (size_t i = 0; i < array.values.size(); ++i) {
        EXPECT_NEAR(own.values[i], array.values[i], 1e-12 * scale) << name << " " << i;
      }
    }
  }
}

TEST(SerialStepTest, RecomputationChangesNothing) {
  Step step = TinyGpt();
  const Network network = MakeDecoder(step.model, step.training);
  const Strategy serial = MakeDataParallel(1, false, network);
  const StepNumbers kept = ComputeSerially(PlanStep(network, step.training, serial), kSeed);
  for (const Recomputation mode : {Recomputation::kSelective, Recomputation::kFull}) {
    step.training.recomputation = mode;
    const StepNumbers again = ComputeSerially(PlanStep(network, step.training, serial), kSeed);
    EXPECT_EQ(again.loss, kept.loss);
    for (const auto& [name, array] : kept.arrays) {
      EXPECT_EQ(again.arrays.at(name).values, array.values) << name;
    }
  }
}

}  // namespace serial_step_test
}  // namespace rehearse
