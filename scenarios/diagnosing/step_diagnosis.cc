#include "scenarios/diagnosing/step_diagnosis.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "scenarios/diagnosing/pairs.h"
#include "scenarios/evaluating/engine.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/playing/validated_steps.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/threads.h"

namespace rehearse {
namespace {

constexpr double kStepShows = 0.02;
constexpr double kErrorOfOthers = 0.12;  // of predictions, where no published step is like it
constexpr double kLeastError = 0.04;
constexpr double kErrorOfParts = 0.25;  // of communication and idle time
constexpr double kFloor = 0.05;         // of parts, of the step
// How much less likely a cause is under which ranks would differ where they do not, or would not
// where they do: a guess, since neither a late rank nor none is ever quite certain.
constexpr double kContradicted = 1.0 / 30;
// Two runs are like two sizes of a log that are an octave apart.
constexpr double kOctave = 28;

// A scenario with changes, played.
class StepPlayer {
 public:
  explicit StepPlayer(const JsonDocument& scenario) : scenario_(scenario) {}

  // Throws Error if it cannot be.
  Result Play(const std::vector<std::string>& first, const std::vector<std::string>& second) {
    JsonDocument document = scenario_;
    for (const std::string& change : first) document.Set(change);
    for (const std::string& change : second) document.Set(change);
    Scenario read = engine_.Read(document);
    read.allow_out_of_memory = true;
    return engine_.Play(read);
  }

