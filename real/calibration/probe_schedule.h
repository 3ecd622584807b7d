// Schedules that exist to be measured: collectives of all sizes, and matrix products of many
// shapes, each in the middle of other work, as in a training step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

// Bytes of a step of a ring: two per doubling from 64 B to `largest`, and both sides of the sizes
// at which MPI libraries change protocol (4, 8, 64 KiB) and at which data outgrow a core's cache.
std::vector<Bytes> ProbeStepSizes(Bytes largest);

// The kinds that the strategies of workloads/ use most, which are all that NCCL has.
inline constexpr std::array kRingCollectives = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllToAll};
inline constexpr std::array kAllCollectives = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllToAll,  CollectiveKind::kBroadcast, CollectiveKind::kReduce};

// Every collective of these kinds at each size of a step, in groups of `group` neighbours, in an
// order shuffled by `seed`; before each, a copy writes what it sends. fp32, on one stream. `group`
// must divide `ranks`.
Schedule MakeCollectiveProbe(uint32_t ranks, uint32_t group, const std::vector<Bytes>& steps,
                             uint64_t seed,
                             std::span<const CollectiveKind> kinds = kRingCollectives);

// A product C = A·B of each shape and mode, with memory of its own, in an order shuffled by `seed`;
// before each a copy writes A. No communication: every rank does the same at the same time.
Schedule MakeProductProbe(uint32_t ranks, const std::vector<Gemm>& products, uint64_t seed,
                          DType dtype = DType::kFp32);

struct ProductRange {
  uint64_t smallest_side = 16;
  uint64_t largest_side = 2048;
  Flops most = Flops(2e8);  // of a product
};
// This many shapes in all three modes, evenly spread (Halton) over the logarithms of m, n and k.
std::vector<Gemm> ProbeProducts(size_t shapes, const ProductRange& range);

// A piece of compute beside a collective: a product, or a copy of this many elements if the product
// is empty.
struct Encounter {
  Gemm product;
  uint64_t copied = 0;
  Bytes bytes;  // of an all-reduce among all ranks
};
inline constexpr uint32_t kOpsOfEncounter = 4;
// Four ops for each encounter: the compute alone, the all-reduce alone, and both at the same time
// on two streams, the compute first. With one rank there is no communication to meet.
Schedule MakeEncounterProbe(uint32_t ranks, const std::vector<Encounter>& encounters, DType dtype);

}  // namespace rehearse
