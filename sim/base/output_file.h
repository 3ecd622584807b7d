// Writing files so that a reader never sees half of one.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// Writes to a temporary name beside `path`, flushes and renames. Throws Error("cannot write ...:
// reason") and removes the temporary file when anything fails (missing folder, full disk, ...).
void WriteFileAtomically(const std::string& path, std::string_view content);

// Throws the same Error when a file could not be written there now: to ask before work that
// takes minutes.
void CheckWritable(const std::string& path);

}  // namespace rehearse
