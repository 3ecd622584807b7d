// Schedules that exist to be measured: collectives of all sizes, and matrix products of many shapes, each in the middle
// of other work, as in a training step.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule.h"

namespace rehearse {

// Bytes of a step of a ring: two a doubling from 64 B to `largest`, and both sides of the sizes at which MPI libraries
// change protocol (4, 8, 64 KiB) and data outgrow a core's cache.
std::vector<Bytes> ProbeStepSizes(Bytes largest);

// Every collective of these kinds at each size of a step, in groups of `group` neighbours, in an order shuffled by
// `seed`; before each a copy writes what it sends. fp32, on one stream. `group` must divide `ranks`.
Schedule MakeCollectiveProbe(uint32_t ranks, uint32_t group, const std::vector<Bytes>& steps,
                             uint64_t seed);

// A product C = A·B of each shape and mode, with memory of its own, in an order shuffled by `seed`; before each a copy
// writes A. No communication: every rank does the same at the same time.
Schedule MakeProductProbe(uint32_t ranks, const std::vector<Gemm>& products, uint64_t seed);

// So many shapes in all three modes, evenly spread (Halton) over the logarithms of m, n, k in [16, 2048], none with more
// than `most` flops.
std::vector<Gemm> ProbeProducts(size_t shapes, Flops most);

}  // namespace rehearse
