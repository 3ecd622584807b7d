// The space of a scenario that says no strategy: from model, cluster and batch alone, all that a
// training framework would let one choose.
//
//   axis                                          choices
//   tensor x context x shard x replicas x stages  the ranks as a product: tensor within a machine
//                                                 (or an NVLink domain); context leaves each rank
//                                                 2,048 tokens or more; shard is what is left, or
//                                                 what a machine holds, with replicas beyond
//   expert x expert_tensor                        divisors of the experts, within the mesh
//   schedule                                      1f1b; interleaved, with 2 parts a stage or more;
//                                                 with experts DualPipe and DualPipeV
//   pairs                                         of experts: passes one by one, or in pairs that
//                                                 hide all-to-alls (Megatron-Core's order), without
//                                                 and with 20 multiprocessors kept for DeepEP
//   dispatcher                                    of experts: all-to-all, or DeepEP's
//   sequence_parallel                             yes, no
//   zero                                          1, 2, 3 (optimizer, gradients, weights sharded)
//   micro-batch                                   1, 2, 4 or 8 samples
//   recomputation                                 none, norms and activations, full
//   products                                      plain, and the devices' 8-bit recipes
//
// What the scenario itself says stays as it is: with "training": {"products": "plain"} nothing has
// 8 bits, with a "pipeline" its stages are given. 1F1B's stages are equal in flops; interleaved
// ones have equal numbers of layers, or of layers and ends (embedding, loss). Where GPUs are left
// over, the ranks are as many as the machines divide evenly ("placement": "even"): 64 of each 72.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scenarios/evaluating/axes.h"
#include "sim/base/json_document.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// Whether the scenario leaves its strategy to the search.
bool LeavesStrategyOpen(const JsonReader& scenario);

// The scenario with a strategy to begin with, and "software" unless it names one (NeMo's recipes),
// so that it can be read; whether that strategy is possible is another question. Throws Error if
// the model is no decoder.
JsonDocument WithAnyStrategy(const JsonDocument& scenario);

// How many ranks a search may put on this cluster, falling: all that there are, or `most`; as many
// as the same power of two of each machine; and that on a power of two of machines.
std::vector<uint32_t> RankCounts(const Cluster& cluster, uint32_t most);

// The axes of `scenario` as it was written, on any of these clusters; those whose path is written
// there are left out.
std::vector<SpaceAxis> WideAxes(const JsonDocument& scenario,
                                const std::vector<std::shared_ptr<const Cluster>>& clusters,
                                uint32_t most_ranks);

}  // namespace rehearse
