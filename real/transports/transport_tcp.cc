#include "real/transports/transport_tcp.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

enum class FrameKind : uint32_t { kMessage, kHello, kWelcome, kAbort, kFarewell };

struct Frame {
  FrameKind kind = FrameKind::kMessage;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t tag = 0;
  uint64_t bytes = 0;
};

constexpr uint32_t kBarrierTag = 0xffffffffu;
constexpr uint64_t kLongest = 1 << 16;  // of what is said before the first message
constexpr double kHelloPatience = 2;    // seconds for what has connected to say who it is

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    const int on = 1;
    setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Socket() { close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int descriptor() const { return descriptor_; }

  // How long ReceiveAll waits for more; 0: without end.
  void SetPatience(double seconds) {
    timeval time{};
    time.tv_sec = static_cast<time_t>(seconds);
    time.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(time.tv_sec)) * 1e6);
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  }
  // False when the other side is gone.
  bool Send(const Frame& frame, const void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return SendAll(&frame, sizeof frame) && SendAll(data, frame.bytes);
  }
  bool ReceiveAll(void* data, size_t bytes) {
    char* to = static_cast<char*>(data);
    while (bytes > 0) {
      const ssize_t got = recv(descriptor_, to, bytes, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      to += got;
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }
  // Wakes whoever receives.
  void ShutDown() { shutdown(descriptor_, SHUT_RDWR); }

 private:
  bool SendAll(const void* data, size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t sent = send(descriptor_, from, bytes, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      from += sent;
      bytes -= static_cast<size_t>(sent);
    }
    return true;
  }

  int descriptor_;
  std::mutex mutex_;
};

using Clock = std::chrono::steady_clock;

// What a rank says of itself when it comes: machines are told apart by the kernel's boot id.
struct Hello {
  uint32_t rank = 0;
  uint32_t ranks = 0;
  std::array<char, 40> machine{};
};

Hello HelloOf(const Launch& launch) {
  Hello hello;
  hello.rank = launch.rank;
  hello.ranks = launch.ranks;
  if (FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (std::fgets(hello.machine.data(), static_cast<int>(hello.machine.size()), file) == nullptr) {
      hello.machine[0] = '\0';
    }
    std::fclose(file);
  }
  return hello;
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(const Launch& launch, const TcpAddress& address, double patience)
      : launch_(launch), patience_(patience), peers_(launch.rank == 0 ? launch.ranks : 1) {
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(patience));
    if (launch.rank == 0) {
      Gather(address, until);
    } else {
      Connect(address, until);
    }
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      if (peers_[peer]) readers_.emplace_back([this, peer] { Serve(peer); });
    }
  }

  ~TcpTransport() override {
    // Everybody is told, then everybody waits for the farewells of those it hears
    // from, for a while.
    const bool well = !trouble();
    for (const auto& peer : peers_) {
      if (peer && well) peer->Send({FrameKind::kFarewell, launch_.rank, 0, 0, 0}, nullptr);
    }
    if (well) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait_for(lock, std::chrono::seconds(3),
                        [&] { return farewells_ == readers_.size(); });
    }
    ends_.store(true);
    for (const auto& peer : peers_) {
      if (peer) peer->ShutDown();
    }
    for (std::thread& reader : readers_) reader.join();
  }

  const char* name() const override { return "tcp"; }
  uint32_t rank() const override { return launch_.rank; }
  uint32_t size() const override { return launch_.ranks; }
  uint32_t ranks_on_host() const override { return launch_.local_ranks; }
  bool has_common_clock() const override { return on_one_machine_; }

  Handle Send(uint32_t to, uint32_t tag, const void* data, size_t bytes) override {
    Pass({FrameKind::kMessage, launch_.rank, to, tag, bytes}, static_cast<const char*>(data));
    return std::make_unique<Sent>();
  }

  Handle Receive(uint32_t from, uint32_t tag, void* data, size_t bytes) override {
    return std::make_unique<Awaited>(from, tag, data, bytes);
  }

  void Wait(Handle handle) override {
    const auto* awaited = dynamic_cast<const Awaited*>(handle.get());
    if (awaited == nullptr) return;  // what was sent has been copied
    std::unique_lock<std::mutex> lock(mutex_);
    std::deque<std::string>& letters = letters_[{awaited->from, awaited->tag}];
    changed_.wait(lock, [&] { return !letters.empty() || trouble_; });
    if (letters.empty()) throw RankLost(*trouble_);
    CHECK_EQ(letters.front().size(), awaited->bytes);
    letters.front().copy(static_cast<char*>(awaited->data), awaited->bytes);
    letters.pop_front();
  }

  void Barrier() override {
    char nothing = 0;
    if (launch_.rank != 0) {
      Wait(Send(0, kBarrierTag, &nothing, 1));
      Wait(Receive(0, kBarrierTag, &nothing, 1));
      return;
    }
    for (uint32_t from = 1; from < size(); ++from) Wait(Receive(from, kBarrierTag, &nothing, 1));
    for (uint32_t to = 1; to < size(); ++to) Wait(Send(to, kBarrierTag, &nothing, 1));
  }

  void Check() override {
    if (const auto reason = trouble()) throw RankLost(*reason);
  }

  void Abort(const std::string& reason) noexcept override { Spread(reason, launch_.rank); }
  void set_activity(const char*) noexcept override {}  // the reason that a rank gives tells its op

 private:
  struct Sent : Message {};
  struct Awaited : Message {
    Awaited(uint32_t the_from, uint32_t the_tag, void* the_data, size_t the_bytes)
        : from(the_from), tag(the_tag), data(the_data), bytes(the_bytes) {}
    uint32_t from;
    uint32_t tag;
    void* data;
    size_t bytes;
  };

  // ---- coming together --------------------------------------------------------------------------

  void Gather(const TcpAddress& address, Clock::time_point until) {
    const int listener = socket(AF_INET6, SOCK_STREAM, 0);
    const Socket owner(listener);
    const int on = 1;
    const int off = 0;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 own{};
    own.sin6_family = AF_INET6;
    own.sin6_port = htons(address.port);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        listen(listener, static_cast<int>(size())) != 0) {
      throw Error(fmt::format("rank 0 cannot listen on port {}: {} (set MASTER_PORT)", address.port,
                              std::strerror(errno)));
    }
    const Hello self = HelloOf(launch_);
    on_one_machine_ = true;
    for (uint32_t missing = size() - 1; missing > 0;) {
      pollfd waits{listener, POLLIN, 0};
      if (poll(&waits, 1, 100) > 0) {
        auto peer = std::make_unique<Socket>(accept(listener, nullptr, nullptr));
        Frame frame;
        Hello hello;
        peer->SetPatience(kHelloPatience);
        if (!peer->ReceiveAll(&frame, sizeof frame) || frame.kind != FrameKind::kHello ||
            !peer->ReceiveAll(&hello, sizeof hello)) {
          continue;  // somebody else's knock
        }
        if (hello.ranks != size() || hello.rank == 0 || hello.rank >= size() ||
            peers_[hello.rank]) {
          throw Error(
              fmt::format("rank {} of {} came to rank 0 of {}: they belong to other runs, or "
                          "came twice",
                          hello.rank, hello.ranks, size()));
        }
        on_one_machine_ = on_one_machine_ && hello.machine == self.machine;
        peer->SetPatience(0);
        peers_[hello.rank] = std::move(peer);
        --missing;
      }
      if (missing > 0 && Clock::now() > until) FailMissing();
    }
    const char one = on_one_machine_ ? 1 : 0;
    for (uint32_t to = 1; to < size(); ++to) {
      peers_[to]->Send({FrameKind::kWelcome, 0, to, 0, 1}, &one);
    }
  }

  // Those that have come learn why it ends.
  [[noreturn]] void FailMissing() {
    std::vector<uint32_t> missing;
    for (uint32_t rank = 1; rank < size(); ++rank) {
      if (!peers_[rank]) missing.push_back(rank);
    }
    const std::string reason = fmt::format("rank {} did not come within {} s (REHEARSE_PATIENCE)",
                                           fmt::join(missing, ", "), patience_);
    for (const auto& peer : peers_) {
      if (peer) peer->Send({FrameKind::kAbort, 0, 0, 0, reason.size()}, reason.data());
    }
    throw Error(reason);
  }

  void Connect(const TcpAddress& address, Clock::time_point until) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    while (true) {
      addrinfo* found = nullptr;
      const std::string port = std::to_string(address.port);
      if (getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found) != 0) found = nullptr;
      for (const addrinfo* entry = found; entry != nullptr && !peers_[0]; entry = entry->ai_next) {
        const int descriptor = socket(entry->ai_family, entry->ai_socktype, entry->ai_protocol);
        if (descriptor < 0) continue;
        auto peer = std::make_unique<Socket>(descriptor);
        if (connect(descriptor, entry->ai_addr, entry->ai_addrlen) == 0)
          peers_[0] = std::move(peer);
      }
      if (found != nullptr) freeaddrinfo(found);
      if (peers_[0]) break;
      if (Clock::now() > until) {
        throw Error(
            fmt::format("rank 0 does not answer at {}:{} (MASTER_ADDR, MASTER_PORT) within {} s "
                        "(REHEARSE_PATIENCE)",
                        address.host, address.port, patience_));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const Hello hello = HelloOf(launch_);
    peers_[0]->Send({FrameKind::kHello, rank(), 0, 0, sizeof hello}, &hello);
    // Rank 0 may have come as late as this one may, and waits as long for the others.
    peers_[0]->SetPatience(2 * patience_ + kHelloPatience);
    Frame frame;
    const bool is_answered = peers_[0]->ReceiveAll(&frame, sizeof frame) && frame.bytes < kLongest;
    std::string said(is_answered ? frame.bytes : 0, '\0');
    if (!is_answered || !peers_[0]->ReceiveAll(said.data(), said.size()) ||
        (frame.kind != FrameKind::kWelcome && frame.kind != FrameKind::kAbort)) {
      throw Error(fmt::format(
          "rank 0 at {}:{} gave up while ranks were still coming, or something else listens there "
          "(MASTER_ADDR, MASTER_PORT)",
          address.host, address.port));
    }
    if (frame.kind == FrameKind::kAbort) throw Error(said);
    peers_[0]->SetPatience(0);
    on_one_machine_ = said == std::string(1, '\1');
  }

  // ---- messages ---------------------------------------------------------------------------------

  // To its receiver, or to rank 0, who knows it.
  void Pass(const Frame& frame, const char* data) {
    if (frame.to == launch_.rank) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        letters_[{frame.from, frame.tag}].emplace_back(data, frame.bytes);
      }
      changed_.notify_all();
      return;
    }
    // If the connection is gone, who serves it says so; the reason may still be on its way there.
    peers_[launch_.rank == 0 ? frame.to : 0]->Send(frame, data);
  }

  void Serve(size_t peer) {
    Socket& socket = *peers_[peer];
    Frame frame;
    std::string data;
    while (socket.ReceiveAll(&frame, sizeof frame)) {
      data.resize(frame.bytes);
      if (!socket.ReceiveAll(data.data(), frame.bytes)) break;
      if (frame.kind == FrameKind::kAbort) {
        Spread(data, frame.from);
      } else if (frame.kind == FrameKind::kFarewell) {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++farewells_;
        changed_.notify_all();
        return;
      } else {
        Pass(frame, data.data());
      }
    }
    if (!ends_.load()) {
      Spread(fmt::format("rank {} is lost: its connection ended", peer), launch_.rank);
    }
  }

  // The first reason counts; rank 0 tells it to all others but the one that it came from. Only
  // then does this rank itself learn it: it gives up, and its connections must not end before the
  // others know why.
  void Spread(const std::string& reason, uint32_t from) noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (spreads_) return;
      spreads_ = true;
    }
    for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
      if (!peers_[peer] || (launch_.rank == 0 && peer == from)) continue;
      if (launch_.rank != 0 && from != launch_.rank) continue;
      peers_[peer]->Send({FrameKind::kAbort, from, peer, 0, reason.size()}, reason.data());
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      trouble_ = reason;
    }
    changed_.notify_all();
  }

  std::optional<std::string> trouble() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return trouble_;
  }

  const Launch launch_;
  const double patience_;                       // seconds
  std::vector<std::unique_ptr<Socket>> peers_;  // rank 0: by rank; else rank 0 alone
  bool on_one_machine_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<std::string>> letters_;  // by sender and tag
  bool spreads_ = false;  // somebody has found trouble
  std::optional<std::string> trouble_;
  size_t farewells_ = 0;
  std::atomic<bool> ends_{false};
  std::vector<std::thread> readers_;
};

}  // namespace

std::unique_ptr<Transport> JoinTcp(const Launch& launch, const TcpAddress& address,
                                   double patience) {
  return std::make_unique<TcpTransport>(launch, address, patience);
}

}  // namespace rehearse
