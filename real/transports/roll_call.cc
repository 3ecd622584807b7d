#include "real/transports/roll_call.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
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

void CopyText(char* to, const char* from) noexcept {
  std::strncpy(to, from, kTextSize - 1);
  to[kTextSize - 1] = '\0';
}

bool IsAlive(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  // A process that has ended but that its parent has not collected yet counts as ended.
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

// All zero is a valid beginning: the memory comes like that.
struct RollCall::Slot {
  std::atomic<int32_t> process;  // 0: has not signed on
  std::atomic<uint32_t> has_signed_off;
  uint32_t rank;
  char activity[kTextSize];
};

struct RollCall::Shared {
  std::atomic<uint32_t> present;
  std::atomic<uint32_t> over;  // 1: a reason is being written, 2: it is there
  char reason[kTextSize * 4];
  Slot slots[1];  // as many as ranks

  static size_t Size(uint32_t ranks) { return sizeof(Shared) + (ranks - 1) * sizeof(Slot); }
};

RollCall::RollCall(const std::string& job, uint32_t local_rank, uint32_t local_ranks, uint32_t rank,
                   double patience)
    : name_("/rehearse-" + std::to_string(getuid()) + "-" + job),
      local_rank_(local_rank),
      local_ranks_(local_ranks) {
  CHECK_LT(local_rank, local_ranks);
  const size_t size = Shared::Size(local_ranks);
  const int file = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnerOnly);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) {
    const int reason = errno;
    if (file >= 0) close(file);
    throw Error(fmt::format("cannot make shared memory {}: {}", name_, std::strerror(reason)));
  }
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    throw Error(fmt::format("cannot map shared memory {}: {}", name_, std::strerror(errno)));
  }
  shared_ = static_cast<Shared*>(memory);
  Slot& own = shared_->slots[local_rank];
  own.rank = rank;
  CopyText(own.activity, "starting");
  own.process.store(getpid());
  shared_->present.fetch_add(1);

  const int64_t deadline = NowNanoseconds() + static_cast<int64_t>(patience * 1e9);
  while (shared_->present.load() < local_ranks) {
    std::optional<std::string> trouble = Trouble();
    if (!trouble && NowNanoseconds() > deadline) {
      std::vector<uint32_t> absent;
      for (uint32_t i = 0; i < local_ranks; ++i) {
        if (shared_->slots[i].process.load() == 0) absent.push_back(i);
      }
      trouble = fmt::format("local rank {} of {} has not started within {:g} s",
                            fmt::join(absent, ", "), local_ranks, patience);
    }
    if (trouble) {
      GiveUp(*trouble);
      shm_unlink(name_.c_str());
      munmap(shared_, size);
      throw Error(*trouble);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
  }
  shm_unlink(name_.c_str());  // everybody has it: nothing is left behind, whatever happens
}

RollCall::~RollCall() {
  shared_->slots[local_rank_].has_signed_off.store(1);
  munmap(shared_, Shared::Size(local_ranks_));
}

void RollCall::set_activity(const char* text) noexcept {
  CopyText(shared_->slots[local_rank_].activity, text);
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
    return slot.has_signed_off.load() != 0 || !IsAlive(slot.process.load());
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
    if (process == 0 || slot.has_signed_off.load() != 0 || IsAlive(process)) continue;
    GiveUp(fmt::format("rank {} (process {}) is gone; it was at {}", slot.rank, process,
                       slot.activity));
    return std::string(shared_->reason);
  }
  return std::nullopt;
}

}  // namespace rehearse
