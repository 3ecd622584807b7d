#include "scenarios/playing/prepare.h"

#include <utility>

#include <fmt/format.h>

#include "scenarios/playing/memory_fit.h"
#include "scenarios/playing/token_shares.h"
#include "sim/base/error.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "workloads/planner/kernel_tuning.h"

namespace rehearse {
namespace {

// If a job has several steps or begins late, they are written out op by op: some gigabytes.
void CheckSteps(const Job& job, const Place& place) {
  if (job.repeat == 1 && job.start == Seconds(0)) return;
  constexpr uint64_t kMost = 1u << 22;
  uint64_t ops = 0;
  for (const Role& role : job.schedule.roles) ops += uint64_t{job.repeat} * role.OpCount();
  if (ops > kMost)
    throw Error(place, fmt::format("job \"{}\": found {} ops of all roles in {} steps, expected at "
                                   "most {}",
                                   job.name, ops, job.repeat, kMost));
}

// Checks that every device of the job has this attention kernel.
void CheckAttention(const Cluster& cluster, const JobRequest& request, AttentionKernel kernel) {
  std::vector<bool> is_checked(cluster.device_specs().size());
  for (const uint32_t rank : request.placement) {
    const uint32_t spec = cluster.SpecOf(rank);
    if (is_checked[spec]) continue;
    is_checked[spec] = true;
    const std::string why = WhyNot(cluster.DeviceOf(rank), kernel);
    if (!why.empty()) throw Error(request.attention_place, why);
  }
}

// Checks that every device of the job has units for products of this kind.
void CheckProducts(const Cluster& cluster, const JobRequest& request, ProductRecipe recipe) {
  if (recipe == ProductRecipe::kNone) return;
  for (const uint32_t rank : request.placement) {
    const DeviceSpec& device = cluster.DeviceOf(rank);
    const bool in_blocks = recipe == ProductRecipe::kMxfp8 || recipe == ProductRecipe::kNvfp4;
    // Units with scales for blocks came with those for 4 bits: Blackwell's, CDNA 4's.
    const bool has_blocks =
        device.compute_capability >= 100 || device.matrix_peak_4 > FlopsPerSecond(0);
    const FlopsPerSecond peak =
        recipe == ProductRecipe::kNvfp4 ? device.matrix_peak_4 : device.matrix_peak_8;
    if (peak > FlopsPerSecond(0) && (!in_blocks || has_blocks)) continue;
    throw Error(Place{request.place.file, 0, "/training/products"},
                fmt::format("the device {} has no units for them, expected "
                            "\"plain\"{}",
                            device.name,
                            in_blocks && device.matrix_peak_8 > FlopsPerSecond(0)
                                ? ", \"fp8\", \"fp8-current\" or \"fp8-blockwise\""
                                : ""));
  }
}

bool StandsForMoreLayers(const JobRequest& request) {
  const auto* workload = std::get_if<Workload>(&request.work);
  return workload != nullptr && workload->network->left_out.count > 0;
}

Job PrepareJob(const Scenario& scenario, const JobRequest& request, ProgressObserver& observer,
               const KeptCheck& check_kept) {
  const Cluster& cluster = *scenario.cluster;
  Job job{request.name, {}, request.placement, request.start, request.repeat};
  if (const auto* workload = std::get_if<Workload>(&request.work)) {
    CheckAttention(cluster, request, workload->training.attention);
    CheckProducts(cluster, request, workload->training.products);
    job.schedule = workload->pipeline ? PlanPipeline(*workload->network, workload->training,
                                                     workload->strategy, *workload->pipeline,
                                                     request.place, kFewMicroBatches, observer)
                                      : PlanStep(*workload->network, workload->training,
                                                 workload->strategy, request.place, check_kept);
    if (workload->training.tuned_kernels) {
      TuneKernels(cluster.DeviceOf(job.placement.front()), &job.schedule);
    }
    LeaveToLibrary(&job.schedule);
  } else {
    job.schedule = std::get<Schedule>(request.work);
  }
  ApplyCollectivePins(request.collective_pins, &job.schedule);
  if (const auto* workload = std::get_if<Workload>(&request.work)) {
    try {
      ShareTokens(*workload->network, cluster, request.placement, &job.schedule);
    } catch (const Error& error) {
      throw Error(request.place, fmt::format("all-to-all by deepep: {}", error.what()));
    }
  }
  // What is planned here passes. Searches plan thousands of steps of fewer layers, each of which
  // stands for one that is checked when somebody runs it.
  if (!StandsForMoreLayers(request)) {
    CheckSchedule(job.schedule);
    CheckBuffers(job.schedule);
  }
  CheckSteps(job, request.place);
  if (!scenario.allow_out_of_memory)
    CheckFit(TightestFit(job.schedule, job.placement, cluster, scenario.memory.headroom_share),
             cluster, request.place);
  return job;
}

}  // namespace

std::vector<Job> Prepare(const Scenario& scenario, ProgressObserver& observer,
                         const KeptCheck& check_kept) {
  observer.Begin("planning", "", 0);
  std::vector<Job> jobs;
  for (const JobRequest& request : scenario.jobs)
    jobs.push_back(PrepareJob(scenario, request, observer, check_kept));
  return jobs;
}

Job PrepareOne(const Scenario& scenario, const char* command, ProgressObserver& observer) {
  if (scenario.lists_jobs) {
    throw Error(fmt::format("\"{}\" lists jobs; {} takes a scenario with its own step",
                            scenario.name, command));
  }
  return std::move(Prepare(scenario, observer).front());
}

}  // namespace rehearse
