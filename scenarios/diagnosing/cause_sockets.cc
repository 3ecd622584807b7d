// TCP sockets where InfiniBand or RoCE should be: the host's network, copies, and no LL128.
//
// What is left of the bandwidth is fitted: it may be one port of 10 Gb/s. A hop takes 25 us more,
// what TCP in the kernel takes one way under load.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause SocketsRow() {
  return {
      "sockets",
      "NCCL uses TCP sockets instead of InfiniBand or RoCE",
      "NCCL_DEBUG=INFO: \"Using network Socket\" instead of IB; NCCL_IB_DISABLE, and whether the "
      "container has /dev/infiniband",
      Geometric(0.5, 0.003, 7),
      true,
      ShareWords,
      [](const CollectiveRun& run, double share) -> std::optional<CollectiveRun> {
        constexpr Seconds kKernel(25e-6);
        if (!HasSeveralMachines(run)) return std::nullopt;
        return ThroughTheHost(run, share, kKernel / 2);
      },
      "of the bandwidth"};
}

}  // namespace rehearse
