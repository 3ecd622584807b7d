#include "real/transports/tcp_meeting.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "sim/base/error.h"
#include "sim/base/say.h"

namespace rehearse {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kHelloPatience{2000};  // for whoever has connected to say who it is
constexpr milliseconds kBetweenTries{50};
constexpr size_t kMostKnocks = 256;  // connections of which nothing is known yet

WireClock::duration WireTime(double seconds) {
  return std::chrono::duration_cast<WireClock::duration>(std::chrono::duration<double>(seconds));
}

std::array<char, 40> BootId() {
  std::array<char, 40> id{};
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (std::fgets(id.data(), static_cast<int>(id.size()), file) == nullptr) id[0] = '\0';
    std::fclose(file);
  }
  return id;
}

std::string RunName(const Launch& launch, const TcpAddress& address) {
  return fmt::format("{}-{}", launch.job, address.port);
}

std::string TextOf(const sockaddr_storage& address, socklen_t length) {
  char host[64];
  char port[16];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  std::string_view shown(host);
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 on a socket of both
  if (shown.starts_with(kMapped)) shown.remove_prefix(kMapped.size());
  return fmt::format("{}, port {}", shown, port);
}

// ---- rank 0 -------------------------------------------------------------------------------------

// Listens at the port, on loopback if all ranks are on one machine, or else on all interfaces.
std::unique_ptr<Socket> Listener(const TcpAddress& address, bool on_one_machine, uint32_t ranks) {
  sockaddr_in6 all{};
  all.sin6_family = AF_INET6;
  all.sin6_port = htons(address.port);
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_port = htons(address.port);
  loopback.sin_addr.s_addr = htonl(on_one_machine ? INADDR_LOOPBACK : INADDR_ANY);

  const int flags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  int family = AF_INET;
  int descriptor = -1;
  if (!on_one_machine) {
    family = AF_INET6;
    descriptor = socket(AF_INET6, flags, 0);
  }
  if (descriptor < 0) {  // a machine may lack IPv6
    family = AF_INET;
    descriptor = socket(AF_INET, flags, 0);
  }
  auto listener = std::make_unique<Socket>(descriptor);
  const int on = 1;
  const int off = 0;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const auto* own = family == AF_INET6 ? reinterpret_cast<const sockaddr*>(&all)
                                       : reinterpret_cast<const sockaddr*>(&loopback);
  const socklen_t length = family == AF_INET6 ? sizeof all : sizeof loopback;
  const int backlog = static_cast<int>(std::min<uint32_t>(ranks + kMostKnocks, SOMAXCONN));
  if (bind(descriptor, own, length) != 0 || listen(descriptor, backlog) != 0) {
    throw Error(fmt::format("rank 0 cannot listen on port {}: {} (set MASTER_PORT)", address.port,
                            std::strerror(errno)));
  }
  return listener;
}

class Gathering {
 public:
  Gathering(const Launch& launch, const TcpMeeting& meeting, bool on_one_machine)
      : launch_(launch),
        meeting_(meeting),
        until_(WireClock::now() + WireTime(meeting.patience)),
        listener_(Listener(meeting.address, on_one_machine, launch.ranks)),
        missing_(launch.ranks - 1) {
    met_.neighbours.resize(launch.ranks);
    met_.have_one_clock = true;
    // The secret is made only after it listens: then the port belongs to this run alone, and so
    // does the name.
    if (!meeting.secret) own_secret_.emplace(RunName(launch, meeting.address));
  }

  MetRanks Run() {
    while (missing_ > 0) {
      if (WireClock::now() > until_) FailMissing();
      WaitForNews();
    }
    const char one = met_.have_one_clock ? 1 : 0;
    for (uint32_t to = 1; to < launch_.ranks; ++to)
      met_.neighbours[to]->Send({FrameKind::kWelcome, 0, to, 0, 1}, &one);
    return std::move(met_);
  }

 private:
  // Who has connected, and what it has said so far.
  struct Knock {
    std::unique_ptr<Socket> socket;
    std::string from;
    WireClock::time_point until;
    Hello hello;
    size_t heard = 0;  // bytes of it
  };

