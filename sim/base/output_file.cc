#include "sim/base/output_file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

[[noreturn]] void FailWriting(const std::string& path, int reason) {
  throw Error(fmt::format("cannot write {}: {}", path, std::generic_category().message(reason)));
}

// Closes the descriptor, and removes the file unless it was kept.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& folder, mode_t mode) {
    static std::atomic<unsigned> counter = 0;
    do {
      path_ = fmt::format("{}/.rehearse-{}-{}.tmp", folder, getpid(), counter++);
      descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (descriptor_ < 0 && errno == EEXIST);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    if (!kept_) unlink(path_.c_str());
  }

  int descriptor() const { return descriptor_; }
  bool KeepAs(const std::string& path) {
    kept_ = rename(path_.c_str(), path.c_str()) == 0;
    return kept_;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  bool kept_ = false;
};

bool WriteAll(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A pipe or a device (/dev/stdout, /dev/null) is written to; a rename would replace it.
void WriteThrough(const std::string& path, std::string_view content) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) FailWriting(path, errno);
  const int reason = WriteAll(descriptor, content) ? 0 : errno;
  close(descriptor);
  if (reason != 0) FailWriting(path, reason);
}

// What stands at the path now, and where the new file has to appear.
struct Target {
  bool exists = false;
  struct stat status {};
  std::string path;  // a link stays a link: what it points to is replaced
  std::string folder;
};

Target FindTarget(const std::string& path) {
  Target target;
  target.exists = stat(path.c_str(), &target.status) == 0;
  if (!target.exists && errno != ENOENT) FailWriting(path, errno);
  if (path.empty()) FailWriting("\"\"", ENOENT);
  if (target.exists && S_ISDIR(target.status.st_mode)) FailWriting(path, EISDIR);
  if (target.exists && access(path.c_str(), W_OK) != 0) FailWriting(path, errno);

  std::error_code unresolved;
  const std::filesystem::path resolved = std::filesystem::canonical(path, unresolved);
  const std::filesystem::path final = unresolved ? std::filesystem::path(path) : resolved;
  target.path = final.string();
  target.folder = final.has_parent_path() ? final.parent_path().string() : ".";
  return target;
}

bool IsReplaced(const Target& target) { return !target.exists || S_ISREG(target.status.st_mode); }

constexpr mode_t kNewFile = 0666;  // less the umask

}  // namespace

void WriteFileAtomically(const std::string& path, std::string_view content) {
  const Target target = FindTarget(path);
  if (!IsReplaced(target)) return WriteThrough(path, content);
  TemporaryFile file(target.folder, kNewFile);
  if (file.descriptor() < 0) FailWriting(path, errno);
  const bool written =
      (!target.exists || fchmod(file.descriptor(), target.status.st_mode & 07777) == 0) &&
      WriteAll(file.descriptor(), content) && fsync(file.descriptor()) == 0 &&
      file.KeepAs(target.path);
  if (!written) FailWriting(path, errno);
}

void CheckWritable(const std::string& path) {
  const Target target = FindTarget(path);
  if (!IsReplaced(target)) return;
  const TemporaryFile file(target.folder, kNewFile);
  if (file.descriptor() < 0) FailWriting(path, errno);
}

}  // namespace rehearse
