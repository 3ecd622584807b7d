// Causes at all of their strengths, weighed by what was measured: what diagnoses of logs and of
// steps have in common.
//
// A cause is as likely as the density of what was measured under it, averaged over its strengths
// (scenarios/diagnosing/evidence.h): one whose strength can be anything must fit better than one
// that comes in one way only. Beforehand nothing is wrong in half of all cases; otherwise all
// causes that would show are as likely as each other, and as something that no table has, for which
// all smooth changes up to several times are as likely.
#pragma once

#include <cstddef>
#include <vector>

#include "scenarios/diagnosing/evidence.h"

namespace rehearse {

// Causes whose likeliest strengths fit within this factor cannot be told apart.
inline constexpr double kAsLikely = 7;

// What is predicted with a cause: it is simulated at some strengths, and interpolated between.
struct StrengthCurve {
  // The logarithm of a time is interpolated over that of the strength. Otherwise the strengths are
  // just numbers of the ways in which it may happen.
  bool is_graded = false;
  std::vector<double> strengths;               // those that are possible here
  std::vector<std::vector<double>> log_times;  // by strength

  // The strengths that are compared with what was measured, all as likely beforehand.
  std::vector<double> Candidates() const;
  std::vector<double> At(double strength) const;
};

struct WeighedStrength {
  double strength = 0;      // the likeliest
  double strength_low = 0;  // of the strengths that are nearly as likely
  double strength_high = 0;
  double log_fit = 0;             // density at the likeliest
  double log_evidence = 0;        // averaged over all strengths
  std::vector<double> log_times;  // at the likeliest
};
WeighedStrength Weigh(const StrengthCurve& curve, const Evidence& evidence);

struct CauseProbabilities {
  double nothing_wrong = 1;
  double something_else = 0;
  std::vector<double> of_causes;
};
// Of `causes`, the first `alone` are causes alone, and the others pairs, whose evidence includes
// how much less likely they are beforehand (PairPrior).
CauseProbabilities WeighAll(const std::vector<Observation>& observations,
                            const std::vector<double>& expected,
                            const std::vector<WeighedStrength>& causes, size_t alone);

// The logarithm of how likely one pair of so many causes is beforehand, beside one cause alone: two
// at once are a tenth as likely as one.
double PairPrior(size_t causes);

// Positions of the causes: those that cannot be told from the likeliest, then those that cannot be
// told from the likeliest of the rest, and so on.
std::vector<std::vector<size_t>> AlikeCauses(const std::vector<WeighedStrength>& causes);

}  // namespace rehearse
