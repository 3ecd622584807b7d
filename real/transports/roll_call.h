// Who is there: ranks that are separate processes of one machine watch each other through a small
// piece of shared memory, so that a lost rank is noticed and named at once, whatever MPI and its
// launcher do.
//
// Each rank has a slot with its process and what it is doing; any of them may write a reason why
// the run is over. A process that ended without signing off, or that never signed on, is lost; so
// is one that gives no sign of life for five seconds (stopped, frozen), which a separate thread
// does, whatever the rank computes. If all ranks wait for messages and none comes for 20 s,
// something between them is broken, and the run is over too. The memory's name is removed when all
// have come; what a killed run has left is recognised, because nobody holds a lock on it, and
// cleared.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace rehearse {

class RollCall {
 public:
  // `job` is a name that all ranks of the run on this machine have, and no other run (letters,
  // digits, - and .). Local ranks count from 0. Waits until all have signed on, at most `patience`
  // seconds and not longer than until `is_stopped`; throws Error that names those that have not.
  RollCall(const std::string& job, uint32_t local_rank, uint32_t local_ranks, uint32_t rank,
           double patience, const std::function<bool()>& is_stopped = nullptr);
  ~RollCall();  // signs off
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  void set_activity(const char* text) noexcept;
  // Called around a wait for a message of `rank`, or of several. This is only for runs whose ranks
  // are all on this machine.
  void BeginWait(std::optional<uint32_t> rank) noexcept;
  void EndWait() noexcept;
  // The first reason counts.
  void GiveUp(const std::string& reason) noexcept;
  // Why the run is over: another rank's reason, or "rank 3 (process 4711) ended in ..."; nothing as
  // long as all is well. Cheap: checks processes at most every 50 ms.
  std::optional<std::string> Trouble();
  // Signs off and waits until the others have signed off or ended, at most `patience` seconds:
  // launchers kill all ranks when the first one fails, before the others have said what they know.
  void LeaveTogether(double patience) noexcept;

 private:
  struct Shared;
  struct Slot;
  // Returns false while that name's memory belongs to another run, which `whose` describes.
  bool TrySignOn(uint32_t rank, std::string* whose);
  void AwaitOthers(int64_t deadline, double patience, const std::function<bool()>& is_stopped);
  void Leave() noexcept;
  void Watch();
  // Counts all that has happened; nothing if a rank does not wait.
  std::optional<uint64_t> EventsIfAllWait() const;
  std::string DescribeWaits() const;

  std::string name_;
  int file_ = -1;  // its lock is held as long as the process has it
  Shared* shared_ = nullptr;
  uint32_t local_rank_;
  uint32_t local_ranks_;
  int64_t next_look_ = 0;  // nanoseconds
  std::mutex activity_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread watch_;
};

}  // namespace rehearse
