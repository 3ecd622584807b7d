#include "real/transports/transport_mpi.h"

#include "sim/base/error.h"

#ifdef REHEARSE_HAS_MPI

#include <algorithm>
#include <atomic>
#include <csignal>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include "real/transports/lost_rank_watch.h"
#include "real/transports/roll_call.h"

namespace rehearse {
namespace {

constexpr double kPatience = 8;         // seconds for all ranks to start
constexpr double kPartingPatience = 3;  // seconds for all ranks to say why they end

std::atomic<bool> told_to_stop{false};
void OnTerminate(int) { told_to_stop.store(true); }

// This comes before the roll call, so that a rank that is told to stop removes what it has made.
Launch ListenToSigterm(const Launch& launch) {
  struct sigaction action {};
  action.sa_handler = OnTerminate;
  sigaction(SIGTERM, &action, nullptr);
  return launch;
}

struct MpiMessage : Transport::Message {
  MPI_Request request = MPI_REQUEST_NULL;
  uint32_t peer = 0;
};

int Length(size_t bytes) {
  if (bytes > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw Error(fmt::format("a message of {} bytes is longer than MPI's 2 GiB", bytes));
  }
  return static_cast<int>(bytes);
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const Launch& launch)
      : launch_(ListenToSigterm(launch)),
        roll_call_(launch.job, launch.local_rank, launch.local_ranks, launch.rank, kPatience,
                   [] { return told_to_stop.load(); }) {
    int provided = MPI_THREAD_SINGLE;
    {
      const Inside call(*this);
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    }
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (static_cast<uint32_t>(rank) != launch.rank || static_cast<uint32_t>(size) != launch.ranks) {
      throw Error(
          fmt::format("{} says that this is rank {} of {}, but MPI says rank {} of {}: start with "
                      "mpirun, or with srun --mpi=pmix",
                      launch.launcher, launch.rank, launch.ranks, rank, size));
    }
    if (provided < MPI_THREAD_MULTIPLE)
      throw Error("this MPI does not allow calls from several threads");
    // With a core for each rank, it is quicker to poll than to let others run.
    const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
    spins_ = launch.local_ranks <= cores ? 2000 : 0;
  }

  ~MpiTransport() override {
    if (gave_up_.load()) {
      roll_call_.LeaveTogether(kPartingPatience);
    } else {
      const Inside call(*this);
      MPI_Finalize();
    }
  }

  const char* name() const override { return "mpi"; }
  uint32_t rank() const override { return launch_.rank; }
  uint32_t size() const override { return launch_.ranks; }
  uint32_t ranks_on_host() const override { return launch_.local_ranks; }
  bool has_common_clock() const override { return launch_.local_ranks == launch_.ranks; }

  Handle Send(uint32_t to, uint32_t tag, const void* data, size_t bytes) override {
    auto message = std::make_unique<MpiMessage>();
    message->peer = to;
    const Inside call(*this, to);
    MPI_Isend(data, Length(bytes), MPI_BYTE, static_cast<int>(to), static_cast<int>(tag),
              MPI_COMM_WORLD, &message->request);
    return message;
  }

  Handle Receive(uint32_t from, uint32_t tag, void* data, size_t bytes) override {
    auto message = std::make_unique<MpiMessage>();
    message->peer = from;
    const Inside call(*this, from);
    MPI_Irecv(data, Length(bytes), MPI_BYTE, static_cast<int>(from), static_cast<int>(tag),
              MPI_COMM_WORLD, &message->request);
    return message;
  }

  void Wait(Handle handle) override {
    auto& message = dynamic_cast<MpiMessage&>(*handle);
    WaitFor(&message.request, message.peer);
  }

  void Barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    {
      const Inside call(*this);
      MPI_Ibarrier(MPI_COMM_WORLD, &request);
    }
    WaitFor(&request);
  }

  void Check() override { LookAround(); }

  void Abort(const std::string& reason) noexcept override {
    if (gave_up_.exchange(true)) return;
    roll_call_.GiveUp(reason);
  }

  void set_activity(const char* text) noexcept override { roll_call_.set_activity(text); }

