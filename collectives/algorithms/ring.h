// The ring algorithm: how many steps each collective takes, and its closed form.
//
// A ring of p ranks moves S·n/p bytes over each of its p edges in S steps of n/p bytes, S =
// 2(p-1) for all-reduce (reduce-scatter, then all-gather) and p-1 for reduce-scatter and
// all-gather, n being the bytes of sim/schedule/schedule.h. (Rabenseifner 2004; AxoNN eq. 1-3;
// nccl-tests doc/PERFORMANCE.md.) Assumes that all ranks begin together and that no other traffic
// is on the links.
#pragma once

#include <cstdint>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Steps of a ring of `ranks`, 0 for one rank. Throws Error for kinds that a ring does not do.
uint32_t RingSteps(CollectiveKind kind, uint32_t ranks);

// S·(n/p/bandwidth + latency): `bandwidth` of one edge, `latency` of one step. 0 for one rank.
Seconds RingTime(CollectiveKind kind, uint32_t ranks, Bytes bytes, BytesPerSecond bandwidth,
                 Seconds latency);

// nccl-tests' bus bandwidth: algbw · 2(p-1)/p for all-reduce, (p-1)/p for all-gather,
// reduce-scatter and all-to-all, 1 else, with algbw = bytes / time.
BytesPerSecond BusBandwidth(CollectiveKind kind, uint32_t ranks, Bytes bytes, Seconds time);

}  // namespace rehearse
