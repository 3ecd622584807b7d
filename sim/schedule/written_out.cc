#include "sim/schedule/written_out.h"

#include <utility>

#include "sim/schedule/repeats.h"

namespace rehearse {

WrittenOut::WrittenOut(const Role& role, std::vector<Repeat> repeats)
    : role_(role), repeats_(std::move(repeats)) {
  size_t buffers = role.buffers.size();
  op_count_ = static_cast<uint32_t>(role.ops.size());
  for (const Repeat& repeat : repeats_) {
    op_count_ += repeat.times * repeat.size();
    buffers += size_t{repeat.times} * repeat.buffers();
  }
  buffers_.reserve(buffers);
  uint32_t next = 0;
  for (size_t i = 0; i < repeats_.size(); ++i) {
    const Repeat& repeat = repeats_[i];
    for (; next < repeat.end_buffer; ++next) AddBuffer(next, {i, 0});
    for (uint32_t copy = 1; copy <= repeat.times; ++copy) {
      for (uint32_t kept = repeat.first_buffer; kept < repeat.end_buffer; ++kept)
        AddBuffer(kept, {i, copy});
    }
  }
  for (; next < role.buffers.size(); ++next) AddBuffer(next, {repeats_.size(), 0});
}

void WrittenOut::AddBuffer(uint32_t kept, const Copy& copy) {
  const auto& view = role_.buffers[kept].view;
  const auto own = static_cast<uint32_t>(buffers_.size());
  buffers_.push_back({kept, view ? NumberOf(view->of, copy) : own});
}

uint32_t WrittenOut::PositionOf(OpId before, const Copy& copy) const {
  return rehearse::PositionOf(repeats_, before,
                              {.copy = copy.number, .repeats_before = copy.repeats_before});
}

uint32_t WrittenOut::NumberOf(BufferId buffer, const Copy& copy) const {
  uint32_t number = buffer.index();
  for (size_t i = 0; i < copy.repeats_before; ++i) {
    const Repeat& repeat = repeats_[i];
    if (buffer.index() >= repeat.FirstBuffer()) number += repeat.times * repeat.buffers();
  }
  if (copy.number > 0) {
    const Repeat& repeat = repeats_[copy.repeats_before];
    if (buffer.index() + repeat.buffers() >= repeat.FirstBuffer())
      number += copy.number * repeat.buffers();
  }
  return number;
}

}  // namespace rehearse
