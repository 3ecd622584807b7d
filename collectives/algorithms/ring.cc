#include "collectives/algorithms/ring.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

uint32_t RingSteps(CollectiveKind kind, uint32_t ranks) {
  CHECK_GE(ranks, 1u);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (ranks - 1);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return ranks - 1;
    default:
      throw Error(fmt::format(
          "algorithm \"ring\" cannot do {}; it does all-reduce, all-gather and reduce-scatter",
          Name(kind)));
  }
}

Seconds RingTime(CollectiveKind kind, uint32_t ranks, Bytes bytes, BytesPerSecond bandwidth,
                 Seconds latency) {
  const uint32_t steps = RingSteps(kind, ranks);
  if (steps == 0) return Seconds(0);
  return steps * (bytes / ranks / bandwidth + latency);
}

BytesPerSecond BusBandwidth(CollectiveKind kind, uint32_t ranks, Bytes bytes, Seconds time) {
  CHECK_GT(time.value(), 0.0);
  const double p = ranks;
  double factor = 1;
  if (kind == CollectiveKind::kAllReduce) factor = 2 * (p - 1) / p;
  if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter ||
      kind == CollectiveKind::kAllToAll) {
    factor = (p - 1) / p;
  }
  return factor * (bytes / time);
}

}  // namespace rehearse
