// A small scenario, and the results of changing it.
#pragma once

#include <string>
#include <vector>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse::testing {

inline constexpr const char* kSmall = R"({
  "name": "small",
  "cluster": "perlmutter:nodes=2",
  "model": {"layers": 2, "hidden": 1024, "heads": 16, "vocabulary": 4096},
  "training": {"batch": 8, "sequence": 256, "recomputation": "full"},
  "strategy": {"kind": "4d", "column": 2, "row": 2, "depth": 2, "data": 1,
    "transpose_alternate_layers": true, "overlap_all_reduce": true,
    "overlap_reduce_scatter": true, "overlap_all_gather": true, "cached_layers": 1}
})";

inline Scenario ReadSmall(const std::vector<std::string>& changes = {}) {
  JsonDocument document = JsonDocument::FromText(kSmall, "small.json");
  for (const std::string& change : changes) document.Set(change);
  return ReadScenario(document);
}

inline Rehearsal Play(const std::vector<std::string>& changes = {}) {
  return Rehearse(ReadSmall(changes));
}

// The message when the small scenario is changed in this way.
inline std::string ErrorOf(const std::vector<std::string>& changes) {
  try {
    Play(changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace rehearse::testing
