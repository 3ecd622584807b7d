#include "sim/schedule/done_ops.h"

#include <algorithm>

namespace rehearse {

DoneOps::DoneOps(const std::vector<Repeat>& repeats, size_t kept)
    : repeats_(repeats), size_(static_cast<uint32_t>(kept)) {
  for (const Repeat& repeat : repeats) size_ += repeat.times * repeat.size();
}

DoneOp DoneOps::At(uint32_t position) const {
  DoneOp done{.position = position, .place = position};
  for (const Repeat& repeat : repeats_) {
    if (done.place < repeat.end) break;
    const uint32_t copy = (done.place - repeat.begin) / repeat.size();
    if (copy <= repeat.times) {
      done.place -= copy * repeat.size();
      done.copy = copy;
      break;
    }
    done.place -= repeat.times * repeat.size();
    ++done.repeats_before;
  }
  return done;
}

uint32_t DoneOps::TimesOf(uint32_t place) const {
  const auto own =
      std::upper_bound(repeats_.begin(), repeats_.end(), place,
                       [](uint32_t wanted, const Repeat& repeat) { return wanted < repeat.end; });
  return own == repeats_.end() || place < own->begin ? 1 : own->times + 1;
}

int32_t DoneOps::MicroBatchesLater(const DoneOp& done) const {
  if (done.copy == 0) return 0;
  return static_cast<int32_t>(done.copy) * repeats_[done.repeats_before].micro_batches;
}

uint32_t DoneOps::PositionOf(OpId before, const DoneOp& done) const {
  uint32_t position = before.index();
  for (uint32_t i = 0; i < done.repeats_before; ++i) {
    const Repeat& repeat = repeats_[i];
    // After the body, the last copies.
    if (before.index() >= repeat.FirstOp()) position += repeat.times * repeat.size();
  }
  if (done.copy > 0) position += done.copy * repeats_[done.repeats_before].size();
  return position;
}

}  // namespace rehearse
