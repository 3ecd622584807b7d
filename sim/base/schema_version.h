// Versions of the files that Rehearse writes and reads, such as "rehearse.calibration.v1".
//
// A new key, without which a file means what it meant, does not change the version; older programs
// then refuse a file that has it as one with an unknown key. What changes the meaning of a file
// gets a new number. A file of another version is refused: nothing is guessed. Files that people
// write (scenarios, clusters, studies) say no version, and their keys keep their meaning.
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
