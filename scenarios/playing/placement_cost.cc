#include "scenarios/playing/placement_cost.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/threads.h"
#include "sim/report/job_part.h"

namespace rehearse {
namespace {

// The step of the only job of a scenario.
Seconds StepOfOnly(const Scenario& scenario, ProgressObserver& observer = NoObserver()) {
  const PlayedScenario played =
      PlayJobs(scenario, Prepare(scenario, observer), {}, nullptr,
               scenario.lists_jobs ? CopiedSpans::kWrittenOut : CopiedSpans::kLeftOut);
  if (!scenario.lists_jobs) return StepOf(played.schedule(), played.simulation.timeline);
  const Job& job = played.jobs.front();
  const std::vector<Seconds> steps = CutOut(job, played.simulation.timeline).steps;
  return std::accumulate(steps.begin(), steps.end(), Seconds()) / static_cast<double>(job.repeat);
}

Scenario PlacedAt(const Scenario& scenario, size_t job, std::vector<uint32_t> placement) {
  Scenario alone = scenario;
  alone.jobs = {scenario.jobs[job]};
  alone.jobs.front().placement = std::move(placement);
  alone.jobs.front().start = {};
  return alone;
}

}  // namespace

std::optional<PlacementSpread> SettlePlacement(Scenario* scenario, unsigned threads,
                                               ProgressObserver& observer) {
  JobRequest& job = scenario->jobs.front();
  if (!job.busy) return std::nullopt;
  PlacementSpread spread;
  spread.busy = job.busy->busy;
  const auto ranks = static_cast<uint32_t>(job.placement.size());
  const uint64_t count = job.busy->seed ? 0 : kPlacementSeeds;
  if (job.busy->seed) spread.seed = *job.busy->seed;
  std::vector<std::vector<uint32_t>> placements(count);
  for (uint64_t seed = 0; seed < count; ++seed)
    placements[seed] = DrawPlacement(*job.busy, *scenario->cluster, ranks, seed);
  // Draws that leave the same devices take equally long.
  std::vector<uint64_t> others;
  for (uint64_t seed = 0; seed < count; ++seed) {
    if (std::find(placements.begin(), placements.begin() + static_cast<ptrdiff_t>(seed),
                  placements[seed]) == placements.begin() + static_cast<ptrdiff_t>(seed))
      others.push_back(seed);
  }
  std::vector<Seconds> steps(count);
  if (count > 0)
    observer.Begin("drawing what others leave", "draws", static_cast<double>(others.size()));
  InParallel(others.size(), threads, [&](size_t i) {
    steps[others[i]] = StepOfOnly(PlacedAt(*scenario, 0, placements[others[i]]));
  });
  for (uint64_t seed = 0; seed < count; ++seed) {
    const auto same = std::find(placements.begin(), placements.end(), placements[seed]);
    spread.steps.push_back({seed, steps[static_cast<size_t>(same - placements.begin())]});
  }
  std::stable_sort(spread.steps.begin(), spread.steps.end(),
                   [](const SeededStep& a, const SeededStep& b) { return a.step < b.step; });
  if (count > 0) {
    spread.seed = spread.steps[(count - 1) / 2].seed;
    job.placement = placements[spread.seed];
  }
  return spread;
}

BestPlacement FindBestPlacement(const Scenario& scenario, size_t job, Seconds own,
                                ProgressObserver& observer) {
  const Cluster& cluster = *scenario.cluster;
  const JobRequest& request = scenario.jobs[job];
  const auto ranks = static_cast<uint32_t>(request.placement.size());
  std::vector<uint32_t> all(cluster.device_count());
  std::iota(all.begin(), all.end(), 0u);
  BestPlacement best = {own, "as placed"};
  std::vector<std::vector<uint32_t>> tried = {request.placement};
  for (const PlacementOrder order : {PlacementOrder::kBlock, PlacementOrder::kEven}) {
    std::vector<uint32_t> placement = InOrder(order, all, cluster, ranks);
    if (placement == request.placement) best.order = NameIn(kPlacementOrders, order);
    if (placement.empty() || std::find(tried.begin(), tried.end(), placement) != tried.end())
      continue;
    const Seconds step = StepOfOnly(PlacedAt(scenario, job, placement), observer);
    if (step < best.step) best = {step, NameIn(kPlacementOrders, order)};
    tried.push_back(std::move(placement));
  }
  return best;
}

}  // namespace rehearse
