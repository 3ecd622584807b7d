#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/diagnosing/log_diagnosis.h"
#include "scenarios/diagnosing/words.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kElsewhereShows = 0.1;
constexpr double kWorthALook = 0.01;  // probability
constexpr double kJitters = 0.1;      // of a row, as a share: more than a quiet machine's

// "1.85 times as long"
std::string FactorWords(double factor) {
  return factor >= 1 ? fmt::format("{:.2f} times as long", factor)
                     : fmt::format("{:.0f} % of the time", 100 * factor);
}

std::string NameWithStrength(const SuspectedCause& suspect) {
  const CollectiveCause& cause = *suspect.cause;
  const std::string strength = cause.words(suspect.strength);
  if (suspect.also != nullptr) {
    const CollectiveCause& also = *suspect.also;
    return PairWords(
        SummaryWords(cause.summary, strength, cause.of, "", ""),
        SummaryWords(also.summary, also.words(suspect.also_strength), also.of, "", ""));
  }
  if (!cause.is_graded) return SummaryWords(cause.summary, strength, cause.of, "", "");
  return SummaryWords(cause.summary, strength, cause.of, cause.words(suspect.strength_low),
                      cause.words(suspect.strength_high));
}

// "21 % of the bandwidth"
std::string StrengthWords(const CollectiveCause& cause, double strength) {
  return fmt::format("{}{}{}", cause.words(strength), cause.of[0] == '\0' ? "" : " ", cause.of);
}

std::string SizesWords(const SuspectedCause& suspect) {
  if (!suspect.from) return "no size";
  if (*suspect.from == *suspect.to) return Print(*suspect.from);
  return fmt::format("{} to {}", Print(*suspect.from), Print(*suspect.to));
}

void WriteRows(const LogDiagnosis& diagnosis, std::string* text) {
  const bool is_explained = !diagnosis.findings.empty();
  for (size_t table = 0; table < diagnosis.tables.size(); ++table) {
    *text += fmt::format("{}{}\n\n{:>13} {:>12} {:>12} {:>10}{}\n", table > 0 ? "\n" : "",
                         diagnosis.tables[table], "size", "expected", "measured", "measured",
                         is_explained ? fmt::format(" {:>12}", "explained") : "");
    *text += fmt::format("{:>13} {:>12} {:>12} {:>10}{}\n", "(B)", "(us)", "(us)", "/expected",
                         is_explained ? fmt::format(" {:>12}", "(us)") : "");
    for (const DiagnosedRow& row : diagnosis.rows) {
      if (row.table != table) continue;
      *text += fmt::format("{:>13.0f} {:>12.2f} {:>12.2f} {:>10.2f}", row.bytes.value(),
                           row.expected.value() * 1e6, row.measured.value() * 1e6,
                           row.measured / row.expected);
      if (row.explained) *text += fmt::format(" {:>12.2f}", row.explained->value() * 1e6);
      *text += "\n";
    }
  }
}

void WriteElsewhere(const LogDiagnosis& diagnosis, const SuspectedCause& suspect,
                    std::string* text) {
  std::vector<std::string> changed;
  std::vector<std::string> others;
  for (size_t i = 0; i < suspect.elsewhere.size(); ++i) {
    if (suspect.elsewhere[i] <= Seconds(0)) continue;
    const OtherMeasurement& other = diagnosis.elsewhere[i];
    const double factor = suspect.elsewhere[i] / other.expected;
    if (std::abs(factor - 1) < kElsewhereShows) {
      others.push_back(other.what);
    } else {
      changed.push_back(fmt::format("{} {}", other.what, FactorWords(factor)));
    }
  }
  if (changed.empty() && others.empty()) return;
  if (!others.empty()) changed.push_back(fmt::format("as expected: {}", fmt::join(others, ", ")));
  *text += fmt::format("     elsewhere: {}\n", fmt::join(changed, "; "));
}

void WriteFinding(const LogDiagnosis& diagnosis, const Finding& finding, size_t number,
                  std::string* text) {
  if (finding.causes.size() > 1)
    *text += fmt::format("\n{}. {}: one of these {}, which this log cannot tell apart\n", number,
                         ProbabilityWords(finding.probability), finding.causes.size());
  for (const SuspectedCause& suspect : finding.causes) {
    if (finding.causes.size() > 1) {
      *text += fmt::format("   {}: {}\n", NameOf(suspect), NameWithStrength(suspect));
    } else {
      *text += fmt::format("\n{}. {}: {}: {}\n", number, ProbabilityWords(finding.probability),
                           NameOf(suspect), NameWithStrength(suspect));
    }
    *text += fmt::format(
        "     explains {:.0f} % of the gap, at {}; {:.1f} % is left of a size, in the median\n",
        100 * suspect.explained, SizesWords(suspect), 100 * suspect.remaining);
    WriteElsewhere(diagnosis, suspect, text);
    *text += fmt::format("     look at: {}\n", suspect.cause->confirm);
    if (suspect.also != nullptr) *text += fmt::format("     and at: {}\n", suspect.also->confirm);
  }
  if (finding.causes.size() == 1) return;
  if (!finding.tells_apart) {
    *text += "   no other collective here would tell them apart; what is to look at does\n";
    return;
  }
  const OtherMeasurement& other = diagnosis.elsewhere[*finding.tells_apart];
  *text += fmt::format("   to tell them apart: {} ({}), expected to take {} when nothing is wrong",
                       other.what, other.command, Print(other.expected));
  for (const SuspectedCause& suspect : finding.causes) {
    if (suspect.elsewhere.empty() || suspect.elsewhere[*finding.tells_apart] <= Seconds(0))
      continue;
    *text += fmt::format("; {} with {}", Print(suspect.elsewhere[*finding.tells_apart]),
                         NameOf(suspect));
  }
  *text += "\n";
}

