#include "real/transports/run_secret.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr size_t kRandomBytes = 16;
constexpr mode_t kMode = 0600;
constexpr mode_t kOthers = 077;

std::string SharedName(const std::string& run) {
  return fmt::format("/rehearse-{}-{}.secret", getuid(), run);
}

std::string RandomText() {
  std::array<unsigned char, kRandomBytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(fmt::format("no random numbers for a secret: {}", std::strerror(errno)));
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Closes its file at the end.
struct OpenFile {
  explicit OpenFile(int the_descriptor) : descriptor(the_descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor >= 0) close(descriptor);
  }
  int descriptor;
};

// Returns the first line of what is there, however it ends.
std::string FirstLine(int descriptor) {
  char text[4 * kLongestSecret];
  const ssize_t size = read(descriptor, text, sizeof text);
  std::string line(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  line.resize(std::min(line.find('\n'), line.size()));
  line.resize(line.find_last_not_of(" \t\r") + 1);
  return line;
}

std::string ReadSecretFile(const std::string& path) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (file.descriptor < 0 || fstat(file.descriptor, &about) != 0)
    throw Error({path, 0, ""}, fmt::format("the secret of the run (REHEARSE_SECRET_FILE) cannot be "
                                           "read: {}",
                                           std::strerror(errno)));
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & kOthers) != 0) {
    throw Error({path, 0, ""},
                fmt::format("found {} of user {} and mode {:03o} for the secret of the run "
                            "(REHEARSE_SECRET_FILE), expected a file of your own of mode 600",
                            S_ISREG(about.st_mode) ? "a file" : "no plain file", about.st_uid,
                            about.st_mode & 0777));
  }
  return FirstLine(file.descriptor);
}

}  // namespace

bool IsSame(const SecretHalf& a, const SecretHalf& b) {
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

RunSecret SplitSecret(const std::string& text, const std::string& source) {
  if (text.size() < kShortestSecret || text.size() > kLongestSecret) {
    throw Error(fmt::format("{}: found a secret of {} characters, expected {} to {}", source,
                            text.size(), kShortestSecret, kLongestSecret));
  }
  RunSecret secret;
  const size_t middle = text.size() / 2;
  text.copy(secret.of_ranks.data(), middle);
  text.copy(secret.of_rank_0.data(), text.size() - middle, middle);
  if (IsSame(secret.of_ranks, secret.of_rank_0))
    throw Error(
        fmt::format("{}: found a secret of two equal halves, expected a random one", source));
  return secret;
}

std::optional<RunSecret> SecretFromEnvironment() {
  if (const char* text = std::getenv("REHEARSE_SECRET"))
    return SplitSecret(text, "environment: REHEARSE_SECRET");
  if (const char* path = std::getenv("REHEARSE_SECRET_FILE"))
    return SplitSecret(ReadSecretFile(path), path);
  return std::nullopt;
}

SharedSecret::SharedSecret(const std::string& run) : name_(SharedName(run)) {
  const std::string text = RandomText();
  secret_ = SplitSecret(text, name_);
  shm_unlink(name_.c_str());
  const OpenFile file(shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (file.descriptor < 0 ||
      write(file.descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    const int reason = errno;
    if (file.descriptor >= 0) shm_unlink(name_.c_str());
    throw Error(fmt::format("cannot leave a secret for the other ranks in shared memory {}: {}",
                            name_, std::strerror(reason)));
  }
}

SharedSecret::~SharedSecret() { shm_unlink(name_.c_str()); }

std::optional<RunSecret> SharedSecret::Find(const std::string& run) {
  const std::string name = SharedName(run);
  const OpenFile file(shm_open(name.c_str(), O_RDONLY | O_CLOEXEC, 0));
  struct stat about {};
  if (file.descriptor < 0 || fstat(file.descriptor, &about) != 0) return std::nullopt;
  if (about.st_uid != geteuid() || (about.st_mode & kOthers) != 0) return std::nullopt;
  const std::string text = FirstLine(file.descriptor);
  if (text.size() != 2 * kRandomBytes) return std::nullopt;  // it is being written
  return SplitSecret(text, name);
}

}  // namespace rehearse
