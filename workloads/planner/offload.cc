#include "workloads/planner/offload.h"

#include <algorithm>
#include <limits>

#include "sim/base/error.h"

namespace rehearse {

BufferId* BufferAt(const StateSlot& slot, ChunkState* chunk) {
  if (!chunk->stage_nodes->Has(slot.node)) return nullptr;
  NodeState& state = chunk->StateOf(slot.node);
  if (slot.place == 0) return &state.value.buffer;
  if (slot.place == 1) return &state.operand.buffer;
  const uint32_t saved = slot.place - 2;
  return saved < state.saved.size() ? &state.saved[saved] : nullptr;
}

std::vector<StateSlot> SlotsOf(const std::vector<uint32_t>& nodes, ChunkState* chunk) {
  std::vector<StateSlot> slots;
  for (const uint32_t node : nodes) {
    for (uint32_t place = 0;; ++place) {
      const BufferId* const buffer = BufferAt({node, place}, chunk);
      if (buffer == nullptr) break;
      if (buffer->IsSet()) slots.push_back({node, place});
    }
  }
  return slots;
}

KeptOfLayers FindKept(const Role& role, const std::vector<std::pair<StateSlot, BufferId>>& noted) {
  constexpr int32_t kOutside = std::numeric_limits<int32_t>::max();
  const auto root_of = [&](BufferId buffer) {
    const std::optional<View>& view = role.buffers[buffer.index()].view;
    return view ? view->of : buffer;
  };
  std::map<uint32_t, int32_t> first_reader;  // the highest layer
  for (const Op& op : role.ops) {
    if (op.tag.phase != Phase::kBackward && op.tag.phase != Phase::kRecompute) continue;
    const int32_t layer = op.tag.layer < 0 ? kOutside : op.tag.layer;
    for (const BufferId buffer : op.reads) {
      int32_t& highest = first_reader.try_emplace(root_of(buffer).index(), layer).first->second;
      highest = std::max(highest, layer);
    }
  }
  std::map<std::pair<int32_t, uint32_t>, KeptArray> arrays;  // by layer and root
  for (const auto& [slot, buffer] : noted) {
    const BufferId root = root_of(buffer);
    const auto reader = first_reader.find(root.index());
    const BufferKind kind = role.buffers[root.index()].kind;
    const bool is_short_lived = kind == BufferKind::kActivation || kind == BufferKind::kBuffer;
    if (reader == first_reader.end() || reader->second == kOutside || !is_short_lived) continue;
    arrays[{reader->second, root.index()}].push_back(slot);
  }
  KeptOfLayers kept;
  for (auto& [key, array] : arrays) kept[key.first].push_back(std::move(array));
  return kept;
}

uint32_t EndOfWindow(uint32_t layers, uint32_t offloaded, uint32_t i) {
  CHECK_LT(i, offloaded);
  CHECK_LT(offloaded, layers);
  const uint32_t longer = layers % offloaded;  // so many windows at the beginning are, by a layer
  return layers / offloaded * (i + 1) - 1 + std::min(i + 1, longer);
}

}  // namespace rehearse
