// A role's buffers as if every copy of what it repeats were kept (Expanded in
// sim/schedule/repeats.h, with the same numbers), without the copies themselves: for what goes once
// over all ops (sim/schedule/done_ops.h) and asks what they touch.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/done_ops.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Refers to the role.
class WrittenOut {
 public:
  explicit WrittenOut(const Role& role) : WrittenOut(role, role.repeats) {}
  // With these repeats instead of its own, which differ only in how often.
  WrittenOut(const Role& role, std::vector<Repeat> repeats);

  DoneOps ops() const { return {repeats_, role_.ops.size()}; }
  uint32_t buffer_count() const { return static_cast<uint32_t>(buffers_.size()); }

  // The number of the buffer that such an op means.
  uint32_t NumberOf(BufferId buffer, const DoneOp& done) const;

  // By number: the buffer as it is kept, and the number of what it is a view of, or its own.
  const Buffer& KeptBuffer(uint32_t number) const { return role_.buffers[KeptId(number).index()]; }
  BufferId KeptId(uint32_t number) const { return BufferId(buffers_[number].kept); }
  uint32_t RootOf(uint32_t number) const { return buffers_[number].root; }

 private:
  struct NumberedBuffer {
    uint32_t kept = 0;
    uint32_t root = 0;
  };

  // As an op of the copy means it, of the repeat that has so many others before it.
  void AddBuffer(uint32_t kept, uint32_t repeats_before, uint32_t copy);

  const Role& role_;
  const std::vector<Repeat> repeats_;
  std::vector<NumberedBuffer> buffers_;
};

}  // namespace rehearse
