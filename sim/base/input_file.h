// Reading a whole file, up to a largest size.
#pragma once

#include <string>

#include "sim/base/read_options.h"

namespace rehearse {

// What stands for standard input where a file is expected, and what messages call it.
inline constexpr const char* kStandardInput = "-";
inline constexpr const char* kStandardInputName = "standard input";
// What messages call the file: its path, or kStandardInputName.
std::string InputName(const std::string& path);

// What the file holds; for a pipe or device, everything up to its end. Throws Error, naming the
// file, when it cannot be read, is a directory or is too large, and when standard input is
// asked for twice. `kind` says what was wanted: "JSON file".
std::string ReadInputFile(const std::string& path, const std::string& kind = "file",
                          const ReadOptions& options = {});

// Whether there is such a file, or something that stands for one.
bool InputExists(const std::string& path, const ReadOptions& options = {});

}  // namespace rehearse