  const RunSecret& secret() const {
    return meeting_.secret ? *meeting_.secret : own_secret_->secret();
  }

  void WaitForNews() {
    std::vector<pollfd> waits{{listener_->descriptor(), POLLIN, 0}};
    for (const Knock& knock : knocks_) waits.push_back({knock.socket->descriptor(), POLLIN, 0});
    for (const auto& neighbour : met_.neighbours) {
      if (neighbour) waits.push_back({neighbour->descriptor(), POLLRDHUP, 0});
    }
    constexpr int kLongest = 100;  // milliseconds
    poll(waits.data(), waits.size(), kLongest);
    auto wait = waits.cbegin();
    const bool somebody_comes = wait++->revents != 0;
    const std::vector<pollfd> of_knocks(wait, wait + static_cast<ptrdiff_t>(knocks_.size()));
    wait += static_cast<ptrdiff_t>(knocks_.size());
    for (auto& neighbour : met_.neighbours) {
      if (!neighbour || wait++->revents == 0) continue;
      neighbour.reset();  // it has gone, but may come again
      ++missing_;
    }
    Hear(of_knocks);
    if (somebody_comes) LetKnock();
  }

  void Hear(const std::vector<pollfd>& waits) {
    std::vector<Knock> left;
    for (size_t i = 0; i < knocks_.size(); ++i) {
      Knock& knock = knocks_[i];
      if (waits[i].revents != 0) {
        const auto got = knock.socket->ReceiveSome(
            reinterpret_cast<char*>(&knock.hello) + knock.heard, sizeof(Hello) - knock.heard);
        if (!got) {
          Drop(knock, "it left before it said who it is");
          continue;
        }
        knock.heard += *got;
      }
      if (knock.heard == sizeof(Hello)) {
        Judge(&knock);
      } else if (WireClock::now() > knock.until) {
        Drop(knock, fmt::format("it did not say within {} s who it is",
                                kHelloPatience / std::chrono::seconds(1)));
      } else {
        left.push_back(std::move(knock));
      }
    }
    knocks_ = std::move(left);
  }

  void LetKnock() {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    const int descriptor = accept4(listener_->descriptor(), reinterpret_cast<sockaddr*>(&address),
                                   &length, SOCK_CLOEXEC);
    if (descriptor < 0) {
      std::this_thread::sleep_for(milliseconds(10));  // out of descriptors, perhaps
      return;
    }
    if (knocks_.size() == kMostKnocks) {
      Drop(knocks_.front(), fmt::format("more than {} connect at once", kMostKnocks));
      knocks_.erase(knocks_.begin());
    }
    Knock knock;
    knock.socket = std::make_unique<Socket>(descriptor);
    knock.from = TextOf(address, length);
    knock.until = WireClock::now() + kHelloPatience;
    knocks_.push_back(std::move(knock));
  }

  void Judge(Knock* knock) {
    const Hello& hello = knock->hello;
    if (hello.magic != kWireMagic) return Drop(*knock, "it does not talk like a rank");
    if (hello.version != kWireVersion)
      return Drop(*knock, "it is a rank of another version of rehearse");
    if (!IsSame(hello.secret, secret().of_ranks))
      return Drop(*knock, "it does not know the secret of the run (REHEARSE_SECRET)");
    std::string fault;
    if (hello.ranks != launch_.ranks || hello.rank == 0 || hello.rank >= launch_.ranks) {
      fault = fmt::format("rank {} of {} came to rank 0 of {}: they belong to other runs",
                          hello.rank, hello.ranks, launch_.ranks);
    } else if (met_.neighbours[hello.rank]) {
      fault = fmt::format("rank {} came twice", hello.rank);
    }
    Answer answer;
    answer.secret = secret().of_rank_0;
    answer.is_refused = fault.empty() ? 0 : 1;
    answer.milliseconds =
        static_cast<uint64_t>(std::max<int64_t>(0, (until_ - WireClock::now()) / milliseconds(1)));
    fault.copy(answer.reason.data(), answer.reason.size() - 1);
    if (!knock->socket->Send(&answer, sizeof answer) && fault.empty())
      fault = fmt::format("rank {} left at once", hello.rank);
    if (!fault.empty()) return Drop(*knock, fault);
    met_.have_one_clock = met_.have_one_clock && hello.machine == machine_;
    met_.neighbours[hello.rank] = std::move(knock->socket);
    --missing_;
  }

