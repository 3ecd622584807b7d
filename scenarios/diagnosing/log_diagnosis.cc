#include "scenarios/diagnosing/log_diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "scenarios/diagnosing/other_measurements.h"
#include "sim/base/error.h"
#include "sim/base/threads.h"

namespace rehearse {
namespace {

constexpr double kChanges = 0.05;
constexpr double kTells = 0.1;

double MedianOf(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

std::vector<Observation> Observe(const LogExpectation& expectation,
                                 const std::vector<Seconds>& measured) {
  std::vector<Observation> observations;
  for (size_t table = 0; table < expectation.sizes().size(); ++table) {
    for (const Bytes bytes : expectation.sizes()[table])
      observations.push_back({std::log(measured.at(observations.size()).value()),
                              std::log2(std::max(bytes.value(), 1.0)), table,
                              expectation.errors()[observations.size()]});
  }
  CHECK(observations.size() == measured.size());
  return observations;
}

// What the cause explains of the distance between what was measured and what is expected.
void Describe(const std::vector<Observation>& observations, const std::vector<double>& expected,
              const std::vector<DiagnosedRow>& rows, SuspectedCause* suspect) {
  double gap = 0;
  double left = 0;
  std::vector<double> remaining;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double rest = std::abs(observations[i].log_measured - suspect->log_times[i]);
    gap += std::abs(observations[i].log_measured - expected[i]);
    left += rest;
    remaining.push_back(std::expm1(rest));
    if (std::abs(suspect->log_times[i] - expected[i]) <= kChanges) continue;
    suspect->from = suspect->from ? std::min(*suspect->from, rows[i].bytes) : rows[i].bytes;
    suspect->to = suspect->to ? std::max(*suspect->to, rows[i].bytes) : rows[i].bytes;
  }
  suspect->explained = gap > 0 ? std::clamp(1 - left / gap, 0.0, 1.0) : 0;
  suspect->remaining = MedianOf(std::move(remaining));
}

// Rows, and how far they are from what is expected.
void DescribeGap(const LogExpectation& expectation, const std::vector<Seconds>& measured,
                 const std::vector<Observation>& observations, LogDiagnosis* diagnosis) {
  for (const Trial& trial : expectation.run().trials)
    diagnosis->tables.push_back(
        fmt::format("{} of {} ranks", Name(trial.kind), trial.groups.front().size()));
  std::vector<double> factors;
  for (size_t table = 0; table < expectation.sizes().size(); ++table) {
    for (const Bytes bytes : expectation.sizes()[table]) {
      const size_t i = diagnosis->rows.size();
      const Seconds expected(std::exp(expectation.expected()[i]));
      diagnosis->rows.push_back({table, bytes, measured[i], expected, {}});
      factors.push_back(measured[i] / expected);
      if (factors.back() <= diagnosis->largest_factor && i > 0) continue;
      diagnosis->largest_factor = factors.back();
      diagnosis->largest_at = bytes;
    }
  }
  diagnosis->median_factor = MedianOf(factors);
  diagnosis->model_error = std::max_element(observations.begin(), observations.end(),
                                            [](const Observation& a, const Observation& b) {
                                              return a.octave < b.octave;
                                            })
                               ->model_error;
}

// All that is suspected, and how likely each is.
struct WeighedCauses {
  std::vector<SuspectedCause> suspects;  // causes alone, in the order of the curves, then pairs
  CauseProbabilities probabilities;

