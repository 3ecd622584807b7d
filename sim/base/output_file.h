// Writing files so that a reader never sees half of one, nor half of a set of them for longer than
// a few renames take.
//
// What is written has no name until all of it is on the disk (O_TMPFILE): a program that is killed
// leaves nothing. A name that exists is replaced by renaming, for which there is a temporary name
// beside it for a moment, ".rehearse-*.tmp"; likewise where a file system has no files without a
// name. The writer holds a lock (flock) on it; a file that nobody holds was left by a program that
// was killed, and is removed at the next start.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

// Whether a path is standard output: "-", "/dev/stdout" or another name for it. What is written
// there is printed after whatever was printed before.
bool IsStandardOutput(const std::string& path);
// What messages call it: its path, or "standard output".
std::string OutputName(const std::string& path);

// The file that a path stands for: what a chain of links ends in, also where nothing is there yet.
// Throws Error where it cannot be written.
std::string FollowLinks(const std::string& path);

// Throws Error("cannot write ...: reason") when anything fails (missing folder, full disk, a pipe
// that nobody reads, ...); then everything is as it was. Pipes and devices are written through.
void WriteFileAtomically(const std::string& path, std::string_view content);

// Files that appear together, all or none, even if the disk is full or another program is writing
// the same set. Only what happens between the renames of Commit() can leave a mixture: a crash, or
// a path that has meanwhile become a folder.
class OutputSet {
 public:
  OutputSet();
  ~OutputSet();  // what was not committed never was
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;

  // Throws like WriteFileAtomically().
  void Add(const std::string& path, std::string_view content);
  // Once, last.
  void Commit();

 private:
  class File;
  std::vector<std::unique_ptr<File>> files_;
};

// Throws the same Error if a file could not be written there now. Call it before work that takes
// minutes.
void CheckWritable(const std::string& path);

// Makes the folder and its parents. Throws Error where it cannot.
void MakeFolder(const std::string& folder);

// Removes what killed programs left in the folder. Whoever writes files does this once for each
// folder.
void RemoveAbandonedFiles(const std::string& folder);

}  // namespace rehearse