  // Lives around calls of MPI, any of which may wait for `peer` or for several: one that sends may
  // first have to connect, and even one that only looks may wait for another rank's answer.
  class Inside {
   public:
    explicit Inside(MpiTransport& transport, std::optional<uint32_t> peer = std::nullopt)
        : calls_(transport.calls_) {
      transport.latest_peer_.store(peer ? static_cast<int64_t>(*peer) : kSeveral,
                                   std::memory_order_relaxed);
      calls_.fetch_add(kOneBegun + 1, std::memory_order_relaxed);
    }
    ~Inside() { calls_.fetch_sub(1, std::memory_order_relaxed); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    std::atomic<uint64_t>& calls_;
  };

  // Progresses the request, which `peer` has to meet, or several ranks; throws RankLost if it can
  // no longer end.
  void WaitFor(MPI_Request* request, std::optional<uint32_t> peer = std::nullopt) {
    constexpr uint32_t kLookEvery = 256;
    const Inside call(*this, peer);
    std::optional<LongWait> wait;
    int done = 0;
    for (uint32_t i = 1;; ++i) {
      MPI_Test(request, &done, MPI_STATUS_IGNORE);
      if (done != 0) return;
      if (i > spins_) sched_yield();
      if (i % kLookEvery != 0) continue;
      if (!wait) wait.emplace(*this, peer);
      LookAround();
    }
  }

 private:
  // While it lives, the roll call knows that this rank waits. It knows nothing of other machines.
  class LongWait {
   public:
    LongWait(MpiTransport& transport, std::optional<uint32_t> peer)
        : roll_call_(transport.has_common_clock() ? &transport.roll_call_ : nullptr) {
      if (roll_call_ != nullptr) roll_call_->BeginWait(peer);
    }
    ~LongWait() {
      if (roll_call_ != nullptr) roll_call_->EndWait();
    }
    LongWait(const LongWait&) = delete;
    LongWait& operator=(const LongWait&) = delete;

   private:
    RollCall* const roll_call_;
  };

  // The watch asks this. If no call has begun or ended since it last asked, they wait, which the
  // roll call has to know as well.
  bool IsInside() {
    const uint64_t calls = calls_.load();
    const bool is_inside = calls % kOneBegun > 0;
    if (!is_inside || calls != calls_seen_) {
      stuck_.reset();
    } else if (!stuck_) {
      const int64_t peer = latest_peer_.load();
      stuck_.emplace(*this,
                     peer == kSeveral ? std::nullopt : std::optional(static_cast<uint32_t>(peer)));
    }
    calls_seen_ = calls;
    return is_inside;
  }

  void LookAround() {
    const std::lock_guard<std::mutex> lock(roll_call_mutex_);
    std::optional<std::string> trouble = roll_call_.Trouble();
    if (!trouble && told_to_stop.load())
      trouble = "told to stop (SIGTERM), by the launcher or a person";
    if (!trouble) return;
    gave_up_.store(true);
    throw RankLost(*trouble);
  }

  const Launch launch_;
  RollCall roll_call_;
  std::mutex roll_call_mutex_;
  std::atomic<bool> gave_up_{false};  // if so, MPI cannot be ended in an orderly way
  uint32_t spins_ = 0;
  static constexpr uint64_t kOneBegun = uint64_t{1} << 32;
  static constexpr int64_t kSeveral = -1;
  std::atomic<uint64_t> calls_{0};  // begun so far, times kOneBegun, and those under way
  std::atomic<int64_t> latest_peer_{kSeveral};
  uint64_t calls_seen_ = 0;  // these two are the watch's
  std::optional<LongWait> stuck_;
  LostRankWatch watch_{*this, "MPI", [this] { return IsInside(); }};
};

// ---- MPI's own collectives ----------------------------------------------------------------------

class MpiCollectives : public Collectives {
 public:
  MpiCollectives(MpiTransport& transport, const Schedule& schedule) : transport_(transport) {
    const MpiTransport::Inside call(transport);
    for (const Communicator& communicator : schedule.communicators) {
      const auto position = communicator.PositionOf(transport.rank());
      MPI_Comm split = MPI_COMM_NULL;
      MPI_Comm_split(MPI_COMM_WORLD, position ? static_cast<int>(position->group) : MPI_UNDEFINED,
                     position ? static_cast<int>(position->member) : 0, &split);
      splits_.push_back(split);
    }
  }

