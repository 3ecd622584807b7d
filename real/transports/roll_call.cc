#include "real/transports/roll_call.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "real/transports/host_clock.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr size_t kTextSize = 240;
constexpr int64_t kLookEvery = 50'000'000;  // nanoseconds
constexpr int kPollMilliseconds = 5;
constexpr mode_t kOwnerOnly = 0600;
constexpr int32_t kSigningOn = -1;
constexpr std::chrono::milliseconds kBetweenLooks{500};
constexpr uint32_t kSilentLooks = 10;   // five seconds
constexpr uint32_t kStalledLooks = 40;  // 20 s
constexpr uint32_t kNobody = 0;
constexpr uint32_t kSeveral = UINT32_MAX;

// A text that one process writes while others may read it, even if it is half old and half new.
struct SharedText {
  std::array<std::atomic<char>, kTextSize> letters;  // ends with 0

  void Set(const char* text) noexcept {
    size_t i = 0;
    for (; i + 1 < letters.size() && text[i] != '\0'; ++i)
      letters[i].store(text[i], std::memory_order_relaxed);
    letters[i].store('\0', std::memory_order_relaxed);
  }
  std::string Get() const {
    std::string text;
    for (const std::atomic<char>& letter : letters) {
      const char value = letter.load(std::memory_order_relaxed);
      if (value == '\0') break;
      text += value;
    }
    return text;
  }
};

bool IsAlive(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  // A process that has ended counts as ended even if its parent has not collected it yet.
  const std::string path = fmt::format("/proc/{}/stat", process);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno != ENOENT;
  char text[512];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return false;
  text[size] = '\0';
  const char* state = std::strrchr(text, ')');  // "pid (name) S ..."
  return state == nullptr || (state[2] != 'Z' && state[2] != 'X');
}

}  // namespace

// All zeros is a valid initial state, because new memory is like that.
struct RollCall::Slot {
  std::atomic<int32_t> process;  // 0: has not signed on
  std::atomic<uint32_t> has_signed_off;
  std::atomic<uint32_t> signs;      // signs of life
  std::atomic<uint32_t> is_silent;  // has given no sign for too long
  std::atomic<uint32_t> waits;      // of its threads, that have lasted for a while
  std::atomic<uint32_t> waits_for;  // the latest: a rank + 1, kNobody or kSeveral
  std::atomic<uint32_t> events;     // ops begun, waits ended
  uint32_t rank;
  SharedText activity;
};

struct RollCall::Shared {
  std::atomic<uint32_t> present;
  std::atomic<uint32_t> over;  // 1: a reason is being written, 2: it is there
  char reason[kTextSize * 4];
  Slot slots[1];  // one per rank

  static size_t Size(uint32_t ranks) { return sizeof(Shared) + (ranks - 1) * sizeof(Slot); }
};