  // The first is reported at once and their number at the end, because there may be many.
  void Drop(const Knock& knock, const std::string& why) {
    if (dropped_++ > 0) return;
    first_dropped_ = fmt::format("{}: {}", knock.from, why);
    Say(fmt::format("rank 0: dropped a connection from {}; it waits for the ranks of its run",
                    first_dropped_));
  }

  // Tells those that have come why the run ends.
  [[noreturn]] void FailMissing() {
    std::vector<uint32_t> missing;
    for (uint32_t rank = 1; rank < launch_.ranks; ++rank) {
      if (!met_.neighbours[rank]) missing.push_back(rank);
    }
    std::string reason = fmt::format("rank {} did not come within {} s (REHEARSE_PATIENCE)",
                                     fmt::join(missing, ", "), meeting_.patience);
    if (dropped_ > 0) {
      reason += fmt::format("; {} connection{} dropped, the first from {}", dropped_,
                            dropped_ == 1 ? " was" : "s were", first_dropped_);
    }
    for (const auto& neighbour : met_.neighbours) {
      if (neighbour) neighbour->Send({FrameKind::kAbort, 0, 0, 0, reason.size()}, reason.data());
    }
    throw Error(reason);
  }

  const Launch& launch_;
  const TcpMeeting& meeting_;
  const WireClock::time_point until_;
  const std::unique_ptr<Socket> listener_;
  const std::array<char, 40> machine_ = BootId();
  std::optional<SharedSecret> own_secret_;
  std::vector<Knock> knocks_;
  MetRanks met_;
  uint32_t missing_;
  size_t dropped_ = 0;
  std::string first_dropped_;
};

// ---- the others ---------------------------------------------------------------------------------

std::unique_ptr<Socket> ConnectBy(WireClock::time_point until, const addrinfo& entry) {
  const int descriptor =
      socket(entry.ai_family, entry.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, entry.ai_protocol);
  if (descriptor < 0) return nullptr;
  auto connected = std::make_unique<Socket>(descriptor);
  if (connect(descriptor, entry.ai_addr, entry.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return nullptr;
    const auto left = std::min<WireClock::duration>(until - WireClock::now(), kHelloPatience);
    pollfd waits{descriptor, POLLOUT, 0};
    int fault = 0;
    socklen_t length = sizeof fault;
    if (left.count() <= 0 || poll(&waits, 1, static_cast<int>(left / milliseconds(1))) <= 0 ||
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &fault, &length) != 0 || fault != 0) {
      return nullptr;
    }
  }
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return connected;
}

class Arrival {
 public:
  Arrival(const Launch& launch, const TcpMeeting& meeting, bool on_one_machine)
      : launch_(launch),
        meeting_(meeting),
        host_(on_one_machine ? "127.0.0.1" : meeting.address.host),
        until_(WireClock::now() + WireTime(meeting.patience)) {
    trouble_ = fmt::format("rank 0 does not answer at {} (MASTER_ADDR, MASTER_PORT)", Where());
  }

  MetRanks Run() {
    while (true) {
      if (auto socket = TryToComeIn()) return AwaitWelcome(std::move(socket));
      if (WireClock::now() > until_) {
        throw Error(fmt::format("{} within {} s (REHEARSE_PATIENCE)", trouble_, meeting_.patience));
      }
      std::this_thread::sleep_for(kBetweenTries);
    }
  }

 private:
  std::string Where() const { return fmt::format("{}:{}", host_, meeting_.address.port); }

  std::unique_ptr<Socket> TryToConnect() const {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(meeting_.address.port);
    if (getaddrinfo(host_.c_str(), port.c_str(), &hints, &found) != 0) return nullptr;
    std::unique_ptr<Socket> connected;
    for (const addrinfo* entry = found; entry != nullptr && !connected; entry = entry->ai_next)
      connected = ConnectBy(until_, *entry);
    freeaddrinfo(found);
    return connected;
  }

