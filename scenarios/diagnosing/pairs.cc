#include "scenarios/diagnosing/pairs.h"

#include <algorithm>
#include <cmath>

#include "sim/base/threads.h"

namespace rehearse {
namespace {

constexpr size_t kSimulatedPairs = 24;
constexpr size_t kSimulationsOfAPair = 3;
constexpr double kFitsBetter = 20;

enum class Rule : uint8_t { kBoth, kStronger };
constexpr Rule kRules[] = {Rule::kBoth, Rule::kStronger};

// What the pair makes of the times, if it can be told from each alone.
std::vector<double> Guess(const std::vector<double>& expected, const std::vector<double>& first,
                          const std::vector<double>& second, Rule rule) {
  std::vector<double> both;
  both.reserve(expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    both.push_back(rule == Rule::kBoth ? first[i] + second[i] - expected[i]
                                       : std::max(first[i], second[i]));
  return both;
}

// A curve at all strengths that are compared.
struct FineCurve {
  std::vector<double> strengths;
  std::vector<std::vector<double>> log_times;
};

FineCurve Fine(const StrengthCurve& curve) {
  FineCurve fine{curve.Candidates(), {}};
  for (const double strength : fine.strengths) fine.log_times.push_back(curve.At(strength));
  return fine;
}

struct GuessedPair {
  size_t first = 0;
  size_t second = 0;
  Rule rule = Rule::kBoth;
  double log_fit = 0;
};

// The better of the two guesses, at the strengths that were simulated.
GuessedPair GuessPair(const std::vector<const StrengthCurve*>& curves, size_t first, size_t second,
                      const std::vector<double>& expected, const Evidence& evidence) {
  GuessedPair best{first, second, Rule::kBoth, -INFINITY};
  for (const Rule rule : kRules) {
    for (const std::vector<double>& a : curves[first]->log_times) {
      for (const std::vector<double>& b : curves[second]->log_times) {
        const double fit = evidence.LogDensity(Guess(expected, a, b, rule));
        if (fit > best.log_fit) best = {first, second, rule, fit};
      }
    }
  }
  return best;
}

// What simulations have shown that the guesses are off by is the same for all strengths.
class RefinedPair {
 public:
  RefinedPair(const GuessedPair& pair, const std::vector<const StrengthCurve*>& curves,
              const std::vector<double>& expected, const Evidence& evidence)
      : pair_(pair),
        first_(Fine(*curves[pair.first])),
        second_(Fine(*curves[pair.second])),
        expected_(expected),
        evidence_(evidence),
        off_(expected.size()) {}

  std::optional<WeighedPair> Refine(const PairSimulation& simulate) {
    std::optional<WeighedPair> best;
    for (size_t i = 0; i < kSimulationsOfAPair; ++i) {
      const auto [a, b] = Likeliest();
      const PairStrengths strengths{pair_.first, pair_.second, first_.strengths[a],
                                    second_.strengths[b]};
      if (best && best->likeliest.first_strength == strengths.first_strength &&
          best->likeliest.second_strength == strengths.second_strength)
        break;
      std::optional<std::vector<double>> log_times = simulate(strengths);
      if (!log_times) return std::nullopt;
      const std::vector<double> guess =
          Guess(expected_, first_.log_times[a], second_.log_times[b], pair_.rule);
      for (size_t row = 0; row < off_.size(); ++row) off_[row] = (*log_times)[row] - guess[row];
      const double fit = evidence_.LogDensity(*log_times);
      if (best && fit <= best->log_fit) continue;
      best = WeighedPair{strengths, fit, 0, std::move(*log_times)};
    }
    if (best) best->log_evidence = LogMeanExp(Densities());
    return best;
  }

 private:
  // Of all strengths of both, those of the second fastest.
  std::vector<double> Densities() const {
    std::vector<double> densities;
    densities.reserve(first_.strengths.size() * second_.strengths.size());
    for (const std::vector<double>& a : first_.log_times) {
      for (const std::vector<double>& b : second_.log_times) {
        std::vector<double> times = Guess(expected_, a, b, pair_.rule);
        for (size_t row = 0; row < times.size(); ++row) times[row] += off_[row];
        densities.push_back(evidence_.LogDensity(times));
      }
    }
    return densities;
  }

  std::pair<size_t, size_t> Likeliest() const {
    const std::vector<double> densities = Densities();
    const auto best = static_cast<size_t>(std::max_element(densities.begin(), densities.end()) -
                                          densities.begin());
    return {best / second_.strengths.size(), best % second_.strengths.size()};
  }

  GuessedPair pair_;
  FineCurve first_;
  FineCurve second_;
  const std::vector<double>& expected_;
  const Evidence& evidence_;
  std::vector<double> off_;  // by row
};

}  // namespace

std::vector<WeighedPair> WeighPairs(const std::vector<const StrengthCurve*>& curves,
                                    const std::vector<WeighedStrength>& alone,
                                    const std::vector<double>& expected, const Evidence& evidence,
                                    const PairSimulation& simulate) {
  double least = -INFINITY;  // that a pair must reach
  for (const WeighedStrength& cause : alone)
    least = std::max(least, cause.log_fit + std::log(kFitsBetter));
  std::vector<GuessedPair> guessed;
  for (size_t first = 0; first < curves.size(); ++first)
    for (size_t second = first + 1; second < curves.size(); ++second)
      guessed.push_back({first, second});
  InParallel(guessed.size(), 0, [&](size_t i) {
    guessed[i] = GuessPair(curves, guessed[i].first, guessed[i].second, expected, evidence);
  });
  std::stable_sort(guessed.begin(), guessed.end(), [](const GuessedPair& a, const GuessedPair& b) {
    return a.log_fit > b.log_fit;
  });
  guessed.resize(std::min(guessed.size(), kSimulatedPairs));
  while (!guessed.empty() && guessed.back().log_fit < least) guessed.pop_back();

  std::vector<std::optional<WeighedPair>> refined(guessed.size());
  InParallel(guessed.size(), 0, [&](size_t i) {
    refined[i] = RefinedPair(guessed[i], curves, expected, evidence).Refine(simulate);
  });
  std::vector<WeighedPair> pairs;
  for (std::optional<WeighedPair>& pair : refined)
    if (pair && pair->log_fit >= least) pairs.push_back(std::move(*pair));
  for (WeighedPair& pair : pairs) pair.log_evidence += PairPrior(curves.size());
  std::stable_sort(pairs.begin(), pairs.end(), [](const WeighedPair& a, const WeighedPair& b) {
    return a.log_evidence > b.log_evidence;
  });
  return pairs;
}

}  // namespace rehearse
