// Two timelines, or two results, side by side.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/given_differences.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"
#include "sim/report/comparison.h"
#include "sim/report/fixed_ops.h"
#include "sim/report/text_page.h"
#include "tools/command.h"
#include "tools/comparers.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"
#include "tools/terminal.h"

namespace rehearse {
namespace {

bool IsJson(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (text[first] == '{' || text[first] == '/');
}

SubjectKind KindOfJson(const JsonReader& root) {
  if (!root.IsObject() || !root.Has("schema")) return SubjectKind::kTimeline;  // a scenario
  const size_t schema =
      root.At("schema").Choice({kTimelineSchema, "rehearse.result.v1", "rehearse.execution.v1"});
  return schema == 0 ? SubjectKind::kTimeline : SubjectKind::kResult;
}

// What `execute --format json` prints holds the result of the median step.
JsonReader ResultIn(const JsonReader& root) {
  return root.Has("result") ? root.At("result") : root;
}

TimelineRecord RecordOf(const Subject& subject) {
  const JsonDocument document = JsonDocument::FromText(subject.text, subject.path);
  if (document.Root().IsObject() && document.Root().Has("schema"))
    return ReadTimelineRecord(document.Root(), subject.spans);
  const Scenario scenario = ReadScenario(document);
  Rehearsal rehearsal = Rehearse(scenario);
  TimelineRecord record =
      MakeRecord(scenario.name, rehearsal.schedule, std::move(rehearsal.timeline));
  if (scenario.given) record.given = *scenario.given;
  return record;
}

// What a result says about the work behind it.
struct ResultWork {
  uint32_t ranks = 0;
  double tokens = 0;  // per step
  std::string fidelity;
};

ResultWork WorkOf(const JsonReader& result) {
  constexpr int64_t kMostRanks = 1 << 24;
  constexpr double kMost = 1e300;
  ResultWork work;
  if (result.Has("ranks"))
    work.ranks = static_cast<uint32_t>(result.At("ranks").Integer(0, kMostRanks));
  if (result.Has("tokens_per_second"))
    work.tokens = result.At("tokens_per_second").Number(0, kMost) *
                  result.At("step_seconds").Number(0, kMost);
  if (result.Has("fidelity")) work.fidelity = result.At("fidelity").String();
  return work;
}

// Differences from a step that others disturbed are theirs, too.
void WarnOfLoss(const char* name, const TimelineRecord& record, Comparison* comparison) {
  const RecordedStep& step = record.MedianStep();
  if (!step.is_disturbed) return;
  comparison->warnings.push_back(
      fmt::format("other programs took {:.0f} % of the time of {}'s step, and left none of its "
                  "steps alone: differences are not the model's",
                  100 * step.lost, name));
}

void WarnOfRanks(uint32_t a, uint32_t b, Comparison* comparison) {
  if (a != b) comparison->warnings.push_back(fmt::format("A is a step of {} ranks, B of {}", a, b));
}

// Adds the names of the files, the scenario's values where both record them, and a warning where
// the times are not of the same work.
void Complete(const Subject& a, const Subject& b, const nlohmann::json& a_given,
              const nlohmann::json& b_given, Comparison* comparison) {
  comparison->a_file = a.path;
  comparison->b_file = b.path;
  if (!a_given.is_null() && !b_given.is_null()) {
    comparison->given = DifferencesOf(a_given, b_given);
    std::string values;
    for (const GivenDifference& difference : DifferencesOfWork(*comparison->given)) {
      const auto value = [](const std::string& json) { return json.empty() ? "nothing" : json; };
      values += fmt::format("{}{}: {} and {}", values.empty() ? "" : ", ", difference.path,
                            value(difference.a), value(difference.b));
    }
    constexpr size_t kLongest = 200;
    if (!values.empty())
      comparison->warnings.push_back("A and B are steps of different work: " +
                                     Shortened(values, kLongest));
  }
  for (const std::string& warning : comparison->warnings)
    Say(VisibleText(warning + "; compare their times with care"));
}

std::string Print(const Comparison& comparison, const CompareFormat& format) {
  if (IsTable(format.format)) return Print(TableOf(comparison, format.rows), format.format);
  return format.format == OutputFormat::kJson ? ToJson(comparison, format.rows).dump(2) + "\n"
                                              : ToText(comparison, ColorsWanted(), format.rows);
}

nlohmann::json GivenOf(const JsonReader& root) {
  return root.Has("given") ? root.At("given").value() : nlohmann::json();
}

}  // namespace

Subject RecogniseSubject(const std::string& path) {
  Subject subject;
  std::error_code ignored;  // what cannot be examined cannot be read either
  const bool is_folder = path != kStandardInput && std::filesystem::is_directory(path, ignored);
  subject.path = is_folder ? path + "/timeline.json" : InputName(path);
  TimelineFile file = ReadTimelineFile(is_folder ? subject.path : path);
  subject.text = std::move(file.text);
  subject.spans = std::move(file.spans);
  if (IsJson(subject.text)) {
    subject.kind = KindOfJson(JsonDocument::FromText(subject.text, subject.path).Root());
  } else if (LooksLikeNcclLog(subject.text)) {
    subject.kind = SubjectKind::kNcclTable;
  } else {
    throw Error(
        fmt::format("\"{}\" cannot be compared; expected a timeline or a result of rehearse, a "
                    "scenario, or a table of nccl-tests (no line names the columns size and time)",
                    path));
  }
  return subject;
}

std::string CompareTimelines(const Subject& a, const Subject& b, const CompareFormat& format) {
  TimelineRecord a_record = RecordOf(a);
  TimelineRecord b_record = RecordOf(b);
  TellFixedOps(b_record, &a_record);
  TellFixedOps(a_record, &b_record);
  Comparison comparison = Compare(a_record, b_record);
  WarnOfRanks(a_record.ranks(), b_record.ranks(), &comparison);
  WarnOfLoss("A", a_record, &comparison);
  WarnOfLoss("B", b_record, &comparison);
  if (comparison.ops.empty() && comparison.only_in_a > 0 && comparison.only_in_b > 0)
    comparison.warnings.emplace_back("A and B have no op in common");
  Complete(a, b, a_record.given, b_record.given, &comparison);
  return Print(comparison, format);
}

std::string CompareResults(const Subject& a, const Subject& b, const CompareFormat& format) {
  const JsonDocument a_document = JsonDocument::FromText(a.text, a.path);
  const JsonDocument b_document = JsonDocument::FromText(b.text, b.path);
  const JsonReader a_result = ResultIn(a_document.Root());
  const JsonReader b_result = ResultIn(b_document.Root());
  Comparison comparison = CompareResults(a_result, b_result);
  const ResultWork a_work = WorkOf(a_result);
  const ResultWork b_work = WorkOf(b_result);
  WarnOfRanks(a_work.ranks, b_work.ranks, &comparison);
  constexpr double kRounded = 1e-6;
  if (std::abs(a_work.tokens - b_work.tokens) > kRounded * std::max(a_work.tokens, b_work.tokens))
    comparison.warnings.push_back(
        fmt::format("A is a step of {:.0f} tokens, B of {:.0f}", a_work.tokens, b_work.tokens));
  const bool are_simulated = a_work.fidelity != "measured" && b_work.fidelity != "measured";
  if (are_simulated && a_work.fidelity != b_work.fidelity)
    comparison.warnings.push_back(fmt::format("A is simulated with fidelity {}, B with {}",
                                              a_work.fidelity, b_work.fidelity));
  Complete(a, b, GivenOf(a_document.Root()), GivenOf(b_document.Root()), &comparison);
  return Print(comparison, format);
}

}  // namespace rehearse
