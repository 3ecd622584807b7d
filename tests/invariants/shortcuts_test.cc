// What is not played comes to the same as if it were: with every shortcut, without each of them,
// and without any, to the bit.
#include <gtest/gtest.h>

#include "scenarios/playing/few_layers.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/schedule/repeats.h"
#include "tests/invariants/cases.h"
#include "tests/support/random_scenario.h"

namespace rehearse {
namespace shortcuts_test {

// Which ways of not playing everything are taken (folding, which is not to the bit, has a test of
// its own).
struct Shortcuts {
  bool repeats = true;  // equal micro-batches are kept once
  bool copies = true;   // few of them are played
  bool series = true;   // kernels that follow each other are one task
  bool jumps = true;    // steady states of transfers are jumped over
};

std::string HashWith(const Shortcuts& shortcuts, const RandomScenario& drawn,
                     GroupMemory* memory = nullptr) {
  std::vector<Job> jobs = drawn.jobs;
  if (!shortcuts.repeats)
    for (Job& job : jobs) job.schedule = Expanded(job.schedule);
  const SimulationOptions options{.record_tasks = !shortcuts.series, .jump = shortcuts.jumps};
  const CopiedSpans copied =
      shortcuts.copies ? CopiedSpans::kWrittenOut : CopiedSpans::kAllArePlayed;
  return HashOf(
      PlayJobs(drawn.scenario, std::move(jobs), options, memory, copied).simulation.timeline);
}

std::string Told(const Result& result) {
  nlohmann::ordered_json json = ToJson(result);
  json.erase("simulator");
  return json.dump();
}

TEST(ShortcutsTest, EachComesToTheSameAsPlayingEverything) {
  const Cases cases = CasesOf(5);
  uint32_t with_few_layers = 0;
  uint32_t with_few_copies = 0;
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const RandomScenario drawn = DrawScenario(seed, {.long_steps = true});
    SCOPED_TRACE(drawn.text);
    const std::string hash = HashWith({}, drawn);
    ASSERT_EQ(HashWith({.repeats = false}, drawn), hash);
    ASSERT_EQ(HashWith({.copies = false}, drawn), hash);
    ASSERT_EQ(HashWith({.series = false}, drawn), hash);
    ASSERT_EQ(HashWith({.jumps = false}, drawn), hash);
    ASSERT_EQ(HashWith({false, false, false, false}, drawn), hash);

    // What is known of groups from before.
    const LowerOptions& lowering = drawn.scenario.lowering;
    GroupMemory memory(drawn.scenario.cluster, drawn.scenario.routing, lowering.nccl);
    for (uint32_t time = 0; time < 2 && memory.IsUsable(); ++time)
      ASSERT_EQ(HashWith({}, drawn, &memory), hash) << "time " << time;

    // Without the spans of what is not played, and with few of its layers.
    const std::string told = Told(Rehearse(drawn.scenario, {.threads = 1}).result);
    ASSERT_EQ(Told(Rehearse(drawn.scenario, {.threads = 1, .spans = false}).result), told);
    const PlayedScenario played = PlayJobs(drawn.scenario, drawn.jobs);
    with_few_copies += played.simulation.recurrence ? 1 : 0;
    if (const std::optional<Result> few = RehearseFewLayers(drawn.scenario)) {
      ++with_few_layers;
      ASSERT_EQ(Told(*few), told);
    }
  }
  // Or else nothing has been tried. Of a few cases, none may be suitable.
  const uint64_t count = cases.end - cases.first;
  if (count < 40) return;
  EXPECT_GE(20 * with_few_layers, count);
  EXPECT_GE(20 * with_few_copies, count);
}

}  // namespace shortcuts_test
}  // namespace rehearse