  std::vector<WeighedStrength> Strengths() const { return {suspects.begin(), suspects.end()}; }
};

WeighedCauses WeighEach(const LogExpectation& expectation,
                        const std::vector<Observation>& observations, const Evidence& evidence) {
  WeighedCauses weighed;
  for (const CauseCurve& curve : expectation.curves()) {
    weighed.suspects.push_back({Weigh(curve, evidence)});
    weighed.suspects.back().cause = curve.cause;
  }
  weighed.probabilities =
      WeighAll(observations, expectation.expected(), weighed.Strengths(), weighed.suspects.size());
  return weighed;
}

// Two at once, where no cause alone does.
void AddPairs(const LogExpectation& expectation, const std::vector<Observation>& observations,
              const Evidence& evidence, WeighedCauses* weighed) {
  const std::vector<WeighedStrength> alone = weighed->Strengths();
  if (alone.size() < 2) return;
  std::vector<const StrengthCurve*> curves;
  for (const CauseCurve& curve : expectation.curves()) curves.push_back(&curve);
  for (WeighedPair& pair :
       WeighPairs(curves, alone, expectation.expected(), evidence,
                  [&](const PairStrengths& both) { return expectation.WithBoth(both); })) {
    const PairStrengths& both = pair.likeliest;
    SuspectedCause suspect{pair.AsStrength()};
    suspect.cause = expectation.curves()[both.first].cause;
    suspect.also = expectation.curves()[both.second].cause;
    suspect.also_strength = both.second_strength;
    weighed->suspects.push_back(std::move(suspect));
  }
  weighed->probabilities =
      WeighAll(observations, expectation.expected(), weighed->Strengths(), alone.size());
}

std::vector<Finding> FindingsOf(const WeighedCauses& weighed,
                                const std::vector<Observation>& observations,
                                const std::vector<double>& expected,
                                const std::vector<DiagnosedRow>& rows) {
  const std::vector<double> each = weighed.probabilities.of_causes;
  std::vector<Finding> findings;
  for (const std::vector<size_t>& alike : AlikeCauses(weighed.Strengths())) {
    Finding& finding = findings.emplace_back();
    for (const size_t i : alike) {
      SuspectedCause suspect = weighed.suspects[i];
      suspect.probability = each[i];
      finding.probability += suspect.probability;
      Describe(observations, expected, rows, &suspect);
      finding.causes.push_back(std::move(suspect));
    }
  }
  return findings;
}

// Simulates the other measurements with the causes that are shown.
void LookElsewhere(const LogExpectation& expectation, size_t most_causes, LogDiagnosis* diagnosis) {
  diagnosis->elsewhere = OtherMeasurementsOf(expectation.run());
  std::vector<SuspectedCause*> shown;
  for (Finding& finding : diagnosis->findings)
    for (SuspectedCause& suspect : finding.causes)
      if (shown.size() < most_causes) shown.push_back(&suspect);
  InParallel(shown.size(), 0, [&](size_t i) {
    for (const OtherMeasurement& other : diagnosis->elsewhere)
      shown[i]->elsewhere.push_back(TimeWith(*shown[i], other));
  });
  for (Finding& finding : diagnosis->findings) {
    for (size_t other = 0; other < diagnosis->elsewhere.size(); ++other) {
      Seconds least(INFINITY);
      Seconds most(0);
      for (const SuspectedCause& suspect : finding.causes) {
        if (suspect.elsewhere.empty() || suspect.elsewhere[other] <= Seconds(0)) continue;
        least = std::min(least, suspect.elsewhere[other]);
        most = std::max(most, suspect.elsewhere[other]);
      }
      if (most <= Seconds(0) || most / least < 1 + kTells || most / least <= finding.tells_apart_by)
        continue;
      finding.tells_apart = other;
      finding.tells_apart_by = most / least;
    }
  }
}

}  // namespace

std::string NameOf(const SuspectedCause& suspect) {
  return suspect.also == nullptr
             ? suspect.cause->name
             : fmt::format("{} and {}", suspect.cause->name, suspect.also->name);
}

LogExpectation::LogExpectation(const CollectiveRun& run, SizesOfTables sizes)
    : sizes_(std::move(sizes)), run_(run) {
  const SeededRun seeded = WithTypicalSeed(run, sizes_);
  run_ = seeded.run;
  const bool has_several = run.cluster->node_count() > 1;
  for (const std::vector<Bytes>& of_table : sizes_)
    for (const Bytes bytes : of_table)
      errors_.push_back(
          std::hypot(ModelErrorAt(bytes, has_several), seeded.deviation[errors_.size()]));
  expected_ = SimulateLogTimes(run_, sizes_);
  curves_ = SimulateCauses(run_, sizes_, expected_);
}

std::optional<std::vector<double>> LogExpectation::WithBoth(const PairStrengths& pair) const {
  try {
    const auto one = curves_[pair.first].cause->change(run_, pair.first_strength);
    if (!one) return std::nullopt;
    const auto both = curves_[pair.second].cause->change(*one, pair.second_strength);
    if (!both) return std::nullopt;
    return SimulateLogTimes(*both, sizes_);
  } catch (const Error&) {
    return std::nullopt;
  }
}

LogDiagnosis WeighCauses(const LogExpectation& expectation, const std::vector<Seconds>& measured) {
  const std::vector<double>& expected = expectation.expected();
  const std::vector<Observation> observations = Observe(expectation, measured);
  const Evidence evidence(observations);
  LogDiagnosis diagnosis;
  DescribeGap(expectation, measured, observations, &diagnosis);

  WeighedCauses weighed = WeighEach(expectation, observations, evidence);
  diagnosis.nothing_wrong = weighed.probabilities.nothing_wrong;
  // Each size counts by what its prediction is worth.
  double slower = 0;
  for (size_t i = 0; i < observations.size(); ++i)
    slower += (observations[i].log_measured - expected[i]) / observations[i].model_error;
  const bool is_unlikely = diagnosis.nothing_wrong < 0.5;
  diagnosis.is_something_wrong = is_unlikely && slower > 0;
  diagnosis.is_faster = is_unlikely && slower <= 0;
  if (diagnosis.is_something_wrong) {
    AddPairs(expectation, observations, evidence, &weighed);
    diagnosis.findings = FindingsOf(weighed, observations, expected, diagnosis.rows);
  }
  diagnosis.something_else = weighed.probabilities.something_else;
  const std::vector<double>& best =
      diagnosis.findings.empty() ? expected : diagnosis.findings.front().causes.front().log_times;
  diagnosis.noise = evidence.NoiseOf(best);
  diagnosis.chance = evidence.ChanceOf(expected, diagnosis.noise);
  if (!diagnosis.findings.empty())
    for (size_t i = 0; i < diagnosis.rows.size(); ++i)
      diagnosis.rows[i].explained = Seconds(std::exp(best[i]));
  return diagnosis;
}

LogDiagnosis DiagnoseLog(const CollectiveRun& run, const std::vector<NcclTable>& tables) {
  CHECK(tables.size() == run.trials.size());
  constexpr size_t kMostCausesElsewhere = 8;
  SizesOfTables sizes;
  std::vector<Seconds> measured;
  for (const NcclTable& table : tables) {
    const size_t count = std::min(table.rows.size(), kMostUsedRows);
    sizes.emplace_back();
    for (size_t i = 0; i < count; ++i) {
      const size_t row = count == 1 ? 0 : i * (table.rows.size() - 1) / (count - 1);
      sizes.back().push_back(table.rows[row].bytes);
      measured.push_back(table.rows[row].time);
    }
  }
  const LogExpectation expectation(run, std::move(sizes));
  LogDiagnosis diagnosis = WeighCauses(expectation, measured);
  if (diagnosis.is_something_wrong) LookElsewhere(expectation, kMostCausesElsewhere, &diagnosis);
  return diagnosis;
}

}  // namespace rehearse
