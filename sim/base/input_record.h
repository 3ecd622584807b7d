// Which files were read, so that results derived from them are known to be out of date once one of
// them has changed; and which of their values were changed while reading.
//
// Who wants to know gives a record with the ReadOptions (sim/base/read_options.h), or to a document
// (JsonDocument::NoteIn()). It notes every file that is read with these options or because the
// document names it, and the changes to documents that a document names (JsonReader::Change()).
// Changes that --set makes there are input as well, so they are listed among the files, under the
// name "--set".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_change.h"

namespace rehearse {

struct InputFile {
  std::string path;   // as it was opened
  uint64_t hash = 0;  // of what it held (sim/base/fnv.h)
};

struct InputRecord {
  std::vector<InputFile> files;  // in the order of reading
  std::vector<JsonChange> changes;

  void NoteFile(const std::string& path, std::string_view content);
};

}  // namespace rehearse
