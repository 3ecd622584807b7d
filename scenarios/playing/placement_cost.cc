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
#include "topology/fabrics/router.h"
#include "topology/fabrics/structure.h"

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

bool SameFigures(const ClusterLink& a, const ClusterLink& b) {
  return a.bandwidth == b.bandwidth && a.efficiency == b.efficiency && a.latency == b.latency;
}

// Of machines that were drawn as one. Links between switches are as they were drawn.
bool HasEqualLinks(const Cluster& cluster, const ClusterStructure& structure) {
  const uint32_t first = structure.FirstLinkOf(0);
  const uint32_t count = structure.links_per_machine();
  const uint32_t end = structure.FirstLinkOf(structure.machines);
  for (uint32_t link = 0; link < cluster.link_count(); ++link) {
    const ClusterLink now = cluster.Link(link);
    if (link >= first && link < end) {
      if (!SameFigures(now, cluster.Link(first + (link - first) % count))) return false;
    } else {
      const LinkFigures& drawn = FiguresForRoutes(cluster, link);
      if (now.bandwidth != drawn.bandwidth || now.latency != drawn.latency) return false;
    }
  }
  return true;
}

// Devices from the beginning of a machine on, for several machines.
std::vector<std::vector<uint32_t>> FurtherOn(const Cluster& cluster, uint32_t ranks) {
  constexpr uint32_t kMostPlaces = 8;
  std::vector<uint32_t> begins;
  for (uint32_t device = 1; device + ranks <= cluster.device_count(); ++device) {
    if (cluster.NodeIndexOf(device) != cluster.NodeIndexOf(device - 1)) begins.push_back(device);
  }
  std::vector<std::vector<uint32_t>> places;
  const size_t stride = begins.size() / kMostPlaces + 1;
  for (size_t i = begins.size(); i > 0; i -= std::min(i, stride)) {
    std::vector<uint32_t>& place = places.emplace_back(ranks);
    std::iota(place.begin(), place.end(), begins[i - 1]);
  }
  return places;
}

}  // namespace

bool HasEqualMachines(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  const Perturbation& perturbation = scenario.lowering.perturbation;
  if (!perturbation.straggling.empty() || !perturbation.events.empty() ||
      perturbation.compute_jitter > 0 || perturbation.link_jitter > 0)
    return false;
  const ClusterStructure* const structure = cluster.structure().get();
  if (structure == nullptr || !structure->link_now.empty() || cluster.device_specs().size() > 1 ||
      structure->machines != cluster.node_count())
    return false;
  return HasEqualLinks(cluster, *structure);
}

bool MachinesAreAlike(const Scenario& scenario) {
  return HasEqualMachines(scenario) && !Router(*scenario.cluster, scenario.routing).IsHashed();
}

std::optional<PlacementSpread> SettlePlacement(Scenario* scenario, unsigned threads,
                                               ProgressObserver& observer) {
  JobRequest& job = scenario->jobs.front();
  if (!job.busy) return std::nullopt;
  PlacementSpread spread;
  spread.busy = job.busy->busy;
  const auto ranks = static_cast<uint32_t>(job.placement.size());
  const uint64_t count = job.busy->seed ? 0 : kPlacementSeeds;
  if (job.busy->seed) spread.seed = *job.busy->seed;
  const bool is_hashed = count > 0 && !scenario->routing.seed &&
                         Router(*scenario->cluster, scenario->routing).IsHashed();
  std::vector<std::vector<uint32_t>> placements(count);
  for (uint64_t seed = 0; seed < count; ++seed)
    placements[seed] = DrawPlacement(*job.busy, *scenario->cluster, ranks, seed);
  // Draws that leave the same devices take equally long.
  std::vector<uint64_t> others;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const auto own = placements.begin() + static_cast<ptrdiff_t>(seed);
    if (is_hashed || std::find(placements.begin(), own, placements[seed]) == own)
      others.push_back(seed);
  }
  std::vector<Seconds> steps(count);
  if (count > 0)
    observer.Begin("drawing what others leave", "draws", static_cast<double>(others.size()));
  InParallel(others.size(), threads, [&](size_t i) {
    Scenario one = PlacedAt(*scenario, 0, placements[others[i]]);
    if (is_hashed) one.routing.seed = others[i];
    steps[others[i]] = StepOfOnly(one);
  });
  for (uint64_t seed = 0; seed < count; ++seed) {
    const auto same = std::find(placements.begin(), placements.end(), placements[seed]);
    const auto played = is_hashed ? seed : static_cast<uint64_t>(same - placements.begin());
    spread.steps.push_back({seed, steps[played]});
  }
  std::stable_sort(spread.steps.begin(), spread.steps.end(),
                   [](const SeededStep& a, const SeededStep& b) { return a.step < b.step; });
  if (count > 0) {
    spread.seed = spread.steps[(count - 1) / 2].seed;
    job.placement = placements[spread.seed];
    if (is_hashed) scenario->routing.seed = spread.seed;
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
  const auto attempt = [&](const std::vector<uint32_t>& placement, const char* order) {
    if (placement.empty() || std::find(tried.begin(), tried.end(), placement) != tried.end())
      return;
    tried.push_back(placement);
    Seconds step;
    try {
      step = StepOfOnly(PlacedAt(scenario, job, placement), observer);
    } catch (const Error&) {  // such as an algorithm that needs equally many ranks in each machine
      return;
    }
    ++best.played;
    if (step < best.step) {
      best.step = step;
      best.order = order;
    }
  };
  for (const PlacementOrder order : {PlacementOrder::kBlock, PlacementOrder::kEven}) {
    const std::vector<uint32_t> placement = InOrder(order, all, cluster, ranks);
    if (placement == request.placement) best.order = NameIn(kPlacementOrders, order);
    attempt(placement, NameIn(kPlacementOrders, order));
  }
  if (!HasEqualMachines(scenario)) {
    for (const std::vector<uint32_t>& placement : FurtherOn(cluster, ranks))
      attempt(placement, "further on");
  }
  return best;
}

}  // namespace rehearse
