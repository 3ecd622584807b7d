#include "sim/base/say.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace rehearse {
namespace {

// Holds this thread's SIGPIPE back, and discards it if one has come in the meantime.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() {
    const timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) == -1 && errno == EINTR)
      continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

iovec PartOf(std::string_view text) {
  return {const_cast<char*>(text.data()), text.size()};  // writev only reads
}

template <size_t kCount>
void Write(std::array<iovec, kCount> parts) {
  const int errno_before = errno;
  const WithoutSigpipe without_sigpipe;
  for (size_t at = 0; at < kCount;) {
    const ssize_t count = writev(STDERR_FILENO, &parts[at], static_cast<int>(kCount - at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    auto written = static_cast<size_t>(count);
    for (; at < kCount && written >= parts[at].iov_len; ++at) written -= parts[at].iov_len;
    if (at == kCount) break;
    parts[at].iov_base = static_cast<char*>(parts[at].iov_base) + written;
    parts[at].iov_len -= written;
  }
  errno = errno_before;
}

constexpr std::string_view kClearLine = "\r\x1b[K";
std::atomic<bool> line_stands = false;                  // in place
static_assert(std::atomic<bool>::is_always_lock_free);  // signal handlers call Say too

}  // namespace

void Say(std::string_view message, std::string_view rest) noexcept {
  const std::string_view clear = line_stands.exchange(false) ? kClearLine : "";
  Write(
      std::array{PartOf(clear), PartOf("rehearse: "), PartOf(message), PartOf(rest), PartOf("\n")});
}

void SayInPlace(std::string_view line) noexcept {
  const bool stood = line_stands.exchange(!line.empty());
  if (stood || !line.empty()) Write(std::array{PartOf(kClearLine), PartOf(line)});
}

void SayAsItIs(std::string_view text) noexcept { Write(std::array{PartOf(text)}); }

void OccupyClosedStreams() noexcept {
  // Opened the wrong way round, so that reading from the first and writing to the others fail.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // This number is the lowest free one, as those below are open.
    open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace rehearse
