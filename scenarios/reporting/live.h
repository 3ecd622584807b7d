// What a page simulates itself (`rehearse report --live`, `rehearse lessons`): the simulator as
// WebAssembly is asked, and answers with what the page shows. Pure: nothing is read but what the
// request holds.
//
// A request, rehearse.live.v1:
//   { "name": "ring.json",          what messages call the document
//     "text": "{...}",              a scenario, or a schedule
//     "cluster": "switch:devices=2", of a schedule
//     "set": ["a.b=1", ...],        changes before anything else, as --set makes them
//     "fidelity": "step", "allow_oom": true, "no_fold": true     as the options say; may be missing
//     "files": {"cluster.json": "{...}"},   what the document names; may be missing
//     "changes": ["c.d=2", ...],    what the person has changed since: the step beside the first
//     "edited": "{...}" }           likewise, the whole text; then its changes
// Without changes there is one run, else two: as it was, above as it is now.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/readers/cluster_cache.h"
#include "scenarios/reporting/report_page.h"

namespace rehearse {

inline constexpr const char* kLiveSchema = "rehearse.live.v1";

// What a page has to know of a scenario so as to ask for it.
struct LiveStep {
  std::string name;
  std::string text;
  std::string cluster = {};  // of a schedule
  std::vector<std::string> set = {};
  std::string fidelity = {};  // "": the scenario's
  bool allow_out_of_memory = false;
  bool no_fold = false;
  std::map<std::string, std::string> files = {};  // texts by path, that the document names
};
nlohmann::ordered_json ToJson(const LiveStep& step);

class LiveSession {
 public:
  // A byte 0 and then the data of a page (PageBytes()); or a byte 1 and then
  // {"message": "ring.json:12: /cluster: ...", "is_fault": false}. Never throws.
  std::string Play(std::string_view request);

 private:
  std::string PlayOrThrow(std::string_view text);

  std::string first_;  // the request that report_'s first run answers
  Report report_;
  std::optional<ClusterCache> cache_;
  size_t cached_ = 0;  // clusters at most that it keeps
};

}  // namespace rehearse
