// A study of steps that take milliseconds to simulate, for the tests of studies and sweeps.
#pragma once

#include <string>

#include "scenarios/sweeping/study_reader.h"
#include "sim/base/json_document.h"

namespace rehearse {

constexpr const char* kSmallBase = R"({
  "name": "small", "cluster": "perlmutter:nodes=2",
  "model": {"layers": 2, "hidden": 1024, "heads": 16, "vocabulary": 4096},
  "training": {"batch": 8, "sequence": 256, "recomputation": "full"},
  "strategy": {"kind": "4d", "column": 2, "row": 2, "depth": 2, "data": 1,
    "transpose_alternate_layers": true, "overlap_all_reduce": true,
    "overlap_reduce_scatter": true, "overlap_all_gather": true, "cached_layers": 1}})";

// `rest` are further keys of the study, after name, base and metric.
inline JsonDocument StudyDocument(const std::string& rest) {
  std::string text = R"({"name": "small", "metric": "step_seconds", "base": )";
  for (const std::string& part : {std::string(kSmallBase), std::string(", "), rest}) text += part;
  text += '}';
  return JsonDocument::FromText(text, "study.json");
}

inline Study SmallStudy(const std::string& rest) { return ReadStudy(StudyDocument(rest)); }

// Its metric is how eight more layers change the parameters' bytes.
inline Study EightLayersStudy() {
  return ReadStudy(JsonDocument::FromText(
      std::string(R"({"name": "layers", "base": )") + kSmallBase +
          R"(, "metric": {"value": "memory.parameters", "minus": {"model.layers": 2}},
              "points": [{"name": "ten", "set": {"model.layers": 10}}]})",
      "study.json"));
}

}  // namespace rehearse
