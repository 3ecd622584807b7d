// What a role does, op by op, with the copies of what it repeats (Repeat in
// sim/schedule/schedule.h). Whoever goes over ops as they are done goes this way: no other place
// works out which copy lies where.
//
//   const DoneOps ops(role);
//   for (const DoneOp& done : ops) {
//     const Op& op = role.ops[done.place];
//     for (const OpId before : op.after) ... ops.PositionOf(before, done) ...
//   }
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

struct DoneOp {
  uint32_t position = 0;  // how many are done before it
  uint32_t place = 0;     // where it is kept
  uint32_t copy = 0;      // 0: the op itself
  // Repeats that end before it: a copy is one of the repeat of this number.
  uint32_t repeats_before = 0;
};

// Refers to the repeats.
class DoneOps {
 public:
  // In order, each step in constant time.
  class Iterator {
   public:
    Iterator(const std::vector<Repeat>* repeats, DoneOp done) : repeats_(repeats), done_(done) {}

    const DoneOp& operator*() const { return done_; }
    const DoneOp* operator->() const { return &done_; }
    bool operator==(const Iterator& other) const { return done_.position == other.done_.position; }
    Iterator& operator++() {
      ++done_.position;
      ++done_.place;
      if (done_.repeats_before == repeats_->size()) return *this;
      const Repeat& repeat = (*repeats_)[done_.repeats_before];
      if (done_.place != repeat.end) return *this;
      if (done_.copy < repeat.times) {
        ++done_.copy;
        done_.place = repeat.begin;
      } else {
        done_.copy = 0;
        ++done_.repeats_before;
      }
      return *this;
    }

   private:
    const std::vector<Repeat>* repeats_;
    DoneOp done_;
  };

  explicit DoneOps(const Role& role) : DoneOps(role.repeats, role.ops.size()) {}
  // Of so many ops that are kept.
  DoneOps(const std::vector<Repeat>& repeats, size_t kept);

  uint32_t size() const { return size_; }
  Iterator begin() const { return {&repeats_, {}}; }
  Iterator end() const { return {&repeats_, {.position = size_}}; }

  DoneOp At(uint32_t position) const;
  // How often the op that is kept there is done.
  uint32_t TimesOf(uint32_t place) const;
  // How much higher the micro-batch of its tag is than that of the op as it is kept.
  int32_t MicroBatchesLater(const DoneOp& done) const;
  // The position that such an op means when it is after `before`.
  uint32_t PositionOf(OpId before, const DoneOp& done) const;

 private:
  const std::vector<Repeat>& repeats_;
  uint32_t size_ = 0;
};

}  // namespace rehearse
