#include "scenarios/playing/prepare.h"

#include <utility>

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
void CheckMemory(const Cluster& cluster, const Job& job, const Place& place) {
  uint32_t smallest = job.placement.front();
  for (const uint32_t device : job.placement) {
    if (cluster.DeviceOf(device).memory < cluster.DeviceOf(smallest).memory) smallest = device;
  }
  const DeviceSpec& device = cluster.DeviceOf(smallest);
  const MemoryUse use = MemoryOfFullestRank(job.schedule);
  if (use.Total() <= device.memory) return;
  throw Error(
      place,
      fmt::format("out of memory: a rank needs {} (parameters {}, gradients {}, optimizer "
                  "{}, activations {}, buffers {}), the device {} has {}; --allow-oom plays it all "
                  "the same",
                  Print(use.Total()), Print(use.parameters), Print(use.gradients),
                  Print(use.optimizer), Print(use.activations), Print(use.buffers), device.name,
                  Print(device.memory)));
}

Job PrepareJob(const Scenario& scenario, const JobRequest& request) {
  const Cluster& cluster = *scenario.cluster;
  Job job{request.name, {}, request.placement, request.start, request.repeat};
  if (const auto* workload = std::get_if<Workload>(&request.work)) {
    job.schedule =
        PlanStep(workload->network, workload->training, workload->strategy, request.place);
    if (workload->training.tuned_kernels) {
      TuneKernels(cluster.DeviceOf(job.placement.front()), &job.schedule);
    }
  } else {
    job.schedule = std::get<Schedule>(request.work);
  }
  ApplyCollectivePins(request.collective_pins, &job.schedule);
  CheckSchedule(job.schedule);
  CheckBuffers(job.schedule);
  if (!scenario.allow_out_of_memory) CheckMemory(cluster, job, request.place);
  return job;
}

}  // namespace

std::vector<Job> Prepare(const Scenario& scenario) {
  std::vector<Job> jobs;
  for (const JobRequest& request : scenario.jobs) jobs.push_back(PrepareJob(scenario, request));
  return jobs;
}

Job PrepareOne(const Scenario& scenario, const char* command) {
  if (scenario.lists_jobs) {
    throw Error(fmt::format("\"{}\" lists jobs; {} takes a scenario with a step of its own",
                            scenario.name, command));
  }
  return std::move(Prepare(scenario).front());
}

}  // namespace rehearse
