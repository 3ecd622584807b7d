// Versions of the files that Rehearse writes and reads, such as "rehearse.calibration.v1".
//
// A new key does not change the version if a file without it means what it meant before; older
// programs refuse a file that has the key, since they do not know it. A change in what a file means
// gets a new number. A file of another version is refused: nothing is guessed. Files that people
// write (scenarios, clusters, studies) have no version, and their keys keep their meaning.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_reader.h"

namespace rehearse {

// Throws Error unless the text is `schema`; says whether an older or a newer rehearse wrote it.
void CheckVersion(const JsonReader& version, const std::string& schema);

// What becomes of files of other versions, for people; "" for files that say none.
std::string VersionPolicy(const std::string& schema);

}  // namespace rehearse
