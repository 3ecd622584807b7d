// What was changed in a document on the way: by `--set`, or by what follows a file's name
// ("my.json:nodes=32").
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace rehearse {

struct JsonChange {
  std::string file = {};  // of the value that was there, or of the document where there was none
  int line = 0;           // of the value that was there; 0: there was none, or a change had made it
  std::string path = {};  // "node.nics"
  std::string was = {};   // as JSON, long ones shortened; "" where there was none
  std::string is = {};    // likewise
  std::string by = {};    // who says so: "--set", or the file that names this one
};

// "changed in my.json, line 12: node.nics = 8, was 4"; as it may be shown.
std::string ToText(const JsonChange& change);
// {"file": "my.json", "line": 12, "path": "node.nics", "was": 4, "is": 8}: "line" and "was" only
// where there are such; shortened values are strings.
nlohmann::ordered_json ToJson(const std::vector<JsonChange>& changes);

}  // namespace rehearse
