// How long the steps of a training took, as its program logged them.
//
// Megatron-LM, Megatron-DeepSpeed, Megatron-Bridge, NeMo, torchtitan, nanotron, MaxText, torchtune,
// axolotl and Hugging Face's Trainer (its dictionaries, its summary, or else its progress bar), and
// DeepSpeed; the table of what each writes is in the .cc. Launchers may have put names and times in
// front of lines, and colours between. The first steps are left out: they compile and warm up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

enum class StepUnit : uint8_t {
  kSeconds,                   // of a step
  kTokensPerSecondOfADevice,  // of those that a step has
  kSamplesPerSecond,          // of all ranks
};

struct TrainingLog {
  std::string program;
  StepUnit unit = StepUnit::kSeconds;
  std::vector<double> values;  // of the steps that count, sorted
  size_t left_out = 0;         // steps at the beginning

  double Median() const { return values[values.size() / 2]; }
  double Share(double part) const;  // 0.1: less than that are 10 % of the steps
};

// Throws Error if no line says how long a step took.
TrainingLog ReadTrainingLog(std::string_view text, const std::string& name);

}  // namespace rehearse
