// Reading a file whole, but never more than there can be.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace rehearse {

// The largest file of anything that is read.
inline constexpr size_t kLargestInput = size_t{64} << 20;

// What stands for standard input where a file is expected, and how messages call that.
inline constexpr const char* kStandardInput = "-";
inline constexpr const char* kStandardInputName = "standard input";
// How messages call the file: its path, or kStandardInputName.
std::string InputName(const std::string& path);

// What the file holds; of a pipe or device what comes until its end. Throws Error, naming the file,
// when it cannot be read, is a directory or has more than kLargestInput bytes; and where standard
// input is asked for twice. `kind` says what was wanted: "JSON file".
std::string ReadInputFile(const std::string& path, const std::string& kind = "file");

// Whether there is such a file, or what stands for one.
bool InputExists(const std::string& path);

// While it lives, ReadInputFile() of this thread takes these in place of files of their names: a
// page that simulates has no files. One at a time.
class GivenFiles {
 public:
  explicit GivenFiles(std::map<std::string, std::string> texts);  // by path
  ~GivenFiles();
  GivenFiles(const GivenFiles&) = delete;
  GivenFiles& operator=(const GivenFiles&) = delete;

 private:
  std::map<std::string, std::string> texts_;
};

}  // namespace rehearse
