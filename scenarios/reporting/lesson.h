// Lessons about overlap: tiny scenarios whose numbers anybody can work out by hand. Their texts
// are in scenarios/lessons/lessons.json, each beside the scenario of its name; the program holds
// copies.
//
//   { "schema": "rehearse.lessons.v1",
//     "lessons": [{"name": "ring",           of its scenario: scenarios/lessons/ring.json
//                  "title": "A ring", "question": "...",
//                  "change": "Eight GPUs instead of four.",
//                  "set": ["cluster.devices=8", ...],            the change, as --set makes it
//                  "before": "6.012ms", "after": "7.028ms",      the step, by hand
//                  "within": 0.003,      relative error of that; optional, 0: exact
//                  "answer": ["...", ...]}, ...] }               paragraphs
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/readers/scenario.h"
#include "sim/base/json_document.h"
#include "sim/base/quantity.h"

namespace rehearse {

struct Lesson {
  std::string name;
  std::string title;
  std::string question;
  std::string change;
  std::vector<std::string> set;
  Seconds before;
  Seconds after;
  double within = 0;
  std::vector<std::string> answer;
};

inline constexpr const char* kLessonsSchema = "rehearse.lessons.v1";

// Throws Error for mistakes in it.
std::vector<Lesson> ReadLessons(const JsonDocument& document);

// `text` is the lesson's scenario; it is read with the lesson's change, or as it is.
Scenario ReadLessonScenario(const Lesson& lesson, const std::string& text, bool changed);

}  // namespace rehearse
