// Same input, same bits: whatever the folder, the locale, the time zone, the number of threads, how
// often it is asked, and which command plays it.
#include <clocale>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include <gtest/gtest.h>

#include "real/backends/rank_plan.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule_json.h"
#include "tests/invariants/cases.h"
#include "tests/support/execution_order.h"
#include "tests/support/fingerprint.h"
#include "tests/support/random_scenario.h"

namespace rehearse {
namespace same_bits_test {

namespace fs = std::filesystem;

// Everything that a result says, except how long playing took.
std::string Told(const std::string& text, unsigned threads = 1) {
  Scenario scenario = ReadScenario(JsonDocument::FromText(text, "random.json"));
  scenario.allow_out_of_memory = true;
  nlohmann::ordered_json json = ToJson(Rehearse(scenario, {.threads = threads}).result);
  json.erase("simulator");
  return json.dump();
}

TEST(SameBitsTest, NeitherFolderNorLocaleNorTimeZoneNorThreadsNorRepeatingMatters) {
  const fs::path before = fs::current_path();
  const Cases cases = CasesOf(2);
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const std::string text = DrawScenario(seed).text;
    SCOPED_TRACE(text);
    const std::string told = Told(text);
    ASSERT_EQ(Told(text), told) << "asked again";
    ASSERT_EQ(Told(text, 3), told) << "with three threads";
    fs::current_path("/");
    // Whichever the machine has: in most of them the decimal separator is a comma.
    for (const char* name : {"de_DE.UTF-8", "tr_TR.UTF-8", "C.UTF-8"})
      if (std::setlocale(LC_ALL, name) != nullptr) break;
    setenv("TZ", "Asia/Kathmandu", 1);
    tzset();
    const std::string elsewhere = Told(text);
    std::setlocale(LC_ALL, "C");
    unsetenv("TZ");
    tzset();
    fs::current_path(before);
    ASSERT_EQ(elsewhere, told) << "in another folder, locale and time zone";
  }
}

// What `rehearse plan` writes and `execute` runs is what `run` plays: one schedule, which is read
// back from its file unchanged and takes the same time to the picosecond.
TEST(SameBitsTest, RunPlanAndExecuteHaveOneSchedule) {
  const Cases cases = CasesOf(2);
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const RandomScenario drawn = DrawScenario(seed, {.jobs = false});
    SCOPED_TRACE(drawn.text);
    const Schedule& prepared = drawn.jobs.front().schedule;
    const std::string text = WriteSchedule(prepared, {"a step", ""});
    const JsonDocument file = JsonDocument::FromText(text, "step.schedule.json");
    const Schedule read = ReadSchedule(file.Root());
    ASSERT_EQ(FingerprintOf(read), FingerprintOf(prepared));
    Job job = drawn.jobs.front();
    job.schedule = read;
    const std::string played = HashOf(PlayScenario(drawn.scenario).simulation.timeline);
    ASSERT_EQ(HashOf(PlayJobs(drawn.scenario, {job}).simulation.timeline), played);
  }
}

// Kernels that follow each other are one task, unless somebody wants to know about each
// (Series in sim/engine/program.h).
TEST(SameBitsTest, KernelsInSeriesAndOneByOneTakeTheSameTime) {
  const Cases cases = CasesOf(2);
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const RandomScenario drawn = DrawScenario(seed);
    SCOPED_TRACE(drawn.text);
    const PlayedScenario series = PlayJobs(drawn.scenario, drawn.jobs);
    const PlayedScenario one_by_one = PlayJobs(drawn.scenario, drawn.jobs, {.record_tasks = true});
    ASSERT_EQ(HashOf(series.simulation.timeline), HashOf(one_by_one.simulation.timeline));
    ASSERT_EQ(series.simulation.stats.transfers, one_by_one.simulation.stats.transfers);
    ASSERT_LE(series.lowered.program.tasks.size(), one_by_one.lowered.program.tasks.size());
    ASSERT_TRUE(one_by_one.lowered.program.series.empty());
  }
}

// And the CPU begins the ops of that schedule in the order in which the simulator does.
TEST(SameBitsTest, ExecuteBeginsOpsAsRunDoes) {
  const Cases cases = CasesOf(20);
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const RandomScenario drawn = DrawScenario(seed, {.for_execution = true});
    SCOPED_TRACE(drawn.text);
    const Schedule& schedule = drawn.jobs.front().schedule;
    ASSERT_EQ(OrderOfStreams(schedule, Simulated(schedule, drawn.scenario)),
              OrderOfStreams(schedule, Measured(schedule, StreamUse::kThreads)));
  }
}

// And what arrays take, one op after the other, is what is reckoned from the list, to the byte.
TEST(SameBitsTest, ExecuteCountsTheMemoryThatIsPredicted) {
  const Cases cases = CasesOf(40);
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const RandomScenario drawn = DrawScenario(seed, {.for_execution = true});
    SCOPED_TRACE(drawn.text);
    const Schedule& schedule = drawn.jobs.front().schedule;
    if (!BlockingForm(schedule)) continue;
    const Execution execution = OnThreads(schedule, StreamUse::kBlocking);
    ASSERT_EQ(execution.memory.size(), schedule.ranks());
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
      const MemoryUse& counted = execution.memory[rank];
      const MemoryUse predicted = MemoryOf(schedule.roles[schedule.role_of_rank[rank]]);
      EXPECT_EQ(counted.parameters, predicted.parameters);
      EXPECT_EQ(counted.gradients, predicted.gradients);
      EXPECT_EQ(counted.optimizer, predicted.optimizer);
      EXPECT_EQ(counted.activations, predicted.activations);
      EXPECT_EQ(counted.buffers, predicted.buffers);
      EXPECT_EQ(counted.host, predicted.host);
    }
  }
}

}  // namespace same_bits_test
}  // namespace rehearse
