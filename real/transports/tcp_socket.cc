#include "real/transports/tcp_socket.h"

#include <algorithm>
#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rehearse {
namespace {

// This is longer than a rank may be silent, so that by then others have said which rank it is.
constexpr int kSendPatience = 8000;  // milliseconds

int MillisecondsUntil(WireClock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - WireClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 1'000'000));
}

}  // namespace

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  const int on = 1;
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Socket::~Socket() { close(descriptor_); }

bool Socket::Send(const void* data, size_t bytes) {
  const std::lock_guard<std::mutex> lock(sending_);
  return SendAll(data, bytes);
}

bool Socket::Send(const WireFrame& frame, const void* data) {
  const std::lock_guard<std::mutex> lock(sending_);
  return SendAll(&frame, sizeof frame) && SendAll(data, frame.bytes);
}

void Socket::SendIfFree(const WireFrame& frame) {
  const std::unique_lock<std::mutex> lock(sending_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const char* from = reinterpret_cast<const char*>(&frame);
  const ssize_t sent = send(descriptor_, from, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) SendAll(from + sent, sizeof frame - static_cast<size_t>(sent));
}

bool Socket::SendAll(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(descriptor_, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      pollfd room{descriptor_, POLLOUT, 0};
      if (poll(&room, 1, kSendPatience) != 0) continue;
      ShutDown();
      return false;
    }
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool Socket::ReceiveAll(void* data, size_t bytes) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(descriptor_, to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    pieces_heard_.fetch_add(1, std::memory_order_relaxed);
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

std::optional<size_t> Socket::ReceiveSome(void* data, size_t bytes) {
  const ssize_t got = recv(descriptor_, data, bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) return std::nullopt;
  return static_cast<size_t>(got);
}

bool Socket::ReceiveBy(WireClock::time_point deadline, void* data, size_t bytes) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    pollfd comes{descriptor_, POLLIN, 0};
    const int left = MillisecondsUntil(deadline);
    if (left == 0 || poll(&comes, 1, left) == 0) return false;
    const std::optional<size_t> got = ReceiveSome(to, bytes);
    if (!got) return false;
    to += *got;
    bytes -= *got;
  }
  return true;
}

bool Socket::ReceiveText(uint64_t bytes, std::string* text) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  text->clear();
  while (text->size() < bytes) {
    const size_t before = text->size();
    text->resize(before + std::min(kPiece, bytes - before));
    if (!ReceiveAll(text->data() + before, text->size() - before)) return false;
  }
  return true;
}

void Socket::ShutDown() { shutdown(descriptor_, SHUT_RDWR); }

}  // namespace rehearse
