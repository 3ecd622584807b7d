// A calendar queue of small events, ordered by time and then by the order in which they were added.
//
// A ring of slots of 8 ns covers the next 33 us; each slot is a list of nodes from a pool, and is
// sorted when its turn comes. What lies further ahead waits in a heap. Adding costs a few
// nanoseconds, taking the sort of a slot shared among its events. Allocates nothing once it has
// held as many events. Times must not be before the last that was taken.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rehearse {

struct PacketEvent {
  int64_t time = 0;  // picoseconds
  uint32_t order = 0;
  uint32_t kind = 0;
  uint32_t a = 0;
  uint32_t b = 0;
};

class EventWheel {
 public:
  EventWheel() { slots_.fill(kNone); }

  bool IsEmpty() const { return size_ == 0; }

  void Add(int64_t time, uint32_t kind, uint32_t a, uint32_t b = 0) {
    const PacketEvent event{time, order_++, kind, a, b};
    ++size_;
    const int64_t slot = time >> kSlotBits;
    if (slot <= slot_) {
      due_.insert(std::upper_bound(due_.begin(), due_.end(), event, IsLater), event);
    } else if (slot < slot_ + kSlots) {
      Hang(event, slot);
    } else {
      far_.push_back(event);
      std::push_heap(far_.begin(), far_.end(), IsLater);
    }
  }

  // Whether there is an event by then; NextTime() and Take() need one.
  bool HasBy(int64_t until) {
    if (due_.empty()) {
      if (size_ == 0) return false;
      const int64_t next = NextSlot();
      if (next << kSlotBits > until) return false;
      TurnTo(next);
    }
    return due_.back().time <= until;
  }
  int64_t NextTime() const { return due_.back().time; }
  PacketEvent Take() {
    const PacketEvent event = due_.back();
    due_.pop_back();
    --size_;
    return event;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr int kSlotBits = 13;
  static constexpr int64_t kSlots = 4096;
  static constexpr int64_t kMask = kSlots - 1;
  static constexpr int kWord = 64;

  struct Node {
    PacketEvent event;
    uint32_t next = kNone;
  };

  static bool IsLater(const PacketEvent& a, const PacketEvent& b) {
    if (a.time != b.time) return a.time > b.time;
    return static_cast<int32_t>(a.order - b.order) > 0;
  }

  void Hang(const PacketEvent& event, int64_t slot) {
    uint32_t node = free_;
    if (node == kNone) {
      node = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].next;
    }
    uint32_t& head = slots_[static_cast<size_t>(slot & kMask)];
    nodes_[node] = {event, head};
    head = node;
    occupied_[static_cast<size_t>((slot & kMask) / kWord)] |= uint64_t{1} << (slot % kWord);
    ++hung_;
  }

  // The next one that has events.
  int64_t NextSlot() const {
    if (hung_ > 0) return NextOccupied();
    return far_.front().time >> kSlotBits;
  }

  // Sorts its events. What lies far ahead comes nearer.
  void TurnTo(int64_t slot) {
    slot_ = slot;
    while (!far_.empty() && (far_.front().time >> kSlotBits) < slot_ + kSlots) {
      std::pop_heap(far_.begin(), far_.end(), IsLater);
      Hang(far_.back(), far_.back().time >> kSlotBits);
      far_.pop_back();
    }
    uint32_t& head = slots_[static_cast<size_t>(slot_ & kMask)];
    for (uint32_t node = head; node != kNone;) {
      due_.push_back(nodes_[node].event);
      const uint32_t after = nodes_[node].next;
      nodes_[node].next = free_;
      free_ = node;
      node = after;
      --hung_;
    }
    head = kNone;
    occupied_[static_cast<size_t>((slot_ & kMask) / kWord)] &= ~(uint64_t{1} << (slot_ % kWord));
    std::sort(due_.begin(), due_.end(), IsLater);
  }

  int64_t NextOccupied() const {
    for (int64_t slot = slot_ + 1;;) {
      const auto place = static_cast<size_t>((slot & kMask) / kWord);
      const uint64_t word = occupied_[place] >> (slot % kWord);
      if (word != 0) return slot + __builtin_ctzll(word);
      slot += kWord - slot % kWord;
    }
  }

  std::vector<PacketEvent> due_;  // of this slot, the next last
  std::vector<Node> nodes_;
  std::vector<PacketEvent> far_;  // a heap
  std::array<uint32_t, kSlots> slots_{};
  std::array<uint64_t, kSlots / kWord> occupied_{};
  int64_t slot_ = 0;
  size_t hung_ = 0;
  size_t size_ = 0;
  uint32_t free_ = kNone;
  uint32_t order_ = 0;
};

}  // namespace rehearse
