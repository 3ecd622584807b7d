#include "sim/schedule/written_out.h"

#include <utility>

namespace rehearse {

WrittenOut::WrittenOut(const Role& role, std::vector<Repeat> repeats)
    : role_(role), repeats_(std::move(repeats)) {
  size_t buffers = role.buffers.size();
  for (const Repeat& repeat : repeats_) buffers += size_t{repeat.times} * repeat.buffers();
  buffers_.reserve(buffers);
  uint32_t next = 0;
  for (uint32_t i = 0; i < repeats_.size(); ++i) {
    const Repeat& repeat = repeats_[i];
    for (; next < repeat.end_buffer; ++next) AddBuffer(next, i, 0);
    for (uint32_t copy = 1; copy <= repeat.times; ++copy) {
      for (uint32_t kept = repeat.first_buffer; kept < repeat.end_buffer; ++kept)
        AddBuffer(kept, i, copy);
    }
  }
  for (; next < role.buffers.size(); ++next)
    AddBuffer(next, static_cast<uint32_t>(repeats_.size()), 0);
}

void WrittenOut::AddBuffer(uint32_t kept, uint32_t repeats_before, uint32_t copy) {
  const auto& view = role_.buffers[kept].view;
  const auto own = static_cast<uint32_t>(buffers_.size());
  const DoneOp by{.copy = copy, .repeats_before = repeats_before};
  buffers_.push_back({kept, view ? NumberOf(view->of, by) : own});
}

uint32_t WrittenOut::NumberOf(BufferId buffer, const DoneOp& done) const {
  uint32_t number = buffer.index();
  for (uint32_t i = 0; i < done.repeats_before; ++i) {
    const Repeat& repeat = repeats_[i];
    if (buffer.index() >= repeat.FirstBuffer()) number += repeat.times * repeat.buffers();
  }
  if (done.copy > 0) {
    const Repeat& repeat = repeats_[done.repeats_before];
    if (buffer.index() + repeat.buffers() >= repeat.FirstBuffer())
      number += done.copy * repeat.buffers();
  }
  return number;
}

}  // namespace rehearse
