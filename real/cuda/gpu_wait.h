// Waiting for a GPU, which may never come: other ranks are looked after meanwhile, and the
// time is limited.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "real/backends/rank_plan.h"
#include "real/cuda/communicators.h"
#include "real/cuda/step_events.h"
#include "real/transports/transport.h"

namespace rehearse {

struct GpuPatience {
  const GpuCommunicators& communicators;
  Transport& transport;
  double seconds;  // without anything done
};

// Until `is_done` says so. Throws Error with `what_hangs` when the time is over or NCCL has found a
// fault, RankLost when another rank has gone.
void WaitForGpu(const GpuPatience& patience, const std::function<bool()>& is_done,
                const std::function<std::string()>& what_hangs);

// For when NCCL has failed: it often sees first that a rank has gone, and cannot say which. Throws
// RankLost where the transport can, now or in a quarter of a second.
void LookForLostRank(Transport& transport);

// The first op of each stream that has not ended; `names` by op.
std::string OpsThatHang(const RankPlan& plan, const StepEvents& events,
                        const std::vector<std::string>& names);

}  // namespace rehearse
