// Two causes at once, looked for where no cause alone does.
//
// Simulating all pairs at all strengths would take as long as a thousand diagnoses. Instead what a
// pair does is guessed from what each does alone: either both lengthen a size, or the stronger one
// hides the other, and whichever guess agrees better is taken. The few pairs whose guesses agree
// best with what was measured, and better than any cause alone, are simulated, each a few times: a
// simulation at the likeliest strengths corrects the guesses for the strengths around, which may
// move the likeliest.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "scenarios/diagnosing/evidence.h"
#include "scenarios/diagnosing/weighing.h"

namespace rehearse {

// Positions of two curves, the first of them the lower, and a strength for each.
struct PairStrengths {
  size_t first = 0;
  size_t second = 0;
  double first_strength = 0;
  double second_strength = 0;
};

// The logarithms of the times with both; nothing where they cannot be together.
using PairSimulation = std::function<std::optional<std::vector<double>>(const PairStrengths&)>;

struct WeighedPair {
  PairStrengths likeliest;
  double log_fit = 0;  // density there
  // Averaged over all strengths of both, and less by PairPrior().
  double log_evidence = 0;
  std::vector<double> log_times;  // there, simulated

  // The first cause's strength, with no range.
  WeighedStrength AsStrength() const {
    const double strength = likeliest.first_strength;
    return {strength, strength, strength, log_fit, log_evidence, log_times};
  }
};

// The pairs that were simulated and fit better than each of `alone`, the causes of the curves, by
// more than a factor. The likeliest are first.
std::vector<WeighedPair> WeighPairs(const std::vector<const StrengthCurve*>& curves,
                                    const std::vector<WeighedStrength>& alone,
                                    const std::vector<double>& expected, const Evidence& evidence,
                                    const PairSimulation& simulate);

}  // namespace rehearse