  // Returns null if it is worth another try: rank 0 may still come, or the secret may be an earlier
  // run's.
  std::unique_ptr<Socket> TryToComeIn() {
    std::optional<RunSecret> secret = meeting_.secret;
    if (!secret) secret = SharedSecret::Find(RunName(launch_, meeting_.address));
    if (!secret) return nullptr;
    std::unique_ptr<Socket> socket = TryToConnect();
    if (!socket) return nullptr;
    Hello hello;
    hello.rank = launch_.rank;
    hello.ranks = launch_.ranks;
    hello.secret = secret->of_ranks;
    hello.machine = BootId();
    Answer answer;
    const bool is_answered = socket->Send(&hello, sizeof hello) &&
                             socket->ReceiveBy(std::min(until_, WireClock::now() + kHelloPatience),
                                               &answer, sizeof answer) &&
                             answer.magic == kWireMagic && answer.version == kWireVersion &&
                             IsSame(answer.secret, secret->of_rank_0);
    if (!is_answered) {
      trouble_ = fmt::format(
          "what listens at {} (MASTER_ADDR, MASTER_PORT) does not answer like rank 0 of this run: "
          "it has another secret (REHEARSE_SECRET) or is another program; no other came",
          Where());
      return nullptr;
    }
    if (answer.is_refused != 0) {
      answer.reason.back() = '\0';
      throw Error(fmt::format("rank 0 at {} refused: {}", Where(), answer.reason.data()));
    }
    const auto most = static_cast<uint64_t>(meeting_.patience * 1000);  // rank 0's is the same
    welcome_until_ =
        WireClock::now() + milliseconds(std::min(answer.milliseconds, most)) + kHelloPatience;
    return socket;
  }

  // Rank 0 meanwhile waits for others; it has said how long.
  MetRanks AwaitWelcome(std::unique_ptr<Socket> socket) const {
    WireFrame frame;
    std::string said;
    const bool is_known = socket->ReceiveBy(welcome_until_, &frame, sizeof frame) &&
                          (frame.kind == FrameKind::kWelcome || frame.kind == FrameKind::kAbort) &&
                          frame.bytes <= kLongestReason;
    if (is_known) said.resize(frame.bytes);
    if (!is_known || !socket->ReceiveBy(welcome_until_, said.data(), said.size())) {
      throw Error(fmt::format("rank 0 at {} gave up while ranks were still coming", Where()));
    }
    if (frame.kind == FrameKind::kAbort) throw Error(said);
    MetRanks met;
    met.neighbours.push_back(std::move(socket));
    met.have_one_clock = said == std::string(1, '\1');
    return met;
  }

  const Launch& launch_;
  const TcpMeeting& meeting_;
  const std::string host_;
  const WireClock::time_point until_;
  WireClock::time_point welcome_until_;
  std::string trouble_;
};

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

TcpMeeting TcpMeetingFromEnvironment() {
  return {TcpAddressFromEnvironment(), PatienceFromEnvironment(), SecretFromEnvironment()};
}

bool MeetOnOneMachine(const Launch& launch, const TcpAddress& address) {
  if (launch.local_ranks < launch.ranks) return false;
  return launch.knows_local_ranks || IsLoopback(address.host);
}

MetRanks Meet(const Launch& launch, const TcpMeeting& meeting) {
  const bool on_one_machine = MeetOnOneMachine(launch, meeting.address);
  if (!on_one_machine && !meeting.secret) {
    throw Error(fmt::format(
        "environment: found no REHEARSE_SECRET for {} ranks on several machines, expected one "
        "random text of {} to {} characters for all of them (before {}: export "
        "REHEARSE_SECRET=$(openssl rand -hex 16)), or REHEARSE_SECRET_FILE, a file of mode 600 "
        "that all of them can read{}",
        launch.ranks, kShortestSecret, kLongestSecret, launch.launcher,
        launch.knows_local_ranks ? "" : "; if all are on this one, set MASTER_ADDR=127.0.0.1"));
  }
  return launch.rank == 0 ? Gathering(launch, meeting, on_one_machine).Run()
                          : Arrival(launch, meeting, on_one_machine).Run();
}

}  // namespace rehearse
