// What holds for every step, whatever the machine, the strategy and the fidelity.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "scenarios/playing/group_memories.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/report/kept_ranks.h"
#include "tests/invariants/cases.h"
#include "tests/support/random_scenario.h"

namespace rehearse {
namespace step_invariants_test {

// Tries `hold` on every case; the first that fails is shown with its scenario, and ends the test.
template <typename Hold>
void ForEachCase(const Cases& cases, const RandomScenarioLimits& limits, Hold hold) {
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const RandomScenario drawn = DrawScenario(seed, limits);
    SCOPED_TRACE("case " + std::to_string(seed) + "\n" + drawn.text);
    hold(drawn);
    if (::testing::Test::HasFailure()) return;
  }
}

std::vector<const Result*> ResultsOf(const Rehearsal& played) {
  if (!played.jobs) return {&played.result};
  std::vector<const Result*> results;
  for (const JobResult& job : played.jobs->jobs) results.push_back(&job.result);
  return results;
}

void ExpectThatTimesAddUp(const Result& result) {
  const double step = result.step.value();
  const auto sum = [](const Breakdown& parts) {
    return (parts.compute + parts.exposed_communication + parts.idle).value();
  };
  EXPECT_NEAR(sum(result.breakdown), step, 1e-9 * step);
  for (const RoleUse& role : result.roles) EXPECT_NEAR(sum(role.breakdown), step, 1e-9 * step);
  double exposed = 0;
  for (const AxisUse& axis : result.axes) exposed += axis.exposed.value();
  EXPECT_NEAR(exposed, result.breakdown.exposed_communication.value(), 1e-9 * step);
}

void ExpectThatNoDeviceDoesMoreThan(double most, const Result& result) {
  EXPECT_LE(result.hardware_flops_utilization, most);
  EXPECT_LE(result.model_flops_utilization, result.hardware_flops_utilization * (1 + 1e-12));
  EXPECT_GT(result.model_flops_utilization, 0);
}

void ExpectThatNoLinkCarriesMoreThanItCan(const Timeline& timeline) {
  for (const LinkRecord& link : timeline.links) {
    for (const auto& load : link.loads)
      ASSERT_LE(load.bytes_per_second, link.capacity.value() * (1 + 1e-9));
    // The end of each transfer is rounded to a picosecond.
    const double most = link.capacity.value() * ToSeconds(timeline.step).value();
    ASSERT_LE(link.bytes.value(), most * (1 + 1e-6));
  }
}

// Every span of every rank, within 1e-9 of the step or a few ticks of the clock.
void ExpectThatFoldingChangesNothing(const Timeline& kept, const Timeline& unfolded) {
  const Timeline folded = Unfolded(kept);
  const int64_t tolerance = unfolded.step.picoseconds() / 1'000'000'000 + 100;
  const auto near = [&](Time a, Time b) { return std::abs((a - b).picoseconds()) <= tolerance; };
  ASSERT_TRUE(near(folded.step, unfolded.step));
  ASSERT_EQ(folded.spans.size(), unfolded.spans.size());
  for (size_t i = 0; i < folded.spans.size(); ++i) {
    const Span& a = folded.spans[i];
    const Span& b = unfolded.spans[i];
    ASSERT_TRUE(a.rank == b.rank && a.op == b.op);
    ASSERT_TRUE(near(a.ready, b.ready) && near(a.begin, b.begin) && near(a.end, b.end))
        << "rank " << a.rank << ", op " << a.op;
  }
}

// A case is drawn, planned and played once for all of these: planning it and finding its rings
// takes as long as everything else. Loads of links are recorded in turn in the folded and in the
// unfolded step, since a step whose loads are recorded is always played with all micro-batches
// (scenarios/playing/few_copies.h).
TEST(StepInvariantsTest, TimesAddUpNothingExceedsItsPeakAndFoldingChangesNothing) {
  GroupMemories memories;
  uint64_t number = 0;
  ForEachCase(CasesOf(), {}, [&](const RandomScenario& drawn) {
    const Scenario& scenario = drawn.scenario;
    const bool of_folded = ++number % 2 == 0;
    Scenario whole = scenario;
    whole.lowering.fold = false;
    const GroupMemories::Taken memory(memories, scenario);
    const PlayedScenario folded =
        PlayJobs(scenario, drawn.jobs, {.record_link_loads = of_folded}, memory.get());
    const PlayedScenario unfolded =
        PlayJobs(whole, drawn.jobs, {.record_link_loads = !of_folded}, memory.get());
    std::vector<Result> results;
    if (scenario.lists_jobs) {
      const Rehearsal played = Rehearse(scenario, {.hash = false});
      for (const JobResult& job : played.jobs->jobs) results.push_back(job.result);
    } else {
      results = {Describe(scenario, folded, OwnPart(scenario, folded), {.hash = false})};
    }
    const bool is_edited = drawn.text.find("\"edits\"") != std::string::npos;
    for (const Result& result : results) {
      ExpectThatTimesAddUp(result);
      ExpectThatNoDeviceDoesMoreThan(is_edited ? kMostOfPeak : 1, result);
    }
    ExpectThatNoLinkCarriesMoreThanItCan(folded.simulation.timeline);
    ExpectThatNoLinkCarriesMoreThanItCan(unfolded.simulation.timeline);
    ExpectThatFoldingChangesNothing(folded.simulation.timeline, unfolded.simulation.timeline);
  });
}

TEST(StepInvariantsTest, BytesOfEveryAxisAreEqualAtAllFidelities) {
  ForEachCase(CasesOf(2), {}, [](const RandomScenario& drawn) {
    std::map<std::string, std::pair<double, double>> first;  // operations, bytes
    for (const Fidelity fidelity : {Fidelity::kFluid, Fidelity::kFormula, Fidelity::kStep}) {
      Scenario changed = drawn.scenario;
      changed.lowering.fidelity = fidelity;
      std::map<std::string, std::pair<double, double>> axes;
      const Rehearsal played = Rehearse(changed);
      size_t job = 0;
      for (const Result* result : ResultsOf(played)) {
        for (const AxisUse& axis : result->axes)
          axes[std::to_string(job) + axis.name] = {axis.operations, axis.bytes.value()};
        ++job;
      }
      if (first.empty()) first = axes;
      ASSERT_EQ(axes, first);
    }
  });
}

}  // namespace step_invariants_test
}  // namespace rehearse
