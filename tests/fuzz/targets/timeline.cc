// A timeline's file, compared with itself; what was read and is written again reads the same, and
// so it does as a large file, whose spans are read from the stream.
#include <optional>
#include <utility>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/report/comparison.h"
#include "sim/report/timeline_file.h"
#include "sim/report/timeline_record.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"

namespace rehearse {
namespace {

std::optional<std::string> ReadAsLarge(std::string_view input) {
  try {
    TimelineFile file = ReadTimelineFile(WriteFuzzFile("timeline.json", input), 0);
    const JsonDocument document = JsonDocument::FromText(file.text, file.name);
    return ToJsonText(ReadTimelineRecord(document.Root(), std::move(file.spans)));
  } catch (const Error&) {
    return std::nullopt;
  }
}

void ReadTimelineText(std::string_view input) {
  const std::optional<std::string> large = ReadAsLarge(input);
  const JsonDocument document = JsonDocument::FromText(input, "timeline.json");
  const TimelineRecord record = ReadTimelineRecord(document.Root());
  ToText(Compare(record, record), false);
  const std::string text = ToJsonText(record);
  CHECK(!large || *large == text);
  const JsonDocument again = JsonDocument::FromText(text, "written.json");
  CHECK(ToJsonText(ReadTimelineRecord(again.Root())) == text);
}

std::vector<std::string> TimelineSeeds() {
  std::vector<std::string> seeds;
  for (const std::string& text : SmallScenarios()) {
    const Scenario scenario =
        ReadScenario(JsonDocument::FromText(text, SourceDir() + "/scenarios/small.json"));
    Rehearsal played = Rehearse(scenario);
    std::string seed =
        ToJsonText(MakeRecord(scenario.name, played.schedule, std::move(played.timeline)));
    if (seed.size() <= kLongestInput / 2) seeds.push_back(std::move(seed));
  }
  return seeds;
}

std::vector<std::string> TimelineWords() { return SchemaWords("timeline"); }

const FuzzTargetRow kTimelineRow({"timeline", ReadTimelineText, TimelineSeeds, TimelineWords,
                                  FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