Json CauseJson(const LogDiagnosis& diagnosis, const SuspectedCause& suspect) {
  Json json = {{"cause", suspect.cause->name},
               {"summary", suspect.cause->summary},
               {"probability", suspect.probability},
               {"strength", suspect.strength},
               {"strength_low", suspect.strength_low},
               {"strength_high", suspect.strength_high},
               {"words", StrengthWords(*suspect.cause, suspect.strength)},
               {"explained", suspect.explained},
               {"remaining", suspect.remaining}};
  if (suspect.also != nullptr)
    json["and"] = {{"cause", suspect.also->name},
                   {"summary", suspect.also->summary},
                   {"strength", suspect.also_strength},
                   {"words", StrengthWords(*suspect.also, suspect.also_strength)},
                   {"confirm", suspect.also->confirm}};
  if (suspect.from) {
    json["from_bytes"] = static_cast<uint64_t>(suspect.from->value());
    json["to_bytes"] = static_cast<uint64_t>(suspect.to->value());
  }
  json["confirm"] = suspect.cause->confirm;
  json["elsewhere"] = Json::array();
  for (size_t i = 0; i < suspect.elsewhere.size(); ++i) {
    if (suspect.elsewhere[i] <= Seconds(0)) continue;
    json["elsewhere"].push_back({{"what", diagnosis.elsewhere[i].what},
                                 {"seconds", suspect.elsewhere[i].value()},
                                 {"expected_seconds", diagnosis.elsewhere[i].expected.value()}});
  }
  return json;
}

}  // namespace

std::string ToText(const LogDiagnosis& diagnosis, size_t most_findings) {
  std::string text;
  WriteRows(diagnosis, &text);
  text += fmt::format(
      "\nMeasured times are {:.2f} times the expected ones in the median, and {:.2f} times at "
      "most, "
      "at {}.\n",
      diagnosis.median_factor, diagnosis.largest_factor, Print(diagnosis.largest_at));
  text += fmt::format(
      "Where nothing is wrong, {} logs are as far off: predictions err by about {:.0f} % at the "
      "largest size, more at small ones, and these rows scatter by about {:.1f} %.\n",
      ChanceWords(diagnosis.chance), 100 * diagnosis.model_error, 100 * diagnosis.noise);
  if (diagnosis.noise >= kJitters)
    text +=
        "Rows of a quiet machine scatter by 1 to 3 %: something comes and goes (other jobs on the "
        "fabric or the hosts, a link that flaps). Measure again, several times, with -n 100 and "
        "-N 5: are the same sizes slow?\n";
  if (!diagnosis.is_something_wrong && diagnosis.is_faster) {
    text += "It is faster than expected, so nothing is looked for.\n";
    return text;
  }
  if (!diagnosis.is_something_wrong) {
    text += fmt::format("Nothing is wrong that this log would show: {}.\n",
                        ProbabilityWords(diagnosis.nothing_wrong));
    return text;
  }
  text += UnexplainedWords(diagnosis.nothing_wrong, diagnosis.something_else);
  // The first, and those that are worth a look.
  size_t shown = 0;
  while (shown < std::min(most_findings, diagnosis.findings.size()) &&
         (shown == 0 || diagnosis.findings[shown].probability >= kWorthALook)) {
    WriteFinding(diagnosis, diagnosis.findings[shown], shown + 1, &text);
    ++shown;
  }
  if (diagnosis.findings.size() > shown)
    text += fmt::format("\n… and {} that are less likely (--format json has them)\n",
                        diagnosis.findings.size() - shown);
  return text;
}

Json ToJson(const LogDiagnosis& diagnosis) {
  Json json = {{"schema", "rehearse.diagnosis.v1"},
               {"tables", diagnosis.tables},
               {"rows", Json::array()},
               {"median_factor", diagnosis.median_factor},
               {"largest_factor", diagnosis.largest_factor},
               {"largest_at_bytes", static_cast<uint64_t>(diagnosis.largest_at.value())},
               {"noise", diagnosis.noise},
               {"model_error", diagnosis.model_error},
               {"chance", diagnosis.chance},
               {"nothing_wrong", diagnosis.nothing_wrong},
               {"something_else", diagnosis.something_else},
               {"is_faster", diagnosis.is_faster},
               {"is_something_wrong", diagnosis.is_something_wrong},
               {"findings", Json::array()}};
  for (const DiagnosedRow& row : diagnosis.rows) {
    json["rows"].push_back({{"table", row.table},
                            {"bytes", static_cast<uint64_t>(row.bytes.value())},
                            {"measured_seconds", row.measured.value()},
                            {"expected_seconds", row.expected.value()}});
    if (row.explained) json["rows"].back()["explained_seconds"] = row.explained->value();
  }
  for (const Finding& finding : diagnosis.findings) {
    Json one = {{"probability", finding.probability}, {"causes", Json::array()}};
    for (const SuspectedCause& suspect : finding.causes)
      one["causes"].push_back(CauseJson(diagnosis, suspect));
    if (finding.tells_apart) {
      const OtherMeasurement& other = diagnosis.elsewhere[*finding.tells_apart];
      one["tells_apart"] = {{"what", other.what},
                            {"command", other.command},
                            {"factor_between", finding.tells_apart_by}};
    }
    json["findings"].push_back(std::move(one));
  }
  return json;
}

}  // namespace rehearse
