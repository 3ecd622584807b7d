// Reading a whole file, up to a largest size.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace rehearse {

// The largest file that is read, unless sim/base/large_documents.h allows more.
inline constexpr size_t kLargestInput = size_t{64} << 20;

// What stands for standard input where a file is expected, and what messages call it.
inline constexpr const char* kStandardInput = "-";
inline constexpr const char* kStandardInputName = "standard input";
// What messages call the file: its path, or kStandardInputName.
std::string InputName(const std::string& path);

// What the file holds; for a pipe or device, everything up to its end. Throws Error, naming the
// file, when it cannot be read, is a directory or has more than kLargestInput bytes, and when
// standard input is asked for twice. `kind` says what was wanted: "JSON file".
std::string ReadInputFile(const std::string& path, const std::string& kind = "file");

// Whether there is such a file, or something that stands for one.
bool InputExists(const std::string& path);

// While it lives, ReadInputFile() on this thread reads these texts in place of files of those
// names: a page that simulates has no files. Only one may exist at a time.
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