RollCall::RollCall(const std::string& job, uint32_t local_rank, uint32_t local_ranks, uint32_t rank,
                   double patience, const std::function<bool()>& is_stopped)
    : name_("/rehearse-" + std::to_string(getuid()) + "-" + job),
      local_rank_(local_rank),
      local_ranks_(local_ranks) {
  CHECK_LT(local_rank, local_ranks);
  const int64_t deadline = NowNanoseconds() + static_cast<int64_t>(patience * 1e9);
  std::string whose;
  while (!TrySignOn(rank, &whose)) {
    if (NowNanoseconds() > deadline) {
      throw Error(
          fmt::format("shared memory {} belongs to another run of this name: {}", name_, whose));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
  }
  try {
    AwaitOthers(deadline, patience, is_stopped);
    watch_ = std::thread([this] { Watch(); });
  } catch (const std::system_error& error) {
    Leave();
    throw Error(fmt::format("cannot start a thread: {}", error.what()));
  } catch (const Error&) {
    Leave();
    throw;
  }
}

// The lock tells whether anybody uses the memory: a process that gets it exclusively finds nothing,
// or what a killed run left, and clears that. Shared, it is held as long as the process lives. A
// rank signs on only under the shared lock, so that nobody clears what it writes.
bool RollCall::TrySignOn(uint32_t rank, std::string* whose) {
  const auto size = static_cast<off_t>(Shared::Size(local_ranks_));
  const auto fail = [&](const char* what) {
    const int reason = errno;
    if (file_ >= 0) close(file_);
    throw Error(fmt::format("cannot {} shared memory {}: {}", what, name_, std::strerror(reason)));
  };
  const auto give_back = [&](std::string why) {
    close(file_);
    *whose = std::move(why);
    return false;
  };
  file_ = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnerOnly);
  if (file_ < 0) fail("make");
  if (flock(file_, LOCK_EX | LOCK_NB) == 0) {
    errno = ftruncate(file_, 0) != 0 ? errno : posix_fallocate(file_, 0, size);
    if (errno != 0) {  // no room: whoever wrote there would be ended by SIGBUS
      const int reason = errno;
      shm_unlink(name_.c_str());
      errno = reason;
      fail("make");
    }
  }
  if (flock(file_, LOCK_SH | LOCK_NB) != 0) return give_back("it is being made");
  struct stat about {};
  if (fstat(file_, &about) != 0) fail("look at");
  if (about.st_nlink == 0) return give_back("it has been removed");
  if (about.st_size != size) return give_back("it is for another number of ranks");
  void* memory =
      mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) fail("map");
  auto* shared = static_cast<Shared*>(memory);
  Slot& own = shared->slots[local_rank_];
  int32_t nobody = 0;
  if (!own.process.compare_exchange_strong(nobody, kSigningOn)) {
    munmap(memory, static_cast<size_t>(size));
    return give_back(fmt::format("process {} is its local rank {}", nobody, local_rank_));
  }
  shared_ = shared;
  own.rank = rank;
  own.activity.Set("its start");
  own.process.store(getpid());
  // The last rank to come removes the name, so that nothing is left behind, whatever happens.
  if (shared_->present.fetch_add(1) + 1 == local_ranks_) shm_unlink(name_.c_str());
  return true;
}

void RollCall::AwaitOthers(int64_t deadline, double patience,
                           const std::function<bool()>& is_stopped) {
  while (shared_->present.load() < local_ranks_) {
    std::optional<std::string> trouble = Trouble();
    const bool stops = is_stopped && is_stopped();
    if (!trouble && (stops || NowNanoseconds() > deadline)) {
      std::vector<uint32_t> absent;
      for (uint32_t i = 0; i < local_ranks_; ++i) {
        if (shared_->slots[i].process.load() <= 0) absent.push_back(i);
      }
      trouble = fmt::format("local rank {} of {} has not started {}", fmt::join(absent, ", "),
                            local_ranks_,
                            stops ? "when the others were told to stop (SIGTERM)"
                                  : fmt::format("within {:g} s", patience));
    }
    if (trouble) {
      GiveUp(*trouble);
      struct stat about {};
      if (fstat(file_, &about) == 0 && about.st_nlink > 0) shm_unlink(name_.c_str());
      throw Error(*trouble);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
  }
}

void RollCall::Leave() noexcept {
  shared_->slots[local_rank_].has_signed_off.store(1);
  munmap(shared_, Shared::Size(local_ranks_));
  close(file_);
}

RollCall::~RollCall() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  watch_.join();
  Leave();
}

// It counts its own checks: if this process itself was stopped, the others were not silent in the
// meantime.
void RollCall::Watch() {
  std::vector<uint32_t> seen(local_ranks_);
  std::vector<uint32_t> silent(local_ranks_);
  std::optional<uint64_t> events;
  uint32_t stalled = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenLooks, [this] { return ends_; })) {
    shared_->slots[local_rank_].signs.fetch_add(1);
    for (uint32_t i = 0; i < local_ranks_; ++i) {
      Slot& slot = shared_->slots[i];
      if (i == local_rank_ || slot.has_signed_off.load() != 0) continue;
      const uint32_t signs = slot.signs.load();
      silent[i] = signs == seen[i] ? silent[i] + 1 : 0;
      seen[i] = signs;
      if (silent[i] != kSilentLooks || !IsAlive(slot.process.load())) continue;
      slot.is_silent.store(1);
      GiveUp(
          fmt::format("rank {} (process {}) has given no sign of life for {} s: it is stopped; "
                      "it was at {}",
                      slot.rank, slot.process.load(),
                      kSilentLooks * kBetweenLooks / std::chrono::seconds(1), slot.activity.Get()));
    }
    const std::optional<uint64_t> now = EventsIfAllWait();
    stalled = now && now == events ? stalled + 1 : 0;
    events = now;
    if (stalled == kStalledLooks) GiveUp(DescribeWaits());
  }
}

