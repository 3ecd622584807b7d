// Waits for a GPU, which may never finish: meanwhile other ranks are watched, and the time is
// limited.
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
  double seconds;  // without progress
};

// Waits until `is_done`. Throws Error with `what_hangs` if the time is over or NCCL has found a
// fault, and RankLost if another rank is gone.
void WaitForGpu(const GpuPatience& patience, const std::function<bool()>& is_done,
                const std::function<std::string()>& what_hangs);

// To be called when NCCL has failed: it is often the first to see that a rank is gone, but cannot
// say which. Throws RankLost if the transport can say, now or within a quarter of a second.
void LookForLostRank(Transport& transport);

// The first op of each stream that has not ended; `names` by op.
std::string OpsThatHang(const RankPlan& plan, const StepEvents& events,
                        const std::vector<std::string>& names);

}  // namespace rehearse
