#include "scenarios/playing/expert_draws.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "scenarios/playing/prepare.h"
#include "sim/base/threads.h"
#include "sim/schedule/expert_routing.h"

namespace rehearse {
namespace {

// Visits the attributes of nodes that choose by them (workloads/networks/decoder_network.cc), and
// gives the scenario a network with what became of them.
template <typename Visit>
void ForEachDraw(Scenario& scenario, const Visit& visit) {
  for (JobRequest& job : scenario.jobs) {
    auto* const workload = std::get_if<Workload>(&job.work);
    if (workload == nullptr || !workload->network->draws_experts) continue;
    auto network = std::make_shared<Network>(*workload->network);
    for (NetworkNode& node : network->nodes) {
      if (node.kind == NodeKind::kRoute || node.kind == NodeKind::kDispatch ||
          node.kind == NodeKind::kCombine)
        visit(node.attributes);
    }
    workload->network = std::move(network);
  }
}

// The scenario with its seeds increased by `seed`; with 0, it has evenly busy experts.
Scenario Drawn(Scenario scenario, uint32_t seed) {
  ForEachDraw(scenario, [&](std::vector<double>& attributes) {
    if (seed == 0)
      attributes[kRoutingImbalance] = 1;
    else
      attributes[kRoutingSeed] += seed - 1;
  });
  return scenario;
}

}  // namespace

std::optional<ExpertSpread> DrawExperts(const Scenario& scenario, Seconds step, unsigned threads,
                                        ProgressObserver& observer) {
  ExpertSpread spread;
  Scenario looked_at = scenario;
  ForEachDraw(looked_at, [&](const std::vector<double>& attributes) {
    spread.imbalance = std::max(spread.imbalance, attributes[kRoutingImbalance]);
  });
  if (spread.imbalance <= 1) return std::nullopt;

  std::vector<Seconds> steps(kExpertDraws + 1, step);  // by seed; 0: even
  std::mutex mutex;                                    // for the observer
  size_t done = 0;
  std::atomic<bool> has_failed = false;
  observer.Begin("trying other busy experts", "draws", kExpertDraws);
  InParallel(kExpertDraws, threads, [&](size_t i) {
    if (has_failed) return;
    const size_t seed = i == 0 ? 0 : i + 1;
    try {
      const Scenario drawn = Drawn(scenario, static_cast<uint32_t>(seed));
      const PlayedScenario played =
          PlayJobs(drawn, Prepare(drawn), {}, nullptr, CopiedSpans::kLeftOut);
      steps[seed] = StepOf(played.schedule(), played.simulation.timeline);
      const std::lock_guard lock(mutex);
      observer.Done(static_cast<double>(++done));
    } catch (...) {  // so that the others need not begin
      has_failed = true;
      throw;
    }
  });
  spread.even = steps.front();
  for (uint32_t seed = 1; seed <= kExpertDraws; ++seed) spread.steps.push_back({seed, steps[seed]});
  std::stable_sort(spread.steps.begin(), spread.steps.end(),
                   [](const SeededStep& a, const SeededStep& b) { return a.step < b.step; });
  return spread;
}

Alike AlikeUnder(const Network& network) {
  return {.layers = !network.draws_experts, .micro_batches = !network.draws_by_micro_batch};
}

}  // namespace rehearse
