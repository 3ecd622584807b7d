// A calendar queue of small events, ordered by time and then by the order in which they were added.
//
// A ring of slots covers the time to come; each slot is a list of nodes from a pool, and is sorted
// when its turn comes. What lies further ahead waits in a heap. Slots are of 8 ns and cover 134 us;
// where more than a few events share one, as in large networks, slots are made narrower, down to
// 64 ps. Adding costs a few nanoseconds, taking the sort of a slot shared among its events.
// Allocates nothing once it has held as many events. Times must not be before the last that was
// taken.
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
    const int64_t slot = time >> slot_bits_;
    if (slot <= slot_) {
      due_.insert(std::upper_bound(due_.begin(), due_.end(), event, IsLater()), event);
    } else if (slot < slot_ + kSlots) {
      Hang(event, slot);
    } else {
      far_.push_back(event);
      std::push_heap(far_.begin(), far_.end(), IsLater());
    }
  }

  // Whether there is an event by then; NextTime() and Take() need one.
  bool HasBy(int64_t until) {
    if (due_.empty()) {
      if (size_ == 0) return false;
      const int64_t next = NextSlot();
      if (next << slot_bits_ > until) return false;
      TurnTo(next);
      if (due_.size() > kCrowded && slot_bits_ > kLeastSlotBits) {
        crowded_ += due_.size();
        if (crowded_ > kCrowdsBorne) Narrow();
      }
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

  // visit(event) for all that are to come, in no order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const PacketEvent& event : due_) visit(event);
    for (const PacketEvent& event : far_) visit(event);
    for (size_t word = 0; word < occupied_.size(); ++word) {
      for (uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
        const size_t place = word * kWord + static_cast<size_t>(__builtin_ctzll(bits));
        for (uint32_t node = slots_[place]; node != kNone; node = nodes_[node].next)
          visit(nodes_[node].event);
      }
    }
  }

  // Takes out, in no order, all events of which wanted(event) is true.
  template <typename Wanted>
  void Extract(const Wanted& wanted, std::vector<PacketEvent>* taken) {
    const auto before = taken->size();
    const auto sift = [&](std::vector<PacketEvent>* events) {
      const auto kept = std::partition(events->begin(), events->end(),
                                       [&](const PacketEvent& event) { return !wanted(event); });
      taken->insert(taken->end(), kept, events->end());
      events->erase(kept, events->end());
    };
    sift(&due_);
    std::sort(due_.begin(), due_.end(), IsLater());
    sift(&far_);
    std::make_heap(far_.begin(), far_.end(), IsLater());
    for (size_t word = 0; word < occupied_.size(); ++word) {
      for (uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
        const size_t place = word * kWord + static_cast<size_t>(__builtin_ctzll(bits));
        uint32_t* link = &slots_[place];
        while (*link != kNone) {
          const uint32_t node = *link;
          if (!wanted(nodes_[node].event)) {
            link = &nodes_[node].next;
            continue;
          }
          taken->push_back(nodes_[node].event);
          *link = nodes_[node].next;
          nodes_[node].next = free_;
          free_ = node;
          --hung_;
        }
        if (slots_[place] == kNone) occupied_[word] &= ~(uint64_t{1} << (place % kWord));
      }
    }
    size_ -= taken->size() - before;
  }

  // By time, and then by the order in which they were added.
  static void Sort(std::vector<PacketEvent>* events) {
    std::sort(events->begin(), events->end(),
              [](const PacketEvent& a, const PacketEvent& b) { return IsLater()(b, a); });
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr int kMostSlotBits = 13;
  static constexpr int kLeastSlotBits = 6;
  static constexpr int64_t kSlots = 16384;
  static constexpr int64_t kMask = kSlots - 1;
  static constexpr int kWord = 64;
  static constexpr size_t kCrowded = 24;         // events that share a slot
  static constexpr size_t kCrowdsBorne = 65536;  // events in such slots, until these are narrowed

  struct Node {
    PacketEvent event;
    uint32_t next = kNone;
  };

  struct IsLater {  // a type, so that sorts have it inlined
    bool operator()(const PacketEvent& a, const PacketEvent& b) const {
      if (a.time != b.time) return a.time > b.time;
      return static_cast<int32_t>(a.order - b.order) > 0;
    }
  };

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
    return far_.front().time >> slot_bits_;
  }

  // Sorts its events. What lies far ahead comes nearer.
  void TurnTo(int64_t slot) {
    slot_ = slot;
    while (!far_.empty() && (far_.front().time >> slot_bits_) < slot_ + kSlots) {
      std::pop_heap(far_.begin(), far_.end(), IsLater());
      Hang(far_.back(), far_.back().time >> slot_bits_);
      far_.pop_back();
    }
    Take(static_cast<size_t>(slot_ & kMask));
    std::sort(due_.begin(), due_.end(), IsLater());
  }

  // Appends what hangs there to what is due.
  void Take(size_t place) {
    uint32_t& head = slots_[place];
    for (uint32_t node = head; node != kNone;) {
      due_.push_back(nodes_[node].event);
      const uint32_t after = nodes_[node].next;
      nodes_[node].next = free_;
      free_ = node;
      node = after;
      --hung_;
    }
    head = kNone;
    occupied_[place / kWord] &= ~(uint64_t{1} << (place % kWord));
  }

  // Slots of a quarter of the width. Events are what they are due at, so nothing else changes.
  void Narrow() {
    crowded_ = 0;
    for (size_t place = 0; place < slots_.size(); ++place) Take(place);
    slot_bits_ = std::max(slot_bits_ - 2, kLeastSlotBits);
    std::vector<PacketEvent> all;
    all.swap(due_);
    all.insert(all.end(), far_.begin(), far_.end());
    far_.clear();
    int64_t first = all.front().time;
    for (const PacketEvent& event : all) first = std::min(first, event.time);
    slot_ = first >> slot_bits_;
    for (const PacketEvent& event : all) {
      const int64_t slot = event.time >> slot_bits_;
      if (slot == slot_) {
        due_.push_back(event);
      } else if (slot < slot_ + kSlots) {
        Hang(event, slot);
      } else {
        far_.push_back(event);
        std::push_heap(far_.begin(), far_.end(), IsLater());
      }
    }
    std::sort(due_.begin(), due_.end(), IsLater());
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
  int slot_bits_ = kMostSlotBits;
  int64_t slot_ = 0;
  size_t crowded_ = 0;
  size_t hung_ = 0;
  size_t size_ = 0;
  uint32_t free_ = kNone;
  uint32_t order_ = 0;
};

}  // namespace rehearse
