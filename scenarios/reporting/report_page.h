// The data of `rehearse report`'s page: everything that it shows, as one text that the page unpacks
// (scenarios/reporting/page_columns.h). tools/viewer/src/data.ts reads it.
//
// The header has
//   "schema": "rehearse.page.v1", "made_by",
//   "runs": [{"title", "source", "provenance", "ranks", "tick" (picoseconds), "step" (ticks),
//     "strings": [...],                      names, which the columns name by position
//     "classes": [[name, fill, ink, communicates]],
//     "roles": [{"name", "streams": [[name, communicates]], "repeats", "ops": {columns}}],
//     "shown": [[rank, role, stands for, name, first span, end]],
//     "role_runs", "representative_runs"     of all ranks, as runs of (value, ranks)
//     "spans": {columns}, "path", "links", "memory", "result", "cluster", "environment", "notes",
//     "asked": [ranks],
//     "pipeline": {"end", "bubble", "rows": [{"rank", "name", "from", "to", columns}]}}],
//                                            where there is one (PipelineRows)
//   "as_pipelines"                           true: the page begins with these rows
//   "comparison"                             of two runs: rehearse.comparison's object, its "worst"
//                                            as {"strings", columns}; times in picoseconds
//   "tables": [{"title", "kind": "study"|"validation"|"search", "rows", ...}]
//   "machines"                             of a search, one beside the other: what the page begins
//                                          with (scenarios/searching/search_machines.h); the "run"
//                                          of each plays its best
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/reporting/reported_run.h"
#include "sim/report/data_table.h"

namespace rehearse {

inline constexpr const char* kPageSchema = "rehearse.page.v1";

enum class DotsKind : uint8_t { kStudy, kValidation, kSearch };
// Results of many steps, for dots.
struct ReportedTable {
  DotsKind kind = DotsKind::kStudy;
  std::string title;
  std::string source;  // the file
  std::string description;
  std::string metric;  // of a study or search: the vertical axis
  DataTable rows;
  std::string across = {};  // of a search with two objectives: the other one
};

struct Report {
  std::vector<ReportedRun> runs;  // each below the one before
  std::vector<ReportedTable> tables;
  bool as_pipelines = false;  // the page begins with a row for each rank of a pipeline
  nlohmann::ordered_json machines = nullptr;  // of a search
};

// What the page unpacks (scenarios/reporting/page_columns.h). `known`: the hash of the timeline
// that it already has as its first run; where that is the first one here, too, null stands for it.
std::string PageBytes(const Report& report, const std::string& known = "");
// The same, packed as in the file: base64 only.
std::string PageData(const Report& report);

}  // namespace rehearse
