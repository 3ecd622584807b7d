#include "real/transports/transport_tcp.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "real/transports/tcp_wire.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr std::chrono::milliseconds kWatchEvery{250};
constexpr uint32_t kLooksPerSign = 4;      // a sign of life every second
constexpr uint32_t kMostSilentLooks = 20;  // five seconds

class TcpTransport final : public Transport {
 public:
  TcpTransport(const Launch& launch, MetRanks met)
      : launch_(launch),
        peers_(std::move(met.neighbours)),
        has_left_(peers_.size()),
        on_one_machine_(met.have_one_clock) {
    try {
      for (size_t peer = 0; peer < peers_.size(); ++peer) {
        if (peers_[peer]) readers_.emplace_back([this, peer] { Serve(peer); });
      }
      watch_ = std::thread([this] { Watch(); });
    } catch (const std::system_error& error) {
      EndReaders();
      throw Error(fmt::format("cannot start a thread for each connection: {}", error.what()));
    }
  }

  ~TcpTransport() override {
    // Tells everybody, then waits for a while for the farewells of those it hears from.
    const bool well = !trouble();
    for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
      if (peers_[peer] && well)
        peers_[peer]->Send({FrameKind::kFarewell, launch_.rank, peer, 0, 0}, nullptr);
    }
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (well)
        changed_.wait_for(lock, std::chrono::seconds(3),
                          [&] { return farewells_ == readers_.size(); });
    }
    EndReaders();
    watch_.join();
  }

  const char* name() const override { return "tcp"; }
  uint32_t rank() const override { return launch_.rank; }
  uint32_t size() const override { return launch_.ranks; }
  uint32_t ranks_on_host() const override { return launch_.local_ranks; }
  bool has_common_clock() const override { return on_one_machine_; }

  Handle Send(uint32_t to, uint32_t tag, const void* data, size_t bytes) override {
    if (bytes > kLongestMessage)
      throw Error(fmt::format("a message of {} bytes is longer than TCP's 1 GiB", bytes));
    Pass({FrameKind::kMessage, launch_.rank, to, tag, bytes}, static_cast<const char*>(data));
    return std::make_unique<Sent>();
  }

  Handle Receive(uint32_t from, uint32_t tag, void* data, size_t bytes) override {
    return std::make_unique<Awaited>(from, tag, data, bytes);
  }

  void Wait(Handle handle) override {
    const auto* awaited = dynamic_cast<const Awaited*>(handle.get());
    if (awaited == nullptr) return;  // what was sent has already been copied
    std::unique_lock<std::mutex> lock(mutex_);
    std::deque<std::string>& letters = letters_[{awaited->from, awaited->tag}];
    changed_.wait(lock, [&] { return !letters.empty() || trouble_; });
    if (letters.empty()) throw RankLost(*trouble_);
    const std::string& letter = letters.front();
    if (letter.size() != awaited->bytes) {
      throw Error(fmt::format("rank {} sent a message of {} bytes with tag {}, expected {} bytes",
                              awaited->from, letter.size(), awaited->tag, awaited->bytes));
    }
    letter.copy(static_cast<char*>(awaited->data), awaited->bytes);
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
  void set_activity(const char*) noexcept override {}  // the reason that a rank gives names its op

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

  void EndReaders() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    ended_.notify_all();
    for (const auto& peer : peers_) {
      if (peer) peer->ShutDown();
    }
    for (std::thread& reader : readers_) reader.join();
  }

  // Sends to the receiver or, on ranks other than 0, to rank 0, which passes it on.
  void Pass(const WireFrame& frame, const char* data) {
    if (frame.to == launch_.rank) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        letters_[{frame.from, frame.tag}].emplace_back(data, frame.bytes);
      }
      changed_.notify_all();
      return;
    }
    // If the connection is gone, its thread says so; the reason may still be on its way there.
    peers_[launch_.rank == 0 ? frame.to : 0]->Send(frame, data);
  }

  // `peer` is the rank at the other end.
  void Serve(size_t peer) {
    Socket& socket = *peers_[peer];
    WireFrame frame;
    std::string data;
    while (socket.ReceiveAll(&frame, sizeof frame)) {
      const std::string fault =
          FaultOf(frame, static_cast<uint32_t>(peer), launch_.rank, launch_.ranks);
      if (!fault.empty()) {
        Spread(fmt::format("rank {} sent what no rank sends: a frame {}", peer, fault),
               launch_.rank);
        return;
      }
      if (!socket.ReceiveText(frame.bytes, &data)) break;
      if (frame.kind == FrameKind::kAbort) {
        Spread(data, frame.from);
      } else if (frame.kind == FrameKind::kFarewell) {
        has_left_[peer] = true;
        const std::lock_guard<std::mutex> lock(mutex_);
        ++farewells_;
        changed_.notify_all();
        return;
      } else if (frame.kind == FrameKind::kMessage) {
        Pass(frame, data.data());
      }
    }
    has_left_[peer] = true;
    if (!ends()) Spread(fmt::format("rank {} is lost: its connection ended", peer), launch_.rank);
  }

  // Gives signs of life and checks for those of the others. It counts its own checks: if this
  // process itself was stopped, the others were not silent in the meantime.
  void Watch() {
    std::vector<uint64_t> heard(peers_.size());
    std::vector<uint32_t> silent(peers_.size());
    std::unique_lock<std::mutex> lock(mutex_);
    for (uint32_t look = 0; !ended_.wait_for(lock, kWatchEvery, [&] { return ends_; }); ++look) {
      lock.unlock();
      for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
        if (!peers_[peer] || has_left_[peer]) continue;
        if (look % kLooksPerSign == 0)
          peers_[peer]->SendIfFree({FrameKind::kAlive, launch_.rank, peer, 0, 0});
        const uint64_t now = peers_[peer]->pieces_heard();
        silent[peer] = now == heard[peer] ? silent[peer] + 1 : 0;
        heard[peer] = now;
        if (silent[peer] == kMostSilentLooks) LoseSilent(peer);
      }
      lock.lock();
    }
  }

  // Its connection is closed after the others know, as one of them may be sending to it in vain.
  void LoseSilent(uint32_t peer) {
    Spread(fmt::format("rank {} has given no sign of life for {} s: it is stopped, or its machine "
                       "or the network to it is gone",
                       peer, kMostSilentLooks * kWatchEvery / std::chrono::seconds(1)),
           peer);
    has_left_[peer] = true;
    peers_[peer]->ShutDown();
  }

  // The first reason counts; rank 0 tells it to all others except the one it came from. Only then
  // does this rank itself learn it: it gives up, and its connections must not end before the others
  // know why.
  void Spread(const std::string& reason, uint32_t from) noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (spreads_) return;
      spreads_ = true;
    }
    const std::string told = reason.substr(0, kLongestReason);
    for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
      if (!peers_[peer] || (launch_.rank == 0 && peer == from)) continue;
      if (launch_.rank != 0 && from != launch_.rank) continue;
      peers_[peer]->Send({FrameKind::kAbort, from, peer, 0, told.size()}, told.data());
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      trouble_ = told;
    }
    changed_.notify_all();
  }

  std::optional<std::string> trouble() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return trouble_;
  }
  bool ends() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ends_;
  }

  const Launch launch_;
  const std::vector<std::unique_ptr<Socket>> peers_;  // on rank 0: by rank; on others: only rank 0
  std::vector<std::atomic<bool>> has_left_;           // by peer: nothing more is heard from it
  const bool on_one_machine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_;  // separate, so that messages do not wake the watch
  std::map<std::pair<uint32_t, uint32_t>, std::deque<std::string>> letters_;  // by sender and tag
  bool spreads_ = false;  // somebody has found trouble
  std::optional<std::string> trouble_;
  size_t farewells_ = 0;
  bool ends_ = false;
  std::vector<std::thread> readers_;
  std::thread watch_;
};

}  // namespace

std::unique_ptr<Transport> JoinTcp(const Launch& launch, const TcpMeeting& meeting) {
  return std::make_unique<TcpTransport>(launch, Meet(launch, meeting));
}

}  // namespace rehearse
