// Data parallelism, ZeRO, FSDP and Megatron-LM as values of the combined strategy
// (workloads/strategies/strategy_combined.h), each with the axes that belong to it.
//
// Data parallelism and its sharded forms: ZeRO-1, -2, -3 = FSDP (Rajbhandari et al., SC20; Zhao et
// al., VLDB 2023) and hybrid sharding (FSDP's HSDP, ZeRO++). Every rank computes with whole weights
// on its own rows; what is kept in shares over `shard` ranks grows with the stage. Replicas hold
// the same shares and all-reduce their gradients. Mesh shard x replica, shard innermost; without
// stages the one axis data.
//
//   | stage | each product                | after backward           | after Adam   |
//   | 0     |                             | all-reduce dW (fp32)     |              |
//   | 1     |                             | reduce-scatter dW (fp32) | all-gather W |
//   | 2     | reduce-scatter dW           |                          | all-gather W |
//   | 3     | all-gather W before it, forward and backward; reduce-scatter dW        |
//   replicas > 1: all-reduce of the shares of dW (fp32) besides
//
// Megatron-LM's one-dimensional tensor parallelism (Shoeybi et al. 2019) and sequence parallelism
// (Korthikanti et al. 2022), under data parallelism. Mesh tensor x data, tensor innermost (t
// ranks). QKV and MLP-up split columns, the two projections rows, the embedding and the output
// layer the vocabulary. Bytes per layer, in elements, for the m rows of a data-parallel rank:
//
//   | op                                | without          | with sequence parallelism       |
//   | forward, before QKV and MLP-up    |                  | all-gather X, mh                |
//   | forward, after the projections    | all-reduce Y, mh | reduce-scatter Y, mh            |
//   | backward, before the projections  |                  | all-gather dY, mh               |
//   | backward, before dW of QKV, up    |                  | all-gather X once more, mh      |
//   | backward, after dX of QKV, up     | all-reduce dX, mh| reduce-scatter dX, mh           |
//   | after backward, on data           | all-reduce dW, kn/t | the same; norms also on tensor |
#pragma once

#include <cstdint>

#include "workloads/strategies/strategy_combined.h"

namespace rehearse {

CombinedOptions DataParallelPreset();
CombinedOptions ZeroPreset(uint32_t stage);  // 1 to 3
// Its optimizer state may be in shares along data (the distributed optimizer): `shares_over_data`.
CombinedOptions MegatronPreset();

// A mesh of the axes that are presets' own even where they have one rank.
enum ZeroAxis : uint32_t { kShardAxis = 0, kReplicaAxis = 1 };
enum MegatronAxis : uint32_t { kTensorAxis = 0, kMegatronDataAxis = 1 };

}  // namespace rehearse
