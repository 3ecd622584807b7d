// Which files were read, so that what follows from them is known to be out of date when one of them
// has changed; and what was changed in them on the way.
//
// While a record lives, it notes every file that its thread reads by ReadJsonText()
// (sim/base/json_parse.h), the way of all readers of scenarios, clusters, calibrations and
// schedules, and the changes to what a document names (JsonReader::Change()): those that --set
// makes there are among the files, under its name, as they are input as well. Records may live
// inside each other; each notes what is read during its life.
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

// For those who read files.
void NoteInput(const std::string& path, std::string_view content);
// For those who kept what they made of a file that they read before.
void NoteInput(const InputFile& file);
void NoteChange(const JsonChange& change);

}  // namespace rehearse