  const char* name() const override { return "mpi"; }
  void Run(const CollectiveCall<float>& call) override { RunTyped(call, MPI_FLOAT); }
  void Run(const CollectiveCall<double>& call) override { RunTyped(call, MPI_DOUBLE); }

 private:
  template <typename T>
  void RunTyped(const CollectiveCall<T>& call, MPI_Datatype type) {
    const Collective& collective = *call.collective;
    MPI_Comm group = splits_[collective.communicator.index()];
    MPI_Op operation = collective.reduction == Reduction::kMaximum ? MPI_MAX : MPI_SUM;
    const auto root = static_cast<int>(collective.root);
    const bool is_root = call.group->member == collective.root;
    const int from = Length(call.from_elements);
    const int to = Length(call.to_elements);
    const auto ranks = static_cast<int>(call.group->size());
    const bool in_place = call.from == call.to;
    const void* source = in_place ? MPI_IN_PLACE : static_cast<const void*>(call.from);
    std::vector<T> apart;
    MPI_Request request = MPI_REQUEST_NULL;
    const MpiTransport::Inside inside(transport_);
    switch (collective.kind) {
      case CollectiveKind::kAllReduce:
        MPI_Iallreduce(source, call.to, to, type, operation, group, &request);
        break;
      case CollectiveKind::kAllGather: {
        const bool lies_there = call.from == call.to + call.group->member * call.from_elements;
        MPI_Iallgather(lies_there ? MPI_IN_PLACE : static_cast<const void*>(call.from), from, type,
                       call.to, from, type, group, &request);
        break;
      }
      case CollectiveKind::kReduceScatter:
        // The result may be inside the operand, which MPI does not allow.
        if (call.to >= call.from && call.to < call.from + call.from_elements)
          apart.assign(call.from, call.from + call.from_elements);
        MPI_Ireduce_scatter_block(apart.empty() ? call.from : apart.data(), call.to, to, type,
                                  operation, group, &request);
        break;
      case CollectiveKind::kAllToAll:
        if (!collective.pair_bytes.empty()) {
          throw Error(
              "an all-to-all with different sizes of pairs is only run as our own steps: "
              "--collectives own");
        }
        MPI_Ialltoall(call.from, from / ranks, type, call.to, to / ranks, type, group, &request);
        break;
      case CollectiveKind::kBroadcast:
        if (is_root && !in_place) std::copy(call.from, call.from + call.from_elements, call.to);
        MPI_Ibcast(call.to, to, type, root, group, &request);
        break;
      case CollectiveKind::kReduce:
        MPI_Ireduce(is_root ? source : call.from, is_root ? call.to : nullptr, from, type,
                    operation, root, group, &request);
        break;
      case CollectiveKind::kToHost:
      case CollectiveKind::kFromHost:
        std::copy(call.from, call.from + call.from_elements, call.to);
        return;
      case CollectiveKind::kSendReceive:
      case CollectiveKind::kBarrier:
        throw Error(fmt::format("a {} is only run as our own steps: --collectives own",
                                Name(collective.kind)));
    }
    transport_.WaitFor(&request);
  }

  MpiTransport& transport_;
  std::vector<MPI_Comm> splits_;  // by communicator; freed with MPI
};

}  // namespace

bool HasMpi() { return true; }

std::unique_ptr<Transport> JoinMpi(const Launch& launch) {
  return std::make_unique<MpiTransport>(launch);
}

std::unique_ptr<Collectives> MakeMpiCollectives(Transport& transport, const Schedule& schedule) {
  return std::make_unique<MpiCollectives>(dynamic_cast<MpiTransport&>(transport), schedule);
}

}  // namespace rehearse

#else

namespace rehearse {
namespace {

[[noreturn]] void Refuse() {
  throw Error(
      "this rehearse was built without MPI; install libopenmpi-dev and build again, or run ranks "
      "as "
      "threads of one process (without mpirun)");
}

}  // namespace

bool HasMpi() { return false; }
std::unique_ptr<Transport> JoinMpi(const Launch&) { Refuse(); }
std::unique_ptr<Collectives> MakeMpiCollectives(Transport&, const Schedule&) { Refuse(); }

}  // namespace rehearse

#endif
