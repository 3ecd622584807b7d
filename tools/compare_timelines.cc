// Two timelines, or two results, side by side.
#include <filesystem>

#include <fmt/format.h>

#include "real/calibration/nccl_table.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/report/comparison.h"
#include "tools/comparers.h"

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
    return ReadTimelineRecord(document.Root());
  const Scenario scenario = ReadScenario(document);
  Rehearsal rehearsal = Rehearse(scenario);
  return MakeRecord(scenario.name, rehearsal.schedule, std::move(rehearsal.timeline));
}

std::string Print(const Comparison& comparison, OutputFormat format) {
  switch (format) {
    case OutputFormat::kText:
      return ToText(comparison, ColorsWanted());
    case OutputFormat::kJson:
      return ToJson(comparison).dump(2) + "\n";
    case OutputFormat::kCsv:
      return ToCsv(comparison);
  }
  CHECK(false);
}

}  // namespace

Subject RecogniseSubject(const std::string& path) {
  Subject subject;
  subject.path = path;
  std::error_code ignored;  // what cannot be looked at cannot be read either
  if (std::filesystem::is_directory(path, ignored)) subject.path += "/timeline.json";
  subject.text = ReadInputFile(subject.path);
  if (IsJson(subject.text)) {
    subject.kind = KindOfJson(JsonDocument::FromText(subject.text, subject.path).Root());
  } else if (LooksLikeNcclTable(subject.text)) {
    subject.kind = SubjectKind::kNcclTable;
  } else {
    throw Error(
        fmt::format("\"{}\" is nothing that can be compared; expected a timeline or a result of "
                    "rehearse, a scenario, or a table of nccl-tests (no line names the columns "
                    "size and time)",
                    path));
  }
  return subject;
}

std::string CompareTimelines(const Subject& a, const Subject& b, OutputFormat format) {
  return Print(Compare(RecordOf(a), RecordOf(b)), format);
}

std::string CompareResults(const Subject& a, const Subject& b, OutputFormat format) {
  const JsonDocument a_document = JsonDocument::FromText(a.text, a.path);
  const JsonDocument b_document = JsonDocument::FromText(b.text, b.path);
  return Print(CompareResults(ResultIn(a_document.Root()), ResultIn(b_document.Root())), format);
}

}  // namespace rehearse
