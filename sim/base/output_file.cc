#include "sim/base/output_file.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/interruption.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kNewFile = 0666;  // less the umask
constexpr std::string_view kTemporaryBegin = ".rehearse-";
constexpr std::string_view kTemporaryEnd = ".tmp";

[[noreturn]] void FailWriting(const std::string& path, int reason) {
  throw Error(fmt::format("cannot write {}: {}", path, std::generic_category().message(reason)));
}

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int operator*() const { return number_; }

 private:
  int number_;
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

// A pipe or a device (/dev/stdout, /dev/null) is written to; a rename would replace it. Without
// O_NONBLOCK, opening a pipe that nobody reads would wait for somebody.
void WriteThrough(const std::string& path, bool is_pipe, std::string_view content) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.is_open()) {
    if (is_pipe && errno == ENXIO)
      throw Error(fmt::format("cannot write {}: nobody reads this pipe", path));
    FailWriting(path, errno);
  }
  const int flags = fcntl(*file, F_GETFL);
  fcntl(*file, F_SETFL, flags & ~O_NONBLOCK);
  if (!WriteAll(*file, content)) FailWriting(path, errno);
}

// What is at the path now, and where the new file must appear.
struct Target {
  bool exists = false;
  struct stat status {};
  std::string path;  // a link stays a link: what it points to is replaced
  std::string folder;
};

// What a chain of links ends in, though nothing is there yet.
fs::path LastName(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  std::error_code ignored;
  for (int links = 0; links < kMostLinks && fs::is_symlink(fs::symlink_status(path, ignored));
       ++links) {
    const fs::path named = fs::read_symlink(path, ignored);
    path = named.is_absolute() ? named : path.parent_path() / named;
  }
  return path;
}

Target FindTarget(const std::string& path) {
  Target target;
  target.exists = stat(path.c_str(), &target.status) == 0;
  if (!target.exists && errno != ENOENT) FailWriting(path, errno);
  if (path.empty()) FailWriting("\"\"", ENOENT);
  if (target.exists && S_ISDIR(target.status.st_mode)) FailWriting(path, EISDIR);
  if (target.exists && access(path.c_str(), W_OK) != 0) FailWriting(path, errno);

  // A folder has one name here, however it was written, so that files of a set are known to share
  // it.
  std::error_code unresolved;
  fs::path final = fs::canonical(path, unresolved);
  if (unresolved) {
    const fs::path last = LastName(path);
    const fs::path parent = last.parent_path();
    final = fs::canonical(parent.empty() ? "." : parent, unresolved) / last.filename();
    if (unresolved) FailWriting(path, unresolved.value());
  }
  target.path = final.string();
  target.folder = final.parent_path().string();
  return target;
}

bool IsReplaced(const Target& target) { return !target.exists || S_ISREG(target.status.st_mode); }

// ---- Temporary names ----------------------------------------------------------------------------

std::string TemporaryName(const std::string& folder) {
  static std::atomic<unsigned> counter = 0;
  return fmt::format("{}/{}{}-{}{}", folder, kTemporaryBegin, getpid(), counter++, kTemporaryEnd);
}

bool IsAt(int descriptor, const std::string& path) {
  struct stat own {};
  struct stat there {};
  return fstat(descriptor, &own) == 0 && lstat(path.c_str(), &there) == 0 &&
         own.st_ino == there.st_ino && own.st_dev == there.st_dev;
}

