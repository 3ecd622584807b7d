#include "scenarios/playing/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/backends/schedule_hash.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace prepare_test {

using ::testing::HasSubstr;

// What rehearse execute does first.
std::string ErrorOfExecute(const std::vector<std::string>& changes) {
  try {
    PrepareOne(testing::ReadSmall(changes), "rehearse execute");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(PrepareTest, WhatRunRefusesExecuteRefusesWithTheSameWords) {
  const std::vector<std::vector<std::string>> refused = {
      {"simulator.algorithm=bruck"},
      {R"(simulator.collectives=[{"axis": "dpeth", "algorithm": "tree"}])"},
      {R"(simulator.collectives=[{"kind": "all-gather", "algorithm": "tree"}])"},
      {"strategy.column=3"},
      {"training.batch=7"},
      {R"(model={"layers": 64, "hidden": 16384, "heads": 16, "vocabulary": 4096})"},  // memory
  };
  for (const auto& changes : refused) {
    const std::string error = testing::ErrorOf(changes);
    EXPECT_NE(error, "no error") << changes[0];
    EXPECT_EQ(ErrorOfExecute(changes), error);
  }
}

TEST(PrepareTest, RunAndExecutePlayTheSameSchedule) {
  std::string last;
  for (const std::vector<std::string>& changes : std::vector<std::vector<std::string>>{
           {},
           {"training.tuned_kernels=true"},
           {"simulator.protocol=none"},
           {R"(simulator.collectives=[{"axis": "depth", "algorithm": "ring"}])"}}) {
    const std::string run = HashOf(testing::Play(changes).schedule);
    EXPECT_EQ(HashOf(PrepareOne(testing::ReadSmall(changes), "rehearse execute").schedule), run);
    EXPECT_NE(run, last) << ::testing::PrintToString(changes);
    last = run;
  }
}

struct PlanListener : ProgressObserver {
  void Begin(std::string_view what, std::string_view parts, uint64_t all) override {
    began.push_back(std::string(what) + " " + std::string(parts));
    wanted = all;
  }
  void Done(double parts) override { done.push_back(parts); }

  std::vector<std::string> began;
  uint64_t wanted = 0;
  std::vector<double> done;
};

TEST(PrepareTest, PlanningTellsOfEachRankOfAPipeline) {
  PlanListener observer;
  PrepareOne(testing::ReadSmall({"strategy.depth=1", "strategy.cached_layers=0",
                                 "training.micro_batches=2",
                                 R"(pipeline={"stages": 2, "schedule": "1f1b"})"}),
             "this", observer);
  EXPECT_EQ(observer.began.back(), "planning ranks of the pipeline");
  EXPECT_EQ(observer.wanted, 2u);
  EXPECT_EQ(observer.done, (std::vector<double>{1, 2}));
}

// Tuning changes how products are timed, not the layout of their operands.
TEST(PrepareTest, TunedProductsAreExecutedAsTheirOperandsLie) {
  const Schedule plain = PrepareOne(testing::ReadSmall(), "this").schedule;
  const Schedule tuned =
      PrepareOne(testing::ReadSmall({"training.tuned_kernels=true"}), "this").schedule;
  ASSERT_EQ(plain.roles[0].ops.size(), tuned.roles[0].ops.size());
  size_t changed = 0;
  for (size_t i = 0; i < plain.roles[0].ops.size(); ++i) {
    const auto* before = std::get_if<Compute>(&plain.roles[0].ops[i].work);
    const auto* after = std::get_if<Compute>(&tuned.roles[0].ops[i].work);
    if (before == nullptr || before->kind != ComputeKind::kGemm) continue;
    EXPECT_EQ(before->gemm.mode, after->gemm.mode);
    changed += after->tuned ? 1 : 0;
  }
  EXPECT_GT(changed, 0u);
}

TEST(PrepareTest, AScenarioThatListsJobsIsNotOneStep) {
  const Scenario scenario = ReadScenario(JsonDocument::FromText(
      R"({"name": "two", "cluster": "perlmutter:nodes=2", "jobs": [{"placement": "block", "scenario": )" +
          std::string(testing::kSmall) + "}]}",
      "two.json"));
  EXPECT_EQ(Prepare(scenario).size(), 1u);
  try {
    PrepareOne(scenario, "rehearse execute");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"two\" lists jobs; rehearse execute takes"));
  }
}

// 10,000 layers of 11 values each, and 5 outside of them, are counted before any op is made of
// them, and so are 10,000 steps of 1,000 ops.
TEST(PrepareTest, WhatIsTooLargeIsToldBeforeItIsMade) {
  EXPECT_THAT(testing::ErrorOf(
                  {R"(model={"layers": 10000, "hidden": 1024, "heads": 16, "vocabulary": 4096})"}),
              HasSubstr("/strategy: the step is too large to be planned: found 110005"));
  std::string ops;
  for (int i = 0; i < 1000; ++i) ops += R"({"name": "op", "duration": "1us"},)";
  ops.pop_back();
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      Rehearse(ReadScenario(JsonDocument::FromText(text, "jobs.json")));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto job = [&](const std::string& more, const std::string& ops_of_role,
                       const std::string& repeats) {
    return R"({"name": "j", "cluster": "switch:devices=2", "jobs": [{"name": "a", )" + more +
           R"("placement": [0, 1], "schedule": {"schema": "rehearse.schedule.v1", "ranks": 2,
              "communicators": [], "ops": [)" +
           ops_of_role + "]" + repeats + "}}]}";
  };
  EXPECT_THAT(
      error_of(job(R"("repeat": 10000, )", ops, "")),
      HasSubstr("job \"a\": found 10000000 ops of all roles in 10000 steps, expected at most"));
  EXPECT_THAT(error_of(job("", ops, R"(, "repeats": [{"begin": 0, "end": 1000, "times": 200000,
                                                     "first_buffer": 0, "end_buffer": 0}])")),
              HasSubstr("jobs.json: the step is too large to be played: found 200001000 ops"));
}

}  // namespace prepare_test
}  // namespace rehearse
