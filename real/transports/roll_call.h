// Who is there: ranks of one machine that are processes of their own watch each other through a
// small piece of shared memory, so that a lost rank is noticed at once and named, whatever MPI and
// its launcher do.
//
// Each rank has a slot with its process and what it is doing; any of them may write a reason why
// the run is over. A process that has ended without signing off, or that never signed on, is lost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace rehearse {

class RollCall {
 public:
  // `job` names the run, the same for all its ranks on this machine and no other (letters,
  // digits, - and .). Local ranks count from 0. Waits until all have signed on, at most `patience`
  // seconds; throws Error that names those that have not.
  RollCall(const std::string& job, uint32_t local_rank, uint32_t local_ranks, uint32_t rank,
           double patience);
  ~RollCall();  // signs off
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  void set_activity(const char* text) noexcept;
  // The first reason counts.
  void GiveUp(const std::string& reason) noexcept;
  // Why the run is over: another rank's reason, or "rank 3 (process 4711) ended in ..."; nothing as
  // long as all is well. Cheap: looks at processes at most every 50 ms.
  std::optional<std::string> Trouble();
  // Signs off and waits until the others have too, or ended, at most `patience` seconds: launchers
  // kill all ranks when the first one fails, before the others have said what they know.
  void LeaveTogether(double patience) noexcept;

 private:
  struct Shared;
  struct Slot;
  std::string name_;
  Shared* shared_ = nullptr;
  uint32_t local_rank_;
  uint32_t local_ranks_;
  int64_t next_look_ = 0;  // nanoseconds
};

}  // namespace rehearse
