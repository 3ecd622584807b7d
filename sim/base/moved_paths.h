// Paths in a JSON file are relative to its folder: what one that is written elsewhere has to say
// instead.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace rehearse {

// Makes the texts under `keys` of an object absolute where they name a file that exists, seen from
// the folder of the file `from`; changes behind a name ("box.json:nodes=4") stay. A text without a
// dot or a slash is no path.
void MakeAbsolute(nlohmann::json* object, std::span<const char* const> keys,
                  const std::string& from);

// Whether two files lie in one folder, so that paths need no change.
bool InOneFolder(const std::string& a, const std::string& b);

}  // namespace rehearse
