#include "sim/engine/event_queue.h"

#include <algorithm>

#include "sim/base/error.h"

namespace rehearse {

EventQueue::EventQueue(size_t task_count) : events_(task_count) { newest_.fill(kNone); }

void EventQueue::Schedule(uint32_t task, Time time) {
  CHECK_GE(time.picoseconds(), now_);
  Event& event = events_[task];
  if (event.bucket != kNone) Cancel(task);

  uint32_t& newest = CacheSlot(time.picoseconds());
  if (newest == kNone || buckets_[newest].time != time.picoseconds()) {
    newest = OpenBucket(time.picoseconds());
  } else if (buckets_[newest].first == kNone) {
    --empty_;
  }
  Bucket& bucket = buckets_[newest];
  event = {.bucket = newest, .previous = bucket.last, .next = kNone};
  (bucket.last == kNone ? bucket.first : events_[bucket.last].next) = task;
  bucket.last = task;
  ++size_;
}

void EventQueue::Cancel(uint32_t task) {
  Event& event = events_[task];
  CHECK_NE(event.bucket, kNone);
  Bucket& bucket = buckets_[event.bucket];
  (event.previous == kNone ? bucket.first : events_[event.previous].next) = event.next;
  (event.next == kNone ? bucket.last : events_[event.next].previous) = event.previous;
  event = Event();
  --size_;
  if (bucket.first == kNone) {
    ++empty_;
    if (empty_ > 64 && empty_ > heap_.size() / 2) DropEmptyBuckets();
  }
}

Time EventQueue::NextTime() {
  CHECK(!IsEmpty());
  while (buckets_[heap_.front().bucket].first == kNone) {
    --empty_;
    PopTopBucket();
  }
  return Time(heap_.front().time);
}

Time EventQueue::PopBatch(std::vector<uint32_t>* batch) {
  batch->clear();
  return AppendBatch(batch);
}

Time EventQueue::AppendBatch(std::vector<uint32_t>* batch) {
  now_ = NextTime().picoseconds();
  const size_t before = batch->size();
  while (!heap_.empty() && heap_.front().time == now_) {
    const Bucket& bucket = buckets_[heap_.front().bucket];
    if (bucket.first == kNone) --empty_;
    for (uint32_t task = bucket.first; task != kNone;) {
      batch->push_back(task);
      const uint32_t next = events_[task].next;
      events_[task] = Event();
      task = next;
    }
    PopTopBucket();
  }
  size_ -= batch->size() - before;
  return Time(now_);
}

uint32_t& EventQueue::CacheSlot(int64_t time) {
  constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;
  return newest_[static_cast<uint64_t>(time) * kGoldenRatio >> (64 - kCacheBits)];
}

uint32_t EventQueue::OpenBucket(int64_t time) {
  uint32_t bucket;
  if (free_.empty()) {
    bucket = static_cast<uint32_t>(buckets_.size());
    buckets_.emplace_back();
  } else {
    bucket = free_.back();
    free_.pop_back();
  }
  buckets_[bucket] = {.time = time, .first = kNone, .last = kNone};
  heap_.push_back({.time = time, .sequence = sequence_++, .bucket = bucket});
  std::push_heap(heap_.begin(), heap_.end(), Later());
  return bucket;
}

void EventQueue::PopTopBucket() {
  const uint32_t bucket = heap_.front().bucket;
  uint32_t& newest = CacheSlot(heap_.front().time);
  if (newest == bucket) newest = kNone;
  free_.push_back(bucket);
  std::pop_heap(heap_.begin(), heap_.end(), Later());
  heap_.pop_back();
}

// Without this, transfers that are re-rated again and again would fill the heap with empty buckets.
void EventQueue::DropEmptyBuckets() {
  newest_.fill(kNone);
  size_t kept = 0;
  for (const HeapEntry& entry : heap_) {
    if (buckets_[entry.bucket].first == kNone) {
      free_.push_back(entry.bucket);
    } else {
      heap_[kept++] = entry;
    }
  }
  heap_.resize(kept);
  std::make_heap(heap_.begin(), heap_.end(), Later());
  empty_ = 0;
}

}  // namespace rehearse
