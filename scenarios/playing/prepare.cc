#include "scenarios/playing/prepare.h"

#include <numeric>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule_check.h"
#include "workloads/planner/kernel_tuning.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace {

// The fullest rank must fit the smallest of its job's devices.
void CheckMemory(const Scenario& scenario, const Job& job) {
  const Cluster& cluster = *scenario.cluster;
  uint32_t smallest = job.placement.front();
  for (const uint32_t device : job.placement) {
    if (cluster.DeviceOf(device).memory < cluster.DeviceOf(smallest).memory) smallest = device;
  }
  const DeviceSpec& device = cluster.DeviceOf(smallest);
  const MemoryUse use = MemoryOfFullestRank(job.schedule);
  if (use.Total() <= device.memory) return;
  throw Error(
      scenario.strategy_place,
      fmt::format("out of memory: a rank needs {} (parameters {}, gradients {}, optimizer "
                  "{}, activations {}, buffers {}), the device {} has {}; --allow-oom plays it all "
                  "the same",
                  Print(use.Total()), Print(use.parameters), Print(use.gradients),
                  Print(use.optimizer), Print(use.activations), Print(use.buffers), device.name,
                  Print(device.memory)));
}

}  // namespace

std::vector<Job> Prepare(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  Job job;
  job.name = scenario.name;
  job.placement.resize(cluster.device_count());
  std::iota(job.placement.begin(), job.placement.end(), 0u);
  job.schedule =
      PlanStep(scenario.network, scenario.training, scenario.strategy, scenario.strategy_place);
  if (scenario.training.tuned_kernels) {
    TuneKernels(cluster.DeviceOf(job.placement.front()), &job.schedule);
  }
  ApplyCollectivePins(scenario.collective_pins, &job.schedule);
  CheckSchedule(job.schedule);
  CheckBuffers(job.schedule);
  if (!scenario.allow_out_of_memory) CheckMemory(scenario, job);
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  return jobs;
}

}  // namespace rehearse
