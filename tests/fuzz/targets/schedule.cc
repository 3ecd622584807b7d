// A schedule's file; what was read and is written again reads the same.
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/schedule/schedule_json.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

void ReadScheduleText(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(input, "step.schedule.json");
  const Schedule schedule = ReadSchedule(document.Root());
  const ScheduleTitle title = ReadScheduleTitle(document.Root());
  const std::string text = WriteSchedule(schedule, title);
  const JsonDocument again = JsonDocument::FromText(text, "written.json");
  CHECK(WriteSchedule(ReadSchedule(again.Root()), title) == text);
}

std::vector<std::string> ScheduleSeeds() {
  std::vector<std::string> seeds = ShippedTexts("scenarios/schedules", ".json");
  for (const Schedule& schedule : SmallSchedules()) {
    std::string text = WriteSchedule(schedule, {"a step", "of a small scenario"});
    if (text.size() <= kLongestInput / 2) seeds.push_back(std::move(text));
  }
  return seeds;
}

std::vector<std::string> ScheduleWords() { return SchemaWords("schedule"); }

const FuzzTargetRow kScheduleRow({"schedule", ReadScheduleText, ScheduleSeeds, ScheduleWords,
                                  FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
