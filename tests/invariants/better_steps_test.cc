// Whole steps on better machines, with algorithms, protocols and channels left to NCCL and RCCL,
// and with what kernels and communication cost each other (monotony_test.cc pins both).
//
// Libraries are not told of latencies, nor of how fast devices compute: they choose the same, and
// each collective and each kernel alone is no slower. So is the step, but for the order in which
// transfers come to share links, and for which kernels they run beside: half a percent is left to
// these. On faster links they may choose anew, by what they expect and not by what it takes
// (hand_written_test.cc); where they choose the same, the step is no slower either.
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "tests/invariants/cases.h"
#include "tests/support/random_scenario.h"
#include "topology/files/edits.h"

namespace rehearse {
namespace better_steps_test {

constexpr double kMost = 0.005;

// How long it took, and what libraries chose.
struct Step {
  explicit Step(const Scenario& scenario) {
    PlayedScenario played = PlayScenario(scenario);
    seconds = ToSeconds(played.simulation.timeline.step).value();
    chosen = std::move(played.lowered.chosen);
    for (ChosenCollective& collective : chosen) collective.channels = 0;  // as many as links carry
  }

  double seconds = 0;
  std::vector<ChosenCollective> chosen;
};

bool HasLinks(const Cluster& cluster, LinkKind kind) {
  for (uint32_t link = 0; link < cluster.link_count(); ++link)
    if (cluster.KindOf(link) == kind && cluster.Link(link).Capacity().value() > 0) return true;
  return false;
}

struct Machine {
  const char* what;
  Edit edit;
  bool is_worse = false;
};

std::vector<Machine> OtherMachines() {
  Edit links;
  links.selector = "**";
  Edit devices = links;
  devices.target = Edit::Target::kDevices;
  std::vector<Machine> all = {{"1 ns more latency", links, true},
                              {"2 us more latency", links, true},
                              {"arithmetic 1.1x", devices},
                              {"memory 1.1x", devices},
                              {"links 1.1x", links},
                              {"NVLinks 2x", links}};
  all[0].edit.latency = Change{.factor = 1, .offset = 1e-9};
  all[1].edit.latency = Change{.factor = 1, .offset = 2e-6};
  all[2].edit.compute = Change{.factor = 1.1};
  all[3].edit.memory_bandwidth = Change{.factor = 1.1};
  all[4].edit.bandwidth = Change{.factor = 1.1};
  all[5].edit.bandwidth = Change{.factor = 2};
  all[5].edit.kind = LinkKind::kNvLink;
  return all;
}

TEST(BetterStepsTest, AreNotSlowerWhateverLibrariesChooseAndKernelsCost) {
  const std::vector<Machine> machines = OtherMachines();
  const Cases cases = CasesOf(4);
  double worst = 0;
  uint64_t chosen_anew = 0;
  uint64_t slower_by_choice = 0;
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const RandomScenario drawn = DrawScenario(seed, {.jobs = false, .edits = false});
    const Step before(drawn.scenario);
    for (const Machine& machine : machines) {
      if (machine.edit.kind && !HasLinks(*drawn.scenario.cluster, *machine.edit.kind)) continue;
      Scenario changed = drawn.scenario;
      changed.cluster = ApplyEdits(*drawn.scenario.cluster, {machine.edit});
      const Step after(changed);
      const double loss = machine.is_worse ? before.seconds / after.seconds - 1
                                           : after.seconds / before.seconds - 1;
      if (machine.edit.bandwidth && after.chosen != before.chosen) {
        ++chosen_anew;
        slower_by_choice += loss > kMost;
        continue;
      }
      worst = std::max(worst, loss);
      EXPECT_LE(loss, kMost) << "case " << seed << ", " << machine.what << "\n" << drawn.text;
    }
  }
  std::fputs(fmt::format("at most {:.4f} % slower; on faster links, {} steps chose anew, and "
                         "{} of them were slower by more\n",
                         100 * worst, chosen_anew, slower_by_choice)
                 .c_str(),
             stdout);
}

}  // namespace better_steps_test
}  // namespace rehearse
