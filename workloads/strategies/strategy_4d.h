// AxoNN's 4D strategy (Singh et al., arXiv 2305.13525).
//
// Grid G_c × G_r × G_d × G_data, ranks nest column innermost, then row, depth, data. A product X·W
// has W's rows on r and columns on c, X's rows on d (and data) and columns on r; every W is stored
// in shards over d. Collectives of a product (m×k)·(k×n), in elements, m of one replica:
//
//   | when                              | collective         | axis | elements         | eq. |
//   | forward, before                   | all-gather of W    | d    | kn/(G_c G_r)     | 4   |
//   | forward, after                    | all-reduce of Y    | r    | mn/(G_d G_c)     | 6   |
//   | backward, after dX                | all-reduce of dX   | c    | mk/(G_d G_r)     | 7   |
//   | backward, after dW                | reduce-scatter dW  | d    | kn/(G_c G_r)     | 5   |
//   | after the backward pass           | all-reduce of dW   | data | kn/(G_c G_r G_d) | 8   |
//
// Errata of the paper: eq. 8 prints mk; W is once written as n×k; Algorithm 1 and the prose name
// the groups of the forward and the backward all-reduce differently. The table is what shapes
// demand.
//
// Optimisations, each a switch:
//   A transpose_alternate_layers  r and c swap in every other product, so that each output
//                                 already lies as the next input. Without it each product stands
//                                 alone: its output is gathered along c and the next one slices its
//                                 input along r, and the work in between is done on whole rows.
//   B overlap_all_reduce          all-reduce of dX beside the dW product
//   C overlap_reduce_scatter      reduce-scatters are awaited only at the end of backward
//   D overlap_all_gather          the next product's all-gather is issued during this one, in
//                                 the order of the forward pass; in the recomputation only
//                                 inside a layer
//   E cached_layers               gathered weights of the first so many layers are kept from the
//                                 forward pass for the recomputation
// The SC24 paper calls the axes x (row), y (column), z (depth).
#pragma once

#include <cstdint>

#include "workloads/strategies/strategy.h"

namespace rehearse {

struct FourDOptions {
  uint32_t column = 1;
  uint32_t row = 1;
  uint32_t depth = 1;
  uint32_t data = 1;
  bool transpose_alternate_layers = true;  // A
  bool overlap_all_reduce = true;          // B
  bool overlap_reduce_scatter = true;      // C
  bool overlap_all_gather = true;          // D
  uint32_t cached_layers = 0;              // E
};

// Axes of the mesh that MakeFourD returns.
enum FourDAxis : uint32_t { kColumnAxis = 0, kRowAxis = 1, kDepthAxis = 2, kDataAxis = 3 };

Strategy MakeFourD(const FourDOptions& options, const Network& network);

}  // namespace rehearse