// Whether a file without a name can be made there, and be given one later.
Descriptor OpenNameless(const std::string& folder, mode_t mode) {
  Descriptor file(open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (file.is_open() && access("/proc/self/fd", X_OK) != 0) return Descriptor();
  return file;
}

// Gives a nameless file a name; EEXIST if that name exists.
bool Link(int descriptor, const std::string& path) {
  const std::string from = fmt::format("/proc/self/fd/{}", descriptor);
  return linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// A new file of this name, with its lock: whoever finds it after it is made and before it is locked
// may think it abandoned and remove it.
Descriptor OpenNamed(const std::string& folder, mode_t mode, std::string* name) {
  while (true) {
    *name = TemporaryName(folder);
    Descriptor file(open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file.is_open()) {
      if (errno == EEXIST) continue;
      const int reason = errno;
      name->clear();
      errno = reason;
      return file;
    }
    if (flock(*file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
      if (IsAt(*file, *name)) return file;
    }
  }
}

void RemoveAbandonedOnce(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::string> done;
  {
    const std::lock_guard lock(mutex);
    if (!done.insert(folder).second) return;
  }
  RemoveAbandonedFiles(folder);
}

// Only one program at a time names the files of a set in a folder. Where the file system has no
// locks, neither has this.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : path_(fmt::format("{}/{}lock{}", folder, kTemporaryBegin, kTemporaryEnd)) {
    constexpr std::chrono::milliseconds kBetweenTries{2};
    constexpr int kMostTries =
        30'000;  // a minute; others need only a moment unless they are stopped
    for (int tries = 0; tries < kMostTries; ++tries) {
      file_ =
          Descriptor(open(path_.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kNewFile));
      if (!file_.is_open()) FailWriting(path_, errno);
      const bool is_locked = flock(*file_, LOCK_EX | LOCK_NB) == 0;
      if (!is_locked && errno != EWOULDBLOCK) return;
      if (is_locked && IsAt(*file_, path_)) return;  // not the one that its last holder removed
      if (!is_locked) std::this_thread::sleep_for(kBetweenTries);
    }
    throw Error(fmt::format("cannot write to {}: another program holds {}", folder, path_));
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { unlink(path_.c_str()); }

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace

bool IsStandardOutput(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

std::string OutputName(const std::string& path) {
  return IsStandardOutput(path) ? "standard output" : path;
}

std::string FollowLinks(const std::string& path) { return FindTarget(path).path; }

// ---- A file, and a set of them ------------------------------------------------------------------

// On the disk, but not yet in its place.
class OutputSet::File {
 public:
  File(std::string path, Target target, std::string_view content)
      : path_(std::move(path)), target_(std::move(target)) {
    RemoveAbandonedOnce(target_.folder);
    file_ = OpenNameless(target_.folder, kNewFile);
    if (!file_.is_open()) {
      uninterrupted_.emplace();
      file_ = OpenNamed(target_.folder, kNewFile, &temporary_);
      if (!file_.is_open()) FailWriting(path_, errno);
    }
    const bool written = (!target_.exists || fchmod(*file_, target_.status.st_mode & 07777) == 0) &&
                         WriteAll(*file_, content) && fsync(*file_) == 0;
    if (written) return;
    const int reason = errno;
    if (!temporary_.empty()) unlink(temporary_.c_str());
    FailWriting(path_, reason);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  const std::string& folder() const { return target_.folder; }

  // Takes the place if it is free, else a name to be renamed later. Only this needs room on the
  // disk.
  void TakeName() {
    if (!temporary_.empty()) return;
    if (!target_.exists) {
      if (Link(*file_, target_.path)) {
        is_new_ = true;
        return;
      }
      if (errno != EEXIST) FailWriting(path_, errno);
    }
    flock(*file_, LOCK_EX | LOCK_NB);  // nobody else knows it
    std::string name = TemporaryName(target_.folder);
    while (!Link(*file_, name)) {
      if (errno != EEXIST) FailWriting(path_, errno);
      name = TemporaryName(target_.folder);
    }
    temporary_ = name;
  }
  void TakeNameBack() {
    if (is_new_) unlink(target_.path.c_str());
    is_new_ = false;
  }
  void Replace() {
    if (temporary_.empty()) return;
    if (rename(temporary_.c_str(), target_.path.c_str()) != 0) FailWriting(path_, errno);
    temporary_.clear();
  }

 private:
  std::string path_;  // as the user wrote it
  Target target_;
  std::optional<Uninterrupted> uninterrupted_;  // while it has a temporary name
  Descriptor file_;
  std::string temporary_;
  bool is_new_ = false;  // has taken its place
};

OutputSet::OutputSet() = default;
OutputSet::~OutputSet() = default;

void OutputSet::Add(const std::string& path, std::string_view content) {
  if (IsStandardOutput(path)) {
    if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size())
      FailWriting(OutputName(path), errno);
    return;
  }
  Target target = FindTarget(path);
  if (!IsReplaced(target)) return WriteThrough(path, S_ISFIFO(target.status.st_mode), content);
  files_.push_back(std::make_unique<File>(path, std::move(target), content));
}

void OutputSet::Commit() {
  const Uninterrupted uninterrupted;
  std::set<std::string>
      folders;  // in the same order for all, so that no two programs wait for each other
  std::vector<std::unique_ptr<FolderLock>> locks;
  if (files_.size() > 1) {
    for (const auto& file : files_) folders.insert(file->folder());
    for (const std::string& folder : folders) locks.push_back(std::make_unique<FolderLock>(folder));
  }
  try {
    for (const auto& file : files_) file->TakeName();
  } catch (const Error&) {
    for (const auto& file : files_) file->TakeNameBack();
    throw;
  }
  for (const auto& file : files_) file->Replace();
  files_.clear();
}

void WriteFileAtomically(const std::string& path, std::string_view content) {
  OutputSet set;
  set.Add(path, content);
  set.Commit();
}

void CheckWritable(const std::string& path) {
  if (IsStandardOutput(path)) return;
  const Target target = FindTarget(path);
  if (!IsReplaced(target) || OpenNameless(target.folder, kNewFile).is_open()) return;
  const Uninterrupted uninterrupted;
  std::string name;
  if (!OpenNamed(target.folder, kNewFile, &name).is_open()) FailWriting(path, errno);
  unlink(name.c_str());
}

void MakeFolder(const std::string& folder) {
  std::error_code error;
  if (folder.empty()) error = std::make_error_code(std::errc::no_such_file_or_directory);
  if (!error) fs::create_directories(folder, error);
  if (error)
    throw Error(fmt::format("cannot make folder {}: {}", folder.empty() ? "\"\"" : folder,
                            error.message()));
}

void RemoveAbandonedFiles(const std::string& folder) {
  std::error_code unreadable;
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kTemporaryBegin) || !name.ends_with(kTemporaryEnd)) continue;
    const std::string path = entry->path().string();
    std::error_code gone;
    if (!fs::is_regular_file(entry->symlink_status(gone))) continue;
    const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.is_open() || flock(*file, LOCK_EX | LOCK_NB) != 0) continue;
    if (IsAt(*file, path)) unlink(path.c_str());
  }
}

}  // namespace rehearse
