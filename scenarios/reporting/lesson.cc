#include "scenarios/reporting/lesson.h"

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/json_shape.h"
#include "sim/base/schema_version.h"

namespace rehearse {
namespace {

const ObjectShape& LessonShape() {
  static const ObjectShape shape = {
      "lesson",
      "One idea about overlap, with a number before and after a change.",
      {{"name", AText(), Required(), "name of its scenario, without .json", "\"ring\""},
       {"title", AText(), Required(), "a few words", "\"A ring\""},
       {"question", AText(), Required(), "what to think about", "\"How long do eight take?\""},
       {"change", AText(), Required(), "what to change, in words", "\"Eight GPUs.\""},
       {"set", ListOf(AText()), Required(), "the same, as --set takes it",
        "[\"cluster.devices=8\"]"},
       {"before", ADuration(), Required(), "the step, worked out by hand", "\"6.012ms\""},
       {"after", ADuration(), Required(), "the changed step, worked out by hand", "\"7.028ms\""},
       {"within", ANumber(0, 1), Default("0"), "the relative error of working by hand", "0.003"},
       {"answer", ListOf(AText()), Required(), "paragraphs", "[\"Hardly longer.\"]"}}};
  return shape;
}

const ObjectShape& LessonsShape() {
  static const ObjectShape shape = {"lessons",
                                    "Lessons about overlap, in order.",
                                    {SchemaVersion(kLessonsSchema),
                                     {"lessons", ListOf(ObjectOf(LessonShape)), Required(),
                                      "the lessons, one after the other", "[]"}}};
  return shape;
}

std::vector<std::string> TextsOf(const JsonReader& list) {
  std::vector<std::string> texts;
  for (const JsonReader& text : list.Elements()) texts.push_back(text.String());
  return texts;
}

}  // namespace

std::vector<Lesson> ReadLessons(const JsonDocument& document) {
  std::vector<Lesson> lessons;
  const JsonReader root = document.Root().As(LessonsShape());
  CheckVersion(root.At("schema"), kLessonsSchema);
  for (const JsonReader& element : root.At("lessons").Elements()) {
    const JsonReader one = element.As(LessonShape());
    Lesson& lesson = lessons.emplace_back();
    lesson.name = one.At("name").String();
    lesson.title = one.At("title").String();
    lesson.question = one.At("question").String();
    lesson.change = one.At("change").String();
    lesson.set = TextsOf(one.At("set"));
    lesson.before = one.At("before").Duration();
    lesson.after = one.At("after").Duration();
    lesson.within = one.At("within").Number();
    lesson.answer = TextsOf(one.At("answer"));
  }
  return lessons;
}

Scenario ReadLessonScenario(const Lesson& lesson, const std::string& text, bool changed) {
  JsonDocument document = JsonDocument::FromText(text, lesson.name + ".json");
  if (changed)
    for (const std::string& change : lesson.set) document.Set(change);
  return ReadScenario(document);
}

}  // namespace rehearse
