// A better machine is no slower if nothing is chosen anew: rings and channels are pinned.
//
// List schedules have anomalies: what begins earlier may take a link from what is more urgent. They
// are counted and shown, and may cost 0.5 % of a step.
#include <cstdio>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "tests/invariants/cases.h"
#include "tests/support/random_scenario.h"
#include "topology/files/edits.h"

namespace rehearse {
namespace monotony_test {

// The step's seconds on the scenario's machine with every link or device changed in this way.
double StepWith(const Scenario& scenario, const Edit& edit) {
  Scenario changed = scenario;
  changed.cluster = ApplyEdits(*scenario.cluster, {edit});
  return ToSeconds(PlayScenario(changed).simulation.timeline.step).value();
}

Edit OfLinks() {
  Edit edit;
  edit.selector = "**";
  return edit;
}
Edit OfDevices() {
  Edit edit = OfLinks();
  edit.target = Edit::Target::kDevices;
  return edit;
}

// How often a better machine was slower, and the worst of it.
struct Count {
  uint64_t cases = 0;
  uint64_t slower = 0;    // by more than rounding
  uint64_t too_slow = 0;  // by more than half a percent
  double worst = 0;
  uint64_t worst_case = 0;

  // `better` and `worse`: the time of the step on the better and on the worse machine.
  void Add(uint64_t seed, const std::string& scenario, double better, double worse) {
    ++cases;
    const double loss = better / worse - 1;
    if (loss > 1e-9) ++slower;
    if (loss > kMost) {
      ++too_slow;
      ADD_FAILURE() << fmt::format("case {}: {} s instead of {} s\n{}", seed, better, worse,
                                   scenario);
    }
    if (loss > worst) {
      worst = loss;
      worst_case = seed;
    }
  }
  void Show(const char* what) const {
    std::fputs(fmt::format("{}: slower in {} of {} cases, by {:.4f} % at most (case {})\n", what,
                           slower, cases, 100 * worst, worst_case)
                   .c_str(),
               stdout);
  }

  static constexpr double kMost = 0.005;
};

struct Better {
  const char* what;
  Edit edit;
  bool is_worse = false;  // the edit makes the machine worse
};

std::vector<Better> BetterMachines() {
  std::vector<Better> all = {{"less latency", OfLinks(), true},
                             {"links 1.1x", OfLinks()},
                             {"arithmetic 1.1x", OfDevices()},
                             {"memory 1.1x", OfDevices()}};
  all[0].edit.latency = Change{.factor = 1, .offset = 2e-6};
  all[1].edit.bandwidth = Change{.factor = 1.1};
  all[2].edit.compute = Change{.factor = 1.1};
  all[3].edit.memory_bandwidth = Change{.factor = 1.1};
  return all;
}

TEST(MonotonyTest, ABetterMachineIsNeverMuchSlower) {
  const std::vector<Better> machines = BetterMachines();
  std::vector<Count> counts(machines.size());
  const Cases cases = CasesOf();
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const RandomScenario drawn = DrawScenario(seed, {.edits = false, .pinned = true});
    const double before =
        ToSeconds(PlayJobs(drawn.scenario, drawn.jobs).simulation.timeline.step).value();
    for (size_t i = 0; i < machines.size(); ++i) {
      SCOPED_TRACE(machines[i].what);
      const double changed = StepWith(drawn.scenario, machines[i].edit);
      if (machines[i].is_worse)
        counts[i].Add(seed, drawn.text, before, changed);
      else
        counts[i].Add(seed, drawn.text, changed, before);
    }
  }
  for (size_t i = 0; i < machines.size(); ++i) counts[i].Show(machines[i].what);
}

}  // namespace monotony_test
}  // namespace rehearse
