// Data parallelism and its sharded forms: ZeRO-1, -2, -3 = FSDP (Rajbhandari et al., SC20; Zhao et
// al., VLDB 2023) and hybrid sharding (FSDP's HSDP, ZeRO++).
//
// Mesh shard × replica, shard innermost. Every rank computes with whole weights on its own rows;
// what is kept in shares over `shard` ranks grows with the stage: 0 nothing, 1 optimizer state, 2
// gradients too, 3 parameters too. Replicas hold the same shares and all-reduce their gradients.
//
//   | stage | each product                | after backward           | after Adam   |
//   | 0     |                             | all-reduce dW (fp32)     |              |
//   | 1     |                             | reduce-scatter dW (fp32) | all-gather W |
//   | 2     | reduce-scatter dW           |                          | all-gather W |
//   | 3     | all-gather W before it, forward and backward; reduce-scatter dW        |
//   replicas > 1: all-reduce of the shares of dW (fp32) besides
#pragma once

#include <cstdint>

#include "workloads/strategies/strategy.h"

namespace rehearse {

struct ZeroOptions {
  uint32_t shard = 1;
  uint32_t replicas = 1;
  uint32_t stage = 3;
  bool by_layer = false;                    // stage 3: collectives of whole layers, not of products
  uint32_t prefetch = 1;                    // products (layers) ahead, stage 3
  bool reshard_after_forward = true;        // stage 3, without recomputation
  ShardCopies copies = ShardCopies::kNone;  // stage 3, and the next five
  bool gathers_behind_backward = false;     // with by_layer
  bool reduces_in_fp32 = false;
  uint64_t prefetch_elements = 0;
  uint64_t most_gathered = 0;
  uint64_t reduce_elements = 0;
  bool overlap_reduce_scatter = true;  // stages 2, 3: awaited only at the end of backward
  bool overlap_all_reduce = false;     // of gradients, beside the last backward pass
};

enum ZeroAxis : uint32_t { kShardAxis = 0, kReplicaAxis = 1 };

// What a stage keeps in shares along these axes; nothing for stage 0.
std::optional<ShardPolicy> SharesOf(const ZeroOptions& options, std::vector<uint32_t> axes);

Strategy MakeZero(const ZeroOptions& options, const Network& network);

// Plain data parallelism: stage 0 on the one axis "data".
Strategy MakeDataParallel(uint32_t data, bool overlap_all_reduce, const Network& network);

}  // namespace rehearse