std::optional<uint64_t> RollCall::EventsIfAllWait() const {
  uint64_t events = 0;
  for (uint32_t i = 0; i < local_ranks_; ++i) {
    const Slot& slot = shared_->slots[i];
    if (slot.has_signed_off.load() != 0) continue;  // nothing more comes from it
    if (slot.waits.load() == 0) return std::nullopt;
    events += slot.events.load();
  }
  return events;
}

// Two ranks that wait for each other say most about what is broken, so they are named first.
std::string RollCall::DescribeWaits() const {
  const auto waits_for = [this](uint32_t local_rank) {
    return shared_->slots[local_rank].waits_for.load();
  };
  const auto is_mutual = [&](uint32_t i) {
    for (uint32_t other = 0; other < local_ranks_; ++other) {
      if (waits_for(i) == shared_->slots[other].rank + 1)
        return waits_for(other) == shared_->slots[i].rank + 1;
    }
    return false;
  };
  std::vector<uint32_t> order(local_ranks_);
  std::iota(order.begin(), order.end(), 0u);
  std::erase_if(order, [this](uint32_t i) { return shared_->slots[i].has_signed_off.load() != 0; });
  std::stable_partition(order.begin(), order.end(), is_mutual);
  constexpr size_t kMostDescribed = 4;
  std::string who;
  for (size_t i = 0; i < std::min(order.size(), kMostDescribed); ++i) {
    const Slot& slot = shared_->slots[order[i]];
    const uint32_t awaited = waits_for(order[i]);
    const bool is_one = awaited != kNobody && awaited != kSeveral;
    who += fmt::format("{}rank {}{} at {}", i == 0 ? "" : "; ", slot.rank,
                       is_one ? fmt::format(" for rank {}", awaited - 1) : "", slot.activity.Get());
  }
  if (order.size() > kMostDescribed)
    who += fmt::format("; and {} more", order.size() - kMostDescribed);
  return fmt::format("every rank waits for a message, and none has come for {} s: {}",
                     kStalledLooks * kBetweenLooks / std::chrono::seconds(1), who);
}

void RollCall::set_activity(const char* text) noexcept {
  const std::lock_guard lock(activity_);  // streams have their own threads
  Slot& own = shared_->slots[local_rank_];
  own.activity.Set(text);
  own.events.fetch_add(1, std::memory_order_relaxed);
}

void RollCall::BeginWait(std::optional<uint32_t> rank) noexcept {
  Slot& own = shared_->slots[local_rank_];
  own.waits_for.store(rank ? *rank + 1 : kSeveral);
  own.waits.fetch_add(1);
}

void RollCall::EndWait() noexcept {
  Slot& own = shared_->slots[local_rank_];
  own.events.fetch_add(1);
  own.waits.fetch_sub(1);
}

void RollCall::GiveUp(const std::string& reason) noexcept {
  uint32_t none = 0;
  if (!shared_->over.compare_exchange_strong(none, 1)) return;
  std::strncpy(shared_->reason, reason.c_str(), sizeof shared_->reason - 1);
  shared_->over.store(2);
}

void RollCall::LeaveTogether(double patience) noexcept {
  shared_->slots[local_rank_].has_signed_off.store(1);
  const int64_t deadline = NowNanoseconds() + static_cast<int64_t>(patience * 1e9);
  const auto has_left = [](const Slot& slot) {
    return slot.has_signed_off.load() != 0 || slot.is_silent.load() != 0 ||
           !IsAlive(slot.process.load());
  };
  while (NowNanoseconds() < deadline &&
         !std::all_of(shared_->slots, shared_->slots + local_ranks_, has_left)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
  }
}

std::optional<std::string> RollCall::Trouble() {
  if (shared_->over.load() == 2) return std::string(shared_->reason);
  const int64_t now = NowNanoseconds();
  if (now < next_look_) return std::nullopt;
  next_look_ = now + kLookEvery;
  for (uint32_t i = 0; i < local_ranks_; ++i) {
    const Slot& slot = shared_->slots[i];
    const pid_t process = slot.process.load();
    if (process <= 0 || slot.has_signed_off.load() != 0 || IsAlive(process)) continue;
    GiveUp(fmt::format("rank {} (process {}) is gone; it was at {}", slot.rank, process,
                       slot.activity.Get()));
    // If another rank has just begun to write its own reason, that one counts.
    if (shared_->over.load() == 2) return std::string(shared_->reason);
  }
  return std::nullopt;
}

}  // namespace rehearse
