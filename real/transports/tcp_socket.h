// A connected stream socket that several threads may use, to send and receive whole pieces.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "real/transports/tcp_wire.h"

namespace rehearse {

using WireClock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int descriptor);  // takes ownership
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int descriptor() const { return descriptor_; }

  // Returns false if the other side is gone, or has taken nothing for kSendPatience; then the
  // connection is over.
  bool Send(const void* data, size_t bytes);
  bool Send(const WireFrame& frame, const void* data);
  // Sends only if nobody else is sending and there is room for its beginning: for frames that may
  // be left out.
  void SendIfFree(const WireFrame& frame);

  bool ReceiveAll(void* data, size_t bytes);
  bool ReceiveBy(WireClock::time_point deadline, void* data, size_t bytes);
  // What has come, at most this much: 0 if nothing has yet, nothing if the connection has ended.
  std::optional<size_t> ReceiveSome(void* data, size_t bytes);
  // Takes memory as data arrive, not as they are announced.
  bool ReceiveText(uint64_t bytes, std::string* text);

  // Counts whatever arrives: it rises as long as the other side sends.
  uint64_t pieces_heard() const { return pieces_heard_.load(std::memory_order_relaxed); }
  // Wakes threads that receive or send.
  void ShutDown();

 private:
  bool SendAll(const void* data, size_t bytes);

  int descriptor_;
  std::mutex sending_;
  std::atomic<uint64_t> pieces_heard_{0};
};

}  // namespace rehearse
