// Megatron-LM's one-dimensional tensor parallelism (Shoeybi et al. 2019) and sequence parallelism
// (Korthikanti et al. 2022), under data parallelism.
//
// Mesh tensor × data, tensor innermost (t ranks). QKV and MLP-up split columns, the two projections
// rows, the embedding and the output layer the vocabulary. Bytes per layer, in elements, for the m
// rows of a data-parallel rank:
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

#include "workloads/strategies/strategy.h"

namespace rehearse {

struct MegatronOptions {
  uint32_t tensor = 1;
  uint32_t data = 1;
  bool sequence_parallel = false;      // norms, dropout and residuals on 1/t of the rows each
  bool overlap_all_reduce = true;      // collectives of dX beside the dW product
  bool overlap_gradients = false;      // all-reduce of dW over data beside the last backward pass
  bool distributed_optimizer = false;  // optimizer state in shares over data (ZeRO-1)
  // Elements of a bucket of gradients, at least a million for each rank of data; 0: each matrix on
  // its own.
  uint64_t bucket_elements = 0;
  bool overlap_parameter_gathers = false;  // updated shares beside the next forward pass
};

enum MegatronAxis : uint32_t { kTensorAxis = 0, kMegatronDataAxis = 1 };

Strategy MakeMegatron(const MegatronOptions& options, const Network& network);

}  // namespace rehearse
