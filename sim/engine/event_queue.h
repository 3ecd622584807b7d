// The event queue: when each task has its next event.
//
// A task has at most one pending event. Events come out ordered by (time, sequence), where sequence
// counts the Schedule calls; all events of the earliest time come out together as one batch.
//
// Events of one time hang on a list (a bucket), and a binary heap orders the buckets, so that a
// thousand tasks with an event at the same instant cost one heap operation. A small cache finds the
// newest bucket of a time; when it misses, a second bucket of the same time is opened, which the
// heap puts after the first. Cost: O(1) for an event that joins a bucket or is cancelled, O(log
// buckets) for a new bucket. Allocates nothing once it has held as many events. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/clock.h"

namespace rehearse {

class EventQueue {
 public:
  // For tasks 0 .. task_count-1.
  explicit EventQueue(size_t task_count);

  // Gives the task an event at `time`, in place of the one it may have. CHECKs that `time` is not
  // before the last batch.
  void Schedule(uint32_t task, Time time);
  // Removes the task's event; it must have one.
  void Cancel(uint32_t task);

  bool Has(uint32_t task) const { return events_[task].bucket != kNone; }
  // Of the task's event; it must have one.
  Time TimeOf(uint32_t task) const { return Time(buckets_[events_[task].bucket].time); }

  bool IsEmpty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // The earliest time; the queue must not be empty.
  Time NextTime();
  // Moves the tasks of the earliest time to `batch` (replacing its content) and returns that time.
  // The queue must not be empty.
  Time PopBatch(std::vector<uint32_t>* batch);
  // The same, but keeps what is in `batch` and appends to it.
  Time AppendBatch(std::vector<uint32_t>* batch);

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr int kCacheBits = 6;

  // Where a task's event hangs.
  struct Event {
    uint32_t bucket = kNone;
    uint32_t previous = kNone;
    uint32_t next = kNone;
  };
  struct Bucket {
    int64_t time = 0;
    uint32_t first = kNone;
    uint32_t last = kNone;
  };
  struct HeapEntry {
    int64_t time;
    uint32_t sequence;  // of the bucket; wraps, and is compared only among live ones
    uint32_t bucket;
  };
  struct Later {
    bool operator()(const HeapEntry& a, const HeapEntry& b) const {
      if (a.time != b.time) return a.time > b.time;
      return static_cast<int32_t>(a.sequence - b.sequence) > 0;
    }
  };

  uint32_t& CacheSlot(int64_t time);
  uint32_t OpenBucket(int64_t time);
  void PopTopBucket();
  void DropEmptyBuckets();

  std::vector<Event> events_;  // per task
  std::vector<Bucket> buckets_;
  std::vector<uint32_t> free_;   // positions in buckets_
  std::vector<HeapEntry> heap_;  // every bucket that is not free
  // By hash of the time: a bucket, or kNone.
  std::array<uint32_t, size_t{1} << kCacheBits> newest_{};
  size_t size_ = 0;
  size_t empty_ = 0;  // buckets in the heap whose events were all cancelled
  uint32_t sequence_ = 0;
  int64_t now_ = 0;
};

}  // namespace rehearse
