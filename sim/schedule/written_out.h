// A role's ops and buffers as if every copy of what it repeats were kept (Expanded in
// sim/schedule/repeats.h, with the same numbers), without the copies themselves: for what goes once
// over all ops.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

// Refers to the role.
class WrittenOut {
 public:
  // Which copy an op belongs to: of the repeat that has so many others before it.
  struct Copy {
    size_t repeats_before = 0;
    uint32_t number = 0;
  };

  explicit WrittenOut(const Role& role) : WrittenOut(role, role.repeats) {}
  // With these repeats instead of its own, which differ only in how often.
  WrittenOut(const Role& role, std::vector<Repeat> repeats);

  uint32_t op_count() const { return op_count_; }
  uint32_t buffer_count() const { return static_cast<uint32_t>(buffers_.size()); }

  // Calls visit(place of the op in Role::ops, its copy) for each position, in order.
  template <typename Visit>
  void ForEachOp(const Visit& visit) const {
    uint32_t next = 0;
    for (size_t i = 0; i <= repeats_.size(); ++i) {
      const bool is_last = i == repeats_.size();
      const auto end = is_last ? static_cast<uint32_t>(role_.ops.size()) : repeats_[i].end;
      for (; next < end; ++next) visit(next, Copy{i, 0});
      for (uint32_t copy = 1; !is_last && copy <= repeats_[i].times; ++copy) {
        for (uint32_t op = repeats_[i].begin; op < end; ++op) visit(op, Copy{i, copy});
      }
    }
  }
  // The position that an op of the copy means when it is after `before`.
  uint32_t PositionOf(OpId before, const Copy& copy) const;
  // The number of the buffer that an op of the copy means.
  uint32_t NumberOf(BufferId buffer, const Copy& copy) const;

  // By number: the buffer as it is kept, and the number of what it is a view of, or its own.
  const Buffer& KeptBuffer(uint32_t number) const { return role_.buffers[KeptId(number).index()]; }
  BufferId KeptId(uint32_t number) const { return BufferId(buffers_[number].kept); }
  uint32_t RootOf(uint32_t number) const { return buffers_[number].root; }

 private:
  struct NumberedBuffer {
    uint32_t kept = 0;
    uint32_t root = 0;
  };

  void AddBuffer(uint32_t kept, const Copy& copy);

  const Role& role_;
  const std::vector<Repeat> repeats_;
  uint32_t op_count_ = 0;
  std::vector<NumberedBuffer> buffers_;
};

}  // namespace rehearse
