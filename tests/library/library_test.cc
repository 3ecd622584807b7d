// The library as its user meets it: linked to librehearse.so and nothing else of ours.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>

#include "tests/support/places.h"

namespace {

using ::testing::HasSubstr;

std::string Shipped(const std::string& name) {
  return rehearse::SourceDir() + "/scenarios/" + name + ".json";
}

// What a command prints.
std::string Printed(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  char block[4096];
  for (size_t count = 0; (count = fread(block, 1, sizeof block, pipe.get())) > 0;)
    text.append(block, count);
  return text;
}

// Without its last line, which says how long the simulation took.
std::string WithoutCost(const std::string& text) {
  return text.substr(0, text.find("Simulated in"));
}

TEST(LibraryTest, SimulatesWhatRunPrints) {
  const auto run = rehearse::Simulate(rehearse::Scenario::FromFile(Shipped("strategy-megatron")));
  const std::string command =
      "'" + rehearse::ProgramPath() + "' run '" + Shipped("strategy-megatron") + "'";
  EXPECT_EQ(WithoutCost(run.Text()), WithoutCost(Printed(command)));
  EXPECT_THAT(run.Json(), HasSubstr("\"schema\": \"rehearse.result.v1\""));
  EXPECT_THAT(run.Json(), HasSubstr(run.hash()));
  EXPECT_EQ(run.hash().size(), 16u);

  int64_t last = 0;
  for (const rehearse::Span& span : run.spans()) {
    ASSERT_LT(span.op, run.ops().size());
    EXPECT_LE(span.ready, span.begin);
    EXPECT_LE(span.begin, span.end);
    EXPECT_EQ(run.representative_of(span.rank), span.rank);
    last = std::max(last, span.end);
  }
  EXPECT_DOUBLE_EQ(run.step_seconds(), static_cast<double>(last) * 1e-12);
  double busiest = 0;
  for (const rehearse::Link& link : run.links()) busiest = std::max(busiest, link.utilization);
  EXPECT_GT(busiest, 0);
  EXPECT_LE(busiest, 1.000001);
  EXPECT_THROW((void)run.representative_of(run.ranks()), rehearse::Error);
}

// With what all steps of a run take and cost.
TEST(LibraryTest, WeeksAndCostsAreThoseThatRunPrints) {
  const std::vector<std::string> changes = {
      R"(run={"tokens": "1T", "checkpoint": {"storage_bandwidth": "10GBps"}, "seeds": 5})",
      R"(costs={"gpu_hour": "2USD/h"})"};
  const auto run =
      rehearse::Simulate(rehearse::Scenario::FromFile(Shipped("strategy-megatron")).With(changes));
  std::string command =
      "'" + rehearse::ProgramPath() + "' run '" + Shipped("strategy-megatron") + "'";
  for (const std::string& change : changes) command += " --set '" + change + "'";
  const auto weeks = [](const std::string& text) {
    return text.substr(text.find("\nWeeks of it"));
  };
  EXPECT_EQ(weeks(run.Text()), weeks(Printed(command)));
  EXPECT_THAT(run.Json(), HasSubstr("\"run\": {"));
  EXPECT_THAT(run.Json(), HasSubstr("\"costs\": {"));
}

TEST(LibraryTest, WithoutFoldingEveryRankHasItsOwnSpans) {
  const auto scenario = rehearse::Scenario::FromFile(Shipped("strategy-data-parallel"));
  const auto folded = rehearse::Simulate(scenario);
  rehearse::RunOptions options;
  options.fold = false;
  const auto all = rehearse::Simulate(scenario, options);
  EXPECT_EQ(folded.hash(), all.hash());
  EXPECT_LT(folded.spans().size(), all.spans().size());
  for (uint32_t rank = 0; rank < all.ranks(); ++rank) EXPECT_EQ(all.representative_of(rank), rank);
}

TEST(LibraryTest, ChangesMakeAnotherScenario) {
  const auto scenario = rehearse::Scenario::FromFile(Shipped("strategy-megatron"));
  const auto changed = scenario.With({"name=other", "training.batch=64"});
  EXPECT_EQ(changed.name(), "other");
  EXPECT_EQ(changed.ranks(), scenario.ranks());
  EXPECT_NE(scenario.name(), "other");
  EXPECT_THAT(changed.Json(), HasSubstr("\"batch\": 64"));
  EXPECT_GT(rehearse::Simulate(changed).step_seconds(),
            rehearse::Simulate(scenario).step_seconds());
}

TEST(LibraryTest, APlannedScheduleIsPlayedToTheSameTimeline) {
  const auto scenario = rehearse::Scenario::FromFile(Shipped("cpu-4d"));
  const auto schedule =
      rehearse::Scenario::FromSchedule(rehearse::Plan(scenario), "switch:devices=4", "planned");
  EXPECT_EQ(schedule.ranks(), 4u);
  EXPECT_EQ(rehearse::Simulate(schedule).hash(),
            rehearse::Simulate(scenario.With({"cluster=switch:devices=4"})).hash());
}

TEST(LibraryTest, MistakesSayWhereTheyAre) {
  const auto scenario =
      rehearse::Scenario::FromFile(Shipped("strategy-megatron")).With({"training.batch=-1"});
  try {
    rehearse::Simulate(scenario);
    FAIL() << "a batch of -1 was taken";
  } catch (const rehearse::Error& error) {
    EXPECT_EQ(error.pointer(), "/training/batch");
    EXPECT_EQ(error.file(), "With()");
    EXPECT_THAT(error.what(), HasSubstr("/training/batch"));
  }
  try {
    rehearse::Scenario::FromText("{\n \"name\": }", "mine");
    FAIL() << "half an object was taken";
  } catch (const rehearse::Error& error) {
    EXPECT_EQ(error.file(), "mine");
    EXPECT_EQ(error.line(), 2);
  }
  EXPECT_THROW(rehearse::Scenario::FromFile("/nowhere.json"), rehearse::Error);
  EXPECT_THROW(rehearse::Scenario::FromSchedule("{}", ""), rehearse::Error);
}

TEST(LibraryTest, SearchesAndSweepsAreTables) {
  const auto found = rehearse::Search(rehearse::Scenario::FromFile(Shipped("strategy-megatron")));
  const rehearse::Column* const steps = found.table().Find("step_seconds");
  ASSERT_NE(steps, nullptr);
  EXPECT_EQ(steps->numbers.size(), found.table().rows);
  EXPECT_THAT(found.Json(), HasSubstr("rehearse.search.v1"));
  EXPECT_EQ(found.table().Find("no such column"), nullptr);

  const auto study = rehearse::Scenario::FromText(
      R"({"name": "batches", "metric": "step_seconds", "base": "strategy-megatron.json",
          "grid": [{"path": "training.batch", "values": [16, 32, 48]}]})",
      Shipped("study"));
  const auto swept = rehearse::Sweep(study);
  EXPECT_EQ(swept.table().rows, 3u);
  const rehearse::Column* const batch = swept.table().Find("training.batch");
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->numbers, (std::vector<double>{16, 32, 48}));
}

TEST(LibraryTest, ProgressCanStopTheWork) {
  rehearse::RunOptions options;
  std::atomic<int> calls{0};
  options.progress = [&](std::string_view what, double fraction) {
    EXPECT_FALSE(what.empty());
    EXPECT_LE(fraction, 1.000001);
    return ++calls < 2;
  };
  const auto scenario = rehearse::Scenario::FromFile(Shipped("strategy-megatron"));
  EXPECT_THROW(rehearse::Search(scenario, options), rehearse::Stopped);
  EXPECT_EQ(calls, 2);
}

TEST(LibraryTest, ThreadsShareAScenario) {
  const auto scenario = rehearse::Scenario::FromFile(Shipped("strategy-megatron"));
  std::vector<std::string> hashes(4);
  std::vector<std::thread> threads;
  threads.reserve(hashes.size());
  for (std::string& hash : hashes)
    threads.emplace_back([&] { hash = rehearse::Simulate(scenario).hash(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& hash : hashes) EXPECT_EQ(hash, hashes.front());
}

}  // namespace
