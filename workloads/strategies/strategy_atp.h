// ATP's two-dimensional tensor parallelism (Cheng et al., arXiv 2301.08658), under data
// parallelism.
//
// DeviceMesh(d1, d2), ranks of the second dimension innermost, data outermost. Column-first W =
// [S(1), S(0)] for QKV and MLP-up, row-first W = [S(0), S(1)] for the two projections; row-first as
// the first of the two exchanges the dimensions. The attention core is fully sharded. Bytes per
// layer, in elements, for m rows:
//
//   | op                        | collective         | forward      | backward (of its input) |
//   | QKV, column-first         | all-reduce         | 3mh/d1 on d2 | mh/d2 on d1             |
//   | slice before the core     | all-gather         |              | 3mh/d1 on d2            |
//   | core's output             | all-gather         | mh/d1 on d2  |                         |
//   | out-projection, row-first | all-reduce         | mh/d2 on d1  | mh/d1 on d2, scattered  |
//   | MLP-up, column-first      | all-reduce         | 4mh/d1 on d2 | mh/d2 on d1             |
//   | MLP-down, row-first       | all-reduce         | mh/d2 on d1  | 4mh/d1 on d2            |
//
// The four forward all-reduces are eq. 2's terms. Its factor 2 for the backward pass counts the
// same once more (14mh/d1 + 4mh/d2 together); the shapes demand 4mh/d1 + 2mh/d2 of all-reduces
// there, and since the core's output was gathered, its gradient is reduce-scattered (mh/d1).
// `chunks` parts of the batch take turns, so that the collective of one runs beside the work on
// another: in the forward pass, while in the backward pass it is dW that hides the collectives of
// dX (section 4.2), unless `overlap_chunks_backward` has chunks overlap there, too.
#pragma once

#include <cstdint>

#include "workloads/strategies/strategy.h"

namespace rehearse {

struct AtpOptions {
  uint32_t d1 = 1;
  uint32_t d2 = 1;
  uint32_t data = 1;
  bool column_first = true;
  uint32_t chunks = 1;
  bool overlap_all_reduce = true;  // of dX beside the dW product
  bool overlap_chunks_backward = false;
};

enum AtpAxis : uint32_t { kSecondAxis = 0, kFirstAxis = 1, kAtpDataAxis = 2 };

Strategy MakeAtp(const AtpOptions& options, const Network& network);

}  // namespace rehearse
