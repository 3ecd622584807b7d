// Activations that wait for the way back in the memory of the host, layer by layer.
//
// Each stage offloads what its first layers keep, and works on later layers meanwhile, as
// Transformer Engine does for Megatron-LM's --cpu-offloading-num-layers (NVIDIA/TransformerEngine,
// transformer_engine/pytorch/cpu_offload.py, AsyncDoubleBufferGroupOffloadHandler): one layer's
// activations are on their way at a time, within a window of layers. They leave when the window
// before theirs is over, and their memory is free at its end, for which kernels wait if copies are
// slow. On the way back a layer returns within the same window.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.h"
#include "workloads/planner/plan.h"

namespace rehearse {

// Where the state of a node names a buffer: its value, its operand, or one of those it saved.
struct StateSlot {
  uint32_t node = 0;
  uint32_t place = 0;  // 0: the value, 1: the operand, 2 and more: saved
};
// Null if the state has no such place, or the stage no such node.
BufferId* BufferAt(const StateSlot& slot, ChunkState* chunk);
// All that name buffers.
std::vector<StateSlot> SlotsOf(const std::vector<uint32_t>& nodes, ChunkState* chunk);

// All slots that name an array, or parts of it.
using KeptArray = std::vector<StateSlot>;
// By layer, what its way back (or computing it again) is the first to read.
using KeptOfLayers = std::map<int32_t, std::vector<KeptArray>>;

// `role` has done one micro-batch, and `noted` is what slots named after its way there. What is
// read outside of layers is left out, and so is what lives longer than a micro-batch.
KeptOfLayers FindKept(const Role& role, const std::vector<std::pair<StateSlot, BufferId>>& noted);

// The layer, counted from the first of the stage, at whose end the activations of the i-th
// offloaded layer have gone, and before whose way back they begin to return. `offloaded` is less
// than `layers`, so that this is always a later layer.
uint32_t EndOfWindow(uint32_t layers, uint32_t offloaded, uint32_t i);

}  // namespace rehearse