 private:
  const JsonDocument& scenario_;
  Engine engine_{{.allow_out_of_memory = true, .hash = false}};
};

StepParts PartsOf(const Result& result) {
  return {result.breakdown.compute, result.breakdown.exposed_communication, result.breakdown.idle};
}

// What is expected of each measured run.
struct StepExpectation {
  std::vector<Result> results;
  std::vector<double> log_times;
  Seconds floor;
};

// With a share of the step more in which nothing runs.
Result Stalled(const Result& result, double share) {
  Result stalled = result;
  stalled.breakdown.idle += share * result.step;
  stalled.step = (1 + share) * result.step;
  stalled.tokens_per_second = result.tokens_per_second / (1 + share);
  stalled.model_flops_utilization = result.model_flops_utilization / (1 + share);
  return stalled;
}

// What is wrong: one cause or two, each at a strength.
struct Strengthened {
  const StepCause* cause = nullptr;
  double strength = 0;
};

// What a measured run comes to with all of them. Throws Error if it cannot be; nothing if one of
// them has nothing to change.
std::optional<Result> PlayWith(const std::vector<Strengthened>& causes, const StepSubject& subject,
                               const MeasuredStep& measured, StepPlayer& player) {
  std::vector<std::string> changes;
  for (const Strengthened& one : causes) {
    if (one.cause->only_adds) continue;
    const std::vector<std::string> own = one.cause->changes(subject, one.strength);
    if (own.empty()) return std::nullopt;
    changes.insert(changes.end(), own.begin(), own.end());
  }
  Result result = player.Play(measured.changes, changes);
  for (const Strengthened& one : causes)
    if (one.cause->only_adds) result = Stalled(result, one.strength);
  return result;
}

// What each measured run takes with them; none if one has nothing to change. Throws Error if it
// cannot be.
std::vector<double> LogTimesWith(const std::vector<Strengthened>& causes,
                                 const StepSubject& subject,
                                 const std::vector<MeasuredStep>& measured,
                                 const StepExpectation& expected, StepPlayer& player) {
  std::vector<double> log_times;
  for (size_t i = 0; i < measured.size(); ++i) {
    // What only adds needs no play.
    if (causes.size() == 1 && causes.front().cause->only_adds) {
      const Result stalled = Stalled(expected.results[i], causes.front().strength);
      log_times.push_back(LogTimeOf(measured[i], stalled, expected.floor));
      continue;
    }
    const std::optional<Result> result = PlayWith(causes, subject, measured[i], player);
    if (!result) return {};
    log_times.push_back(LogTimeOf(measured[i], *result, expected.floor));
  }
  return log_times;
}

struct StepCurve : StrengthCurve {
  const StepCause* cause = nullptr;
};

// What the cause comes to at its strengths; none that shows.
struct SimulatedStrength {
  const StepCause* cause = nullptr;
  double strength = 0;
  std::vector<double> log_times;
};

std::vector<StepCurve> CurvesOf(const StepSubject& subject,
                                const std::vector<MeasuredStep>& measured,
                                const StepExpectation& expected, StepPlayer& player) {
  std::vector<SimulatedStrength> all;
  for (const StepCause& cause : StepCauses())
    for (const double strength : cause.strengths) all.push_back({&cause, strength, {}});
  InParallel(all.size(), 0, [&](size_t i) {
    try {
      all[i].log_times =
          LogTimesWith({{all[i].cause, all[i].strength}}, subject, measured, expected, player);
    } catch (const Error&) {
      // The strategy has no such switch, or the machine no such part.
    }
  });
  std::vector<StepCurve> curves;
  for (size_t begin = 0; begin < all.size();) {
    StepCurve curve;
    curve.cause = all[begin].cause;
    curve.is_graded = curve.cause->is_graded;
    double most = 0;
    for (; begin < all.size() && all[begin].cause == curve.cause; ++begin) {
      if (all[begin].log_times.empty()) continue;
      double slower = 0;
      for (size_t i = 0; i < measured.size(); ++i)
        slower = std::max(slower, all[begin].log_times[i] - expected.log_times[i]);
      if (!curve.is_graded && slower < kStepShows) continue;
      most = std::max(most, slower);
      curve.strengths.push_back(all[begin].strength);
      curve.log_times.push_back(std::move(all[begin].log_times));
    }
    if (most >= kStepShows && curve.strengths.size() > (curve.is_graded ? 1u : 0u))
      curves.push_back(std::move(curve));
  }
  return curves;
}

// What a profile would show of the causes that come first.
void FindParts(const StepSubject& subject, StepPlayer& player, StepDiagnosis* diagnosis) {
  constexpr size_t kMostShown = 12;
  std::vector<SuspectedStepCause*> shown;
  for (StepFinding& finding : diagnosis->findings)
    for (SuspectedStepCause& suspect : finding.causes)
      if (shown.size() < kMostShown) shown.push_back(&suspect);
  InParallel(shown.size(), 0, [&](size_t i) {
    SuspectedStepCause& suspect = *shown[i];
    std::vector<Strengthened> causes = {{suspect.cause, suspect.strength}};
    if (suspect.also != nullptr) causes.push_back({suspect.also, suspect.also_strength});
    const auto played = PlayWith(causes, subject, diagnosis->measured.front(), player);
    if (played) suspect.parts = PartsOf(*played);
  });
}

// Plays what was measured as it should be.
StepExpectation Expect(const std::vector<MeasuredStep>& measured, StepPlayer& player,
                       StepDiagnosis* diagnosis) {
  StepExpectation expectation;
  for (const MeasuredStep& one : measured) {
    const bool is_first = expectation.results.empty();
    expectation.results.push_back(player.Play(one.changes, {}));
    const Result& result = expectation.results.back();
    if (is_first) {
      diagnosis->expected = PartsOf(result);
      diagnosis->floor = expectation.floor = kFloor * result.step;
    }
    expectation.log_times.push_back(LogTimeOf(one, result, diagnosis->floor));
    diagnosis->log_measured.push_back(LogTimeOf(one, diagnosis->floor));
  }
  diagnosis->log_expected = expectation.log_times;
  return expectation;
}

// What predictions of such steps err by.
void FindModelError(Scenario scenario, StepDiagnosis* diagnosis) {
  diagnosis->model_error = kErrorOfOthers;
  scenario.allow_out_of_memory = true;
  const std::vector<Job> jobs = Prepare(scenario);
  const std::optional<Trust> trust = TrustOf(scenario, jobs.front());
  if (!trust || trust->rows == 0) return;
  // Of a normal error, the mean without sign is 0.8 of the standard error.
  diagnosis->model_error = std::max(kLeastError, trust->mean_error / 0.8);
  diagnosis->model_error_of = fmt::format("{} published steps", trust->rows) +
                              (trust->like.empty() ? "" : fmt::format(" ({})", trust->like));
}

std::vector<Observation> Observe(const StepDiagnosis& diagnosis) {
  std::vector<Observation> observations;
  for (size_t i = 0; i < diagnosis.measured.size(); ++i) {
    const StepMeasure measure = diagnosis.measured[i].measure;
    Observation observation{diagnosis.log_measured[i], kOctave + static_cast<double>(i), 0,
                            diagnosis.model_error};
    if (IsPart(measure)) {
      observation.octave = kOctave;
      observation.table = static_cast<size_t>(measure);
      if (measure != StepMeasure::kCompute)
        observation.model_error = std::max(kErrorOfParts, observation.model_error);
    }
    observations.push_back(observation);
  }
  return observations;
}

// All that is suspected: causes alone, in the order of the curves, then pairs.
struct WeighedSteps {
  std::vector<SuspectedStepCause> suspects;
  CauseProbabilities probabilities;

