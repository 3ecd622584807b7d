#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/diagnosing/step_diagnosis.h"
#include "scenarios/diagnosing/words.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

constexpr double kProbabilityShown = 0.01;

std::string PartsWords(const StepParts& parts) {
  return fmt::format("compute {}, exposed communication {}, idle {}", Print(parts.compute),
                     Print(parts.exposed), Print(parts.idle));
}

std::string NameOf(const SuspectedStepCause& suspect) {
  return suspect.also == nullptr
             ? suspect.cause->name
             : fmt::format("{} and {}", suspect.cause->name, suspect.also->name);
}

std::string StrengthWords(const SuspectedStepCause& suspect) {
  const StepCause& cause = *suspect.cause;
  const std::string strength = cause.words(suspect.strength);
  if (suspect.also != nullptr) {
    const StepCause& also = *suspect.also;
    return PairWords(
        SummaryWords(cause.summary, strength, cause.of, "", ""),
        SummaryWords(also.summary, also.words(suspect.also_strength), also.of, "", ""));
  }
  if (!cause.is_graded) return SummaryWords(cause.summary, strength, cause.of, "", "");
  return SummaryWords(cause.summary, strength, cause.of, cause.words(suspect.strength_low),
                      cause.words(suspect.strength_high));
}

void WriteCause(const StepDiagnosis& diagnosis, const SuspectedStepCause& suspect,
                const std::string& begin, std::string* text) {
  *text += fmt::format("{}{}: {}\n", begin, NameOf(suspect), StrengthWords(suspect));
  std::vector<std::string> predicted;
  for (size_t i = 0; i < diagnosis.measured.size(); ++i)
    predicted.push_back(WordsOf(diagnosis.measured[i], suspect.log_times[i], diagnosis.floor));
  *text += fmt::format("     explains {:.0f} % of the gap: {}\n", 100 * suspect.explained,
                       fmt::join(predicted, ", "));
  if (suspect.parts)
    *text += fmt::format("     a profile would show: {}\n", PartsWords(*suspect.parts));
  *text += fmt::format("     look at: {}\n", suspect.cause->confirm);
  if (suspect.also != nullptr) *text += fmt::format("     and at: {}\n", suspect.also->confirm);
}

nlohmann::ordered_json PartsJson(const StepParts& parts) {
  return {{"compute_seconds", parts.compute.value()},
          {"exposed_communication_seconds", parts.exposed.value()},
          {"idle_seconds", parts.idle.value()}};
}

}  // namespace

std::string ToText(const StepDiagnosis& diagnosis, size_t most_findings) {
  std::string text = fmt::format("{}\n\n", VisibleText(diagnosis.scenario));
  for (size_t i = 0; i < diagnosis.measured.size(); ++i) {
    const MeasuredStep& measured = diagnosis.measured[i];
    text += fmt::format("measured {}, expected {}", VisibleText(measured.text),
                        WordsOf(measured, diagnosis.log_expected[i], diagnosis.floor));
    if (!IsPart(measured.measure))
      text += fmt::format(": {:.2f} times as long",
                          std::exp(diagnosis.log_measured[i] - diagnosis.log_expected[i]));
    text += "\n";
  }
  text += fmt::format("expected of a profile: {}\n", PartsWords(diagnosis.expected));
  text += fmt::format(
      "\nWhere nothing is wrong, {} runs are as far off: predictions err by about {:.0f} %{}.\n",
      ChanceWords(diagnosis.chance), 100 * diagnosis.model_error,
      diagnosis.model_error_of.empty() ? "" : ", judged by " + diagnosis.model_error_of);
  if (diagnosis.is_faster) return text + "It is faster than expected, so nothing is looked for.\n";
  if (!diagnosis.is_something_wrong)
    return text + fmt::format("Nothing is wrong that this would show: {}.\n",
                              ProbabilityWords(diagnosis.nothing_wrong));
  text += UnexplainedWords(diagnosis.nothing_wrong, diagnosis.something_else);
  size_t shown = 0;
  bool is_any_alike = false;
  while (shown < std::min(most_findings, diagnosis.findings.size()) &&
         (shown == 0 || diagnosis.findings[shown].probability >= kProbabilityShown)) {
    const StepFinding& finding = diagnosis.findings[shown];
    ++shown;
    if (finding.causes.size() == 1) {
      WriteCause(diagnosis, finding.causes.front(),
                 fmt::format("\n{}. {}: ", shown, ProbabilityWords(finding.probability)), &text);
      continue;
    }
    is_any_alike = true;
    text += fmt::format("\n{}. {}: one of these {}, which what was measured cannot tell apart\n",
                        shown, ProbabilityWords(finding.probability), finding.causes.size());
    for (const SuspectedStepCause& suspect : finding.causes)
      WriteCause(diagnosis, suspect,
                 fmt::format("   {:>6}  ", ProbabilityWords(suspect.probability)), &text);
  }
  if (is_any_alike)
    text +=
        "\nTo tell them apart: a profile of one step, whose parts are above, or --measured of a "
        "run "
        "that differs (\"... with cluster.nodes=1\").\n";
  if (diagnosis.findings.size() > shown)
    text += fmt::format("\n… and {} that are less likely (--format json has them)\n",
                        diagnosis.findings.size() - shown);
  return text;
}

nlohmann::ordered_json ToJson(const StepDiagnosis& diagnosis) {
  using Json = nlohmann::ordered_json;
  Json json = {{"schema", "rehearse.diagnosis.v1"},
               {"scenario", diagnosis.scenario},
               {"measured", Json::array()},
               {"parts", PartsJson(diagnosis.expected)},
               {"model_error", diagnosis.model_error},
               {"chance", diagnosis.chance},
               {"nothing_wrong", diagnosis.nothing_wrong},
               {"something_else", diagnosis.something_else},
               {"is_faster", diagnosis.is_faster},
               {"is_something_wrong", diagnosis.is_something_wrong},
               {"findings", Json::array()}};
  for (size_t i = 0; i < diagnosis.measured.size(); ++i)
    json["measured"].push_back(
        {{"text", diagnosis.measured[i].text},
         {"expected", WordsOf(diagnosis.measured[i], diagnosis.log_expected[i], diagnosis.floor)},
         {"factor", std::exp(diagnosis.log_measured[i] - diagnosis.log_expected[i])}});
  for (const StepFinding& finding : diagnosis.findings) {
    Json one = {{"probability", finding.probability}, {"causes", Json::array()}};
    for (const SuspectedStepCause& suspect : finding.causes) {
      Json cause = {
          {"cause", suspect.cause->name},         {"summary", suspect.cause->summary},
          {"probability", suspect.probability},   {"strength", suspect.strength},
          {"strength_low", suspect.strength_low}, {"strength_high", suspect.strength_high},
          {"explained", suspect.explained},       {"confirm", suspect.cause->confirm}};
      if (suspect.also != nullptr)
        cause["and"] = {{"cause", suspect.also->name},
                        {"summary", suspect.also->summary},
                        {"strength", suspect.also_strength},
                        {"confirm", suspect.also->confirm}};
      if (suspect.parts) cause["parts"] = PartsJson(*suspect.parts);
      one["causes"].push_back(std::move(cause));
    }
    json["findings"].push_back(std::move(one));
  }
  return json;
}

}  // namespace rehearse
