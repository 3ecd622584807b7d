// Which files were read, so that what follows from them is known to be out of date when one of them
// has changed.
//
// While a record lives, it notes every file that its thread reads by ReadJsonText()
// (sim/base/json_parse.h), the way of all readers of scenarios, clusters, calibrations and
// schedules. Records may live inside each other; each notes what is read during its life.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

  const std::vector<InputFile>& files() const { return files_; }  // in the order of reading

 private:
  friend void NoteInput(const std::string& path, std::string_view content);
  InputRecord* outer_;
  std::vector<InputFile> files_;
};

// For those who read files.
void NoteInput(const std::string& path, std::string_view content);

}  // namespace rehearse
