// Which files were read, so that results derived from them are known to be out of date once one of
// them has changed; and which of their values were changed while reading.
//
// While a record lives, it notes every file that its thread reads with ReadJsonText()
// (sim/base/json_parse.h), as all readers of scenarios, clusters, calibrations and schedules do,
// and the changes to documents that a document names (JsonReader::Change()). Changes that --set
// makes there are input as well, so they are listed among the files, under the name "--set".
// Records may live inside each other; each notes what is read during its life.
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

class InputRecord {
 public:
  InputRecord();
  ~InputRecord();
  InputRecord(const InputRecord&) = delete;
  InputRecord& operator=(const InputRecord&) = delete;

  // In the order of reading.
  const std::vector<InputFile>& files() const { return files_; }
  const std::vector<JsonChange>& changes() const { return changes_; }

 private:
  friend void NoteInput(const InputFile& file);
  friend void NoteChange(const JsonChange& change);
  InputRecord* outer_;
  std::vector<InputFile> files_;
  std::vector<JsonChange> changes_;
};

// For code that reads files.
void NoteInput(const std::string& path, std::string_view content);
// For code that kept what it made of a file that it read before.
void NoteInput(const InputFile& file);
void NoteChange(const JsonChange& change);

}  // namespace rehearse