  std::vector<WeighedStrength> Strengths() const { return {suspects.begin(), suspects.end()}; }
};

// Whether one of its causes makes ranks compute longer than others; nothing: it may.
std::optional<bool> MakesRanksDiffer(const SuspectedStepCause& suspect) {
  const std::optional<bool> first = suspect.cause->ranks_differ;
  if (suspect.also == nullptr) return first;
  const std::optional<bool> second = suspect.also->ranks_differ;
  if (first == true || second == true) return true;
  return first == false && second == false ? std::optional(false) : std::nullopt;
}

void CountRanks(std::optional<bool> ranks_differ, SuspectedStepCause* suspect) {
  const std::optional<bool> would = MakesRanksDiffer(*suspect);
  if (!ranks_differ || !would || *ranks_differ == *would) return;
  suspect->log_fit += std::log(kContradicted);
  suspect->log_evidence += std::log(kContradicted);
}

WeighedSteps WeighEach(const std::vector<StepCurve>& curves,
                       const std::vector<Observation>& observations,
                       const std::vector<double>& expected, const Evidence& evidence,
                       std::optional<bool> ranks_differ) {
  WeighedSteps weighed;
  for (const StepCurve& curve : curves) {
    weighed.suspects.push_back({Weigh(curve, evidence)});
    weighed.suspects.back().cause = curve.cause;
    CountRanks(ranks_differ, &weighed.suspects.back());
  }
  weighed.probabilities =
      WeighAll(observations, expected, weighed.Strengths(), weighed.suspects.size());
  return weighed;
}

// Two at once, where no cause alone does.
void AddPairs(const std::vector<StepCurve>& curves, const std::vector<Observation>& observations,
              const std::vector<double>& expected, const Evidence& evidence,
              std::optional<bool> ranks_differ,
              const std::function<std::vector<double>(const std::vector<Strengthened>&)>& play,
              WeighedSteps* weighed) {
  const std::vector<WeighedStrength> alone = weighed->Strengths();
  if (alone.size() < 2 || observations.size() < 2) return;
  std::vector<const StrengthCurve*> of_causes;
  for (const StepCurve& curve : curves) of_causes.push_back(&curve);
  const PairSimulation simulate =
      [&](const PairStrengths& both) -> std::optional<std::vector<double>> {
    try {
      std::vector<double> times = play({{curves[both.first].cause, both.first_strength},
                                        {curves[both.second].cause, both.second_strength}});
      if (times.empty()) return std::nullopt;
      return times;
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  for (WeighedPair& pair : WeighPairs(of_causes, alone, expected, evidence, simulate)) {
    const PairStrengths& both = pair.likeliest;
    SuspectedStepCause suspect{pair.AsStrength()};
    suspect.cause = curves[both.first].cause;
    suspect.also = curves[both.second].cause;
    suspect.also_strength = both.second_strength;
    CountRanks(ranks_differ, &suspect);
    weighed->suspects.push_back(std::move(suspect));
  }
  weighed->probabilities = WeighAll(observations, expected, weighed->Strengths(), alone.size());
}

std::vector<StepFinding> FindingsOf(const WeighedSteps& weighed, const StepDiagnosis& diagnosis) {
  const std::vector<double> each = weighed.probabilities.of_causes;
  double gap = 0;
  for (size_t i = 0; i < diagnosis.measured.size(); ++i)
    gap += std::abs(diagnosis.log_measured[i] - diagnosis.log_expected[i]);
  std::vector<StepFinding> findings;
  for (const std::vector<size_t>& alike : AlikeCauses(weighed.Strengths())) {
    StepFinding& finding = findings.emplace_back();
    for (const size_t i : alike) {
      SuspectedStepCause suspect = weighed.suspects[i];
      suspect.probability = each[i];
      finding.probability += suspect.probability;
      double left = 0;
      for (size_t row = 0; row < diagnosis.measured.size(); ++row)
        left += std::abs(diagnosis.log_measured[row] - suspect.log_times[row]);
      suspect.explained = gap > 0 ? std::clamp(1 - left / gap, 0.0, 1.0) : 0;
      finding.causes.push_back(std::move(suspect));
    }
  }
  return findings;
}

}  // namespace

StepDiagnosis DiagnoseStep(const JsonDocument& scenario, const std::vector<MeasuredStep>& measured,
                           std::optional<bool> ranks_differ) {
  CHECK(!measured.empty());
  StepPlayer player(scenario);
  StepDiagnosis diagnosis;
  diagnosis.measured = measured;
  const Scenario read = ReadScenario(scenario);
  if (read.lists_jobs) throw Error("jobs cannot be diagnosed together; diagnose each on its own");
  diagnosis.scenario = read.name;
  const StepExpectation expectation = Expect(measured, player, &diagnosis);
  const std::vector<double>& expected = diagnosis.log_expected;
  FindModelError(read, &diagnosis);
  const std::vector<Observation> observations = Observe(diagnosis);
  const Evidence evidence(observations);

  const nlohmann::json& given = scenario.value();
  const StepSubject subject{given, *read.cluster};
  const std::vector<StepCurve> curves = CurvesOf(subject, measured, expectation, player);
  WeighedSteps weighed = WeighEach(curves, observations, expected, evidence, ranks_differ);
  diagnosis.nothing_wrong = weighed.probabilities.nothing_wrong;
  diagnosis.something_else = weighed.probabilities.something_else;
  double slower = 0;
  for (size_t i = 0; i < measured.size(); ++i) slower += diagnosis.log_measured[i] - expected[i];
  const bool is_unlikely = diagnosis.nothing_wrong < 0.5;
  diagnosis.is_something_wrong = is_unlikely && slower > 0;
  diagnosis.is_faster = is_unlikely && slower <= 0;
  // Runs repeat within a percent or so.
  diagnosis.chance = evidence.ChanceOf(expected, Evidence::LeastNoise());
  if (!diagnosis.is_something_wrong) return diagnosis;
  AddPairs(
      curves, observations, expected, evidence, ranks_differ,
      [&](const std::vector<Strengthened>& causes) {
        return LogTimesWith(causes, subject, measured, expectation, player);
      },
      &weighed);
  diagnosis.something_else = weighed.probabilities.something_else;
  diagnosis.findings = FindingsOf(weighed, diagnosis);
  FindParts(subject, player, &diagnosis);
  return diagnosis;
}

}  // namespace rehearse
