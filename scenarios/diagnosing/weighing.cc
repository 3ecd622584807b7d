#include "scenarios/diagnosing/weighing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr size_t kStepsBetween = 6;      // candidates from one simulated strength to the next
constexpr double kNothingIsWrong = 0.5;  // beforehand
constexpr double kTwoAtOnce = 0.1;       // beforehand, beside one cause alone
constexpr double kLooseness = 8;         // of the model error, for a cause that is in no table

}  // namespace

std::vector<double> StrengthCurve::Candidates() const {
  if (!is_graded) return strengths;
  std::vector<double> candidates;
  for (size_t i = 0; i + 1 < strengths.size(); ++i) {
    for (size_t step = 0; step < kStepsBetween; ++step)
      candidates.push_back(strengths[i] * std::pow(strengths[i + 1] / strengths[i],
                                                   static_cast<double>(step) / kStepsBetween));
  }
  candidates.push_back(strengths.back());
  return candidates;
}

std::vector<double> StrengthCurve::At(double strength) const {
  for (size_t i = 0; i < strengths.size(); ++i)
    if (strengths[i] == strength) return log_times[i];
  // They rise or fall; find the two that it lies between.
  size_t after = 1;
  while (after + 1 < strengths.size() &&
         (strength - strengths[after - 1]) * (strength - strengths[after]) > 0)
    ++after;
  CHECK(after < strengths.size());
  const double part =
      std::log(strength / strengths[after - 1]) / std::log(strengths[after] / strengths[after - 1]);
  std::vector<double> between;
  for (size_t row = 0; row < log_times[after].size(); ++row)
    between.push_back(log_times[after - 1][row] +
                      part * (log_times[after][row] - log_times[after - 1][row]));
  return between;
}

WeighedStrength Weigh(const StrengthCurve& curve, const Evidence& evidence) {
  WeighedStrength weighed;
  const std::vector<double> candidates = curve.Candidates();
  std::vector<double> densities;
  densities.reserve(candidates.size());
  for (const double strength : candidates)
    densities.push_back(evidence.LogDensity(curve.At(strength)));
  const auto best =
      static_cast<size_t>(std::max_element(densities.begin(), densities.end()) - densities.begin());
  weighed.log_evidence = LogMeanExp(densities);
  weighed.strength = candidates[best];
  weighed.log_fit = densities[best];
  weighed.log_times = curve.At(weighed.strength);
  weighed.strength_low = weighed.strength_high = weighed.strength;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (densities[i] < densities[best] - std::log(kAsLikely)) continue;
    weighed.strength_low = std::min(weighed.strength_low, candidates[i]);
    weighed.strength_high = std::max(weighed.strength_high, candidates[i]);
  }
  return weighed;
}

CauseProbabilities WeighAll(const std::vector<Observation>& observations,
                            const std::vector<double>& expected,
                            const std::vector<WeighedStrength>& causes, size_t alone) {
  const double nothing = Evidence(observations).LogDensity(expected) + std::log(kNothingIsWrong);
  const double each = std::log((1 - kNothingIsWrong) / static_cast<double>(alone + 1));
  const double else_wrong = Evidence(observations, kLooseness).LogDensity(expected) + each;
  std::vector<double> all = {nothing, else_wrong};
  for (const WeighedStrength& cause : causes) all.push_back(cause.log_evidence + each);
  const double sum = LogMeanExp(all) + std::log(static_cast<double>(all.size()));
  CauseProbabilities probabilities;
  probabilities.nothing_wrong = std::exp(nothing - sum);
  probabilities.something_else = std::exp(else_wrong - sum);
  for (const WeighedStrength& cause : causes)
    probabilities.of_causes.push_back(std::exp(cause.log_evidence + each - sum));
  return probabilities;
}

double PairPrior(size_t causes) {
  const double pairs = static_cast<double>(causes) * static_cast<double>(causes - 1) / 2;
  return std::log(kTwoAtOnce * static_cast<double>(causes) / pairs);
}

std::vector<std::vector<size_t>> AlikeCauses(const std::vector<WeighedStrength>& causes) {
  std::vector<size_t> order(causes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return causes[a].log_evidence > causes[b].log_evidence;
  });
  std::vector<std::vector<size_t>> groups;
  std::vector<bool> is_taken(causes.size());
  for (const size_t first : order) {
    if (is_taken[first]) continue;
    groups.emplace_back();
    for (const size_t other : order) {
      if (is_taken[other] ||
          std::abs(causes[first].log_fit - causes[other].log_fit) > std::log(kAsLikely))
        continue;
      is_taken[other] = true;
      groups.back().push_back(other);
    }
  }
  return groups;
}

}  // namespace rehearse
