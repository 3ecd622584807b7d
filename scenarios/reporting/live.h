// What a page simulates itself (`rehearse report --live`, `rehearse lessons`): it asks the
// simulator, built as WebAssembly, which answers with what the page shows. It reads nothing but the
// request.
//
// A request, rehearse.live.v1:
//   { "name": "ring.json",          what messages call the document
//     "text": "{...}",              a scenario, or a schedule
//     "cluster": "switch:devices=2", for a schedule
//     "set": ["a.b=1", ...],        changes before anything else, as --set makes them
//     "fidelity": "step", "allow_oom": true, "no_fold": true     as the options say; may be missing
//     "files": {"cluster.json": "{...}"},   what the document names; may be missing
//     "changes": ["c.d=2", ...],    what has been changed since: the step beside the first
//     "edited": "{...}",            likewise, the whole text, to which changes apply
//     "known": "3bd748e75c320ee3" } the timeline of the step before changes that the page already
//                                   has; may be missing
// Without changes there is one run, otherwise two: the original above the changed one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/readers/reader_cache.h"
#include "scenarios/reporting/report_page.h"

namespace rehearse {

inline constexpr const char* kLiveSchema = "rehearse.live.v1";

// What a page has to know about a scenario to ask for it.
struct LiveStep {
  std::string name;
  std::string text;
  std::string cluster = {};  // of a schedule
  std::vector<std::string> set = {};
  std::string fidelity = {};  // "": the scenario's
  bool allow_out_of_memory = false;
  bool no_fold = false;
  std::map<std::string, std::string> files = {};  // texts of files that the document names, by path
};
nlohmann::ordered_json ToJson(const LiveStep& step);

class LiveSession {
 public:
  // A byte 0 and then the data of a page (PageBytes()); or a byte 1 and then
  // {"message": "ring.json:12: /cluster: ...", "is_fault": false}. Never throws.
  std::string Play(std::string_view request);

 private:
  std::string PlayOrThrow(std::string_view text);
  ReportedRun Played(const Scenario& scenario, std::string source);

  std::string first_;  // the request for report_'s first run
  Report report_;
  // These two keep what belongs to the machines in met_, which are few.
  std::optional<ReaderCache> cache_;
  std::optional<ReportMemory> memory_;
  std::set<const Cluster*> met_;
};

}  // namespace rehearse
