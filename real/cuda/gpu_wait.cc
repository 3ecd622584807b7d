#include "real/cuda/gpu_wait.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

void LookForLostRank(Transport& transport) {
  for (int i = 0; i < 25; ++i) {
    transport.Check();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void WaitForGpu(const GpuPatience& patience, const std::function<bool()>& is_done,
                const std::function<std::string()>& what_hangs) {
  constexpr int kSpins = 1000;  // before the host begins to sleep between looks
  constexpr int kLooks = 500;   // between looks at NCCL, the other ranks and the clock
  const auto begin = std::chrono::steady_clock::now();
  for (int look = 1; !is_done(); ++look) {
    if (look % kLooks == 0) {
      patience.communicators.Check();
      patience.transport.Check();
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (waited.count() > patience.seconds) {
        throw Error(
            fmt::format("the GPU has stood still for {:.1f} s: {}; a deadlock, or another rank "
                        "that did not come",
                        waited.count(), what_hangs()));
      }
    }
    if (look > kSpins) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

std::string OpsThatHang(const RankPlan& plan, const StepEvents& events,
                        const std::vector<std::string>& names) {
  std::string hangs;
  std::vector<bool> is_named(plan.role->streams.size());
  for (uint32_t id = 0; id < plan.role->ops.size(); ++id) {
    const Op& op = plan.role->ops[id];
    const uint32_t stream = op.stream.index();
    if (is_named[stream] || !events.HasEnd(id) || events.IsDone(id)) continue;
    is_named[stream] = true;
    hangs += fmt::format("{}{} on stream \"{}\" ({})", hangs.empty() ? "" : "; ", names[id],
                         plan.role->streams[stream].name, Describe(*plan.schedule, op.work));
  }
  return hangs;
}

}  // namespace rehearse
