// NICs do not reach the GPUs' memory: what they send and get is copied through the host.
//
// The way is drawn as it was; what it loses is the share that is fitted, a copy's latency at every
// hop, and LL128 between machines, which NCCL does not use then.
#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {

CollectiveCause NoGpuDirectRow() {
  return {
      "no-gpu-direct",
      "NICs do not reach GPU memory (no GPUDirect RDMA, or ACS is on): all goes through the host",
      "NCCL_DEBUG=INFO: channels without \"/GDRDMA\"; lsmod for nvidia_peermem; lspci -vvv: ACSCtl "
      "with SrcValid+",
      Geometric(0.9, 0.1, 6),
      true,
      ShareWords,
      [](const CollectiveRun& run, double share) -> std::optional<CollectiveRun> {
        constexpr Seconds kCopy(5e-6);
        if (!HasSeveralMachines(run) || !run.cluster->network_plugin().has_ll128)
          return std::nullopt;
        return ThroughTheHost(run, share, kCopy);
      },
      "of the bandwidth"};
}

}  // namespace rehearse
