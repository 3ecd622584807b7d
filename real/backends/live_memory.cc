#include "real/backends/live_memory.h"

#include <algorithm>
#include <variant>

#include "sim/base/error.h"

namespace rehearse {

LiveMemory::LiveMemory(const RankPlan& plan) {
  const Role& role = *plan.role;
  for (const MemoryPlan& memory : plan.memories) {
    const Buffer& buffer = role.buffers[memory.buffer.index()];
    Array array;
    array.kind = buffer.kind;
    array.is_counted = !buffer.borrowed;
    array.on_host = buffer.on_host;
    array.bytes = buffer.bytes;
    arrays_.push_back(array);
  }
  touched_.resize(role.ops.size());
  leaves_.resize(role.ops.size());
  returns_.resize(role.ops.size());
  for (size_t op = 0; op < role.ops.size(); ++op) {
    const auto* const collective = std::get_if<Collective>(&role.ops[op].work);
    const bool is_to_host = collective != nullptr && collective->kind == CollectiveKind::kToHost;
    const bool is_from_host =
        collective != nullptr && collective->kind == CollectiveKind::kFromHost;
    for (const auto* buffers : {&role.ops[op].reads, &role.ops[op].writes}) {
      for (const BufferId id : *buffers) {
        const uint32_t memory = plan.buffers[id.index()].memory;
        touched_[op].push_back(memory);
        if (arrays_[memory].kind != BufferKind::kOptimizer || arrays_[memory].on_host) continue;
        if (is_to_host && buffers == &role.ops[op].reads) leaves_[op].push_back(memory);
        if (is_from_host && buffers == &role.ops[op].writes) returns_[op].push_back(memory);
      }
    }
    std::sort(touched_[op].begin(), touched_[op].end());
    touched_[op].erase(std::unique(touched_[op].begin(), touched_[op].end()), touched_[op].end());
    for (const uint32_t memory : touched_[op]) ++arrays_[memory].uses_left;
  }
  for (Array& array : arrays_)
    if (array.IsKept()) Count(array, true);
  peak_ = now_;
}

void LiveMemory::Begin(uint32_t op) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const uint32_t memory : returns_[op]) Count(arrays_[memory], true);
  for (const uint32_t memory : touched_[op]) Count(arrays_[memory], true);
  peak_.host = std::max(peak_.host, now_.host);
  if (now_.Total() <= peak_.Total()) return;
  const Bytes host = peak_.host;
  peak_ = now_;
  peak_.host = host;
}

void LiveMemory::End(uint32_t op) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const uint32_t memory : touched_[op]) {
    Array& array = arrays_[memory];
    --array.uses_left;
    if (array.uses_left == 0 && !array.IsKept()) Count(array, false);
  }
  for (const uint32_t memory : leaves_[op]) Count(arrays_[memory], false);
}

void LiveMemory::Count(Array& array, bool lives) {
  if (!array.is_counted || array.lives == lives) return;
  array.lives = lives;
  Bytes* counted = &now_.host;
  if (!array.on_host) {
    switch (array.kind) {
      case BufferKind::kParameter:
        counted = &now_.parameters;
        break;
      case BufferKind::kGradient:
        counted = &now_.gradients;
        break;
      case BufferKind::kOptimizer:
        counted = &now_.optimizer;
        break;
      case BufferKind::kActivation:
        counted = &now_.activations;
        break;
      case BufferKind::kBuffer:
        counted = &now_.buffers;
        break;
    }
  }
  *counted += lives ? array.bytes : -1.0 * array.bytes;
}

}  // namespace rehearse
