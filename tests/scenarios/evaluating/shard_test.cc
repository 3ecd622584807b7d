// Parts of studies and searches, each kept separately, and the whole that they make.
#include "scenarios/evaluating/shard.h"

#include <algorithm>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "scenarios/evaluating/results_file.h"
#include "scenarios/searching/search.h"
#include "scenarios/searching/search_report.h"
#include "scenarios/sweeping/study_report.h"
#include "scenarios/sweeping/sweep.h"
#include "sim/base/error.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/scenarios/small_study.h"

namespace rehearse {
namespace shard_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(ShardTest, PartsAreDisjointTogetherAllAndAboutEquallyLarge) {
  for (const size_t count : {0u, 1u, 7u, 100u}) {
    for (const size_t of : {1u, 2u, 3u, 8u}) {
      std::vector<size_t> owners(count, 0);
      for (size_t number = 1; number <= of; ++number) {
        const std::vector<bool> own = Shard{.number = number, .of = of}.Own(count);
        const auto size = static_cast<size_t>(std::count(own.begin(), own.end(), true));
        EXPECT_GE(size, count / of);
        EXPECT_LE(size, count / of + 1);
        for (size_t i = 0; i < count; ++i) owners[i] += own[i] ? 1 : 0;
      }
      EXPECT_EQ(owners, std::vector<size_t>(count, 1));
    }
  }
}

// What an engine keeps and finds, counted.
class CountingStore : public PointStore {
 public:
  explicit CountingStore(PointStore& store) : store_(store) {}
  std::optional<Evaluation> Find(const EvaluationKey& key, const std::string& hash) override {
    return store_.Find(key, hash);
  }
  void Keep(const EvaluationKey& key, const Evaluation& evaluation) override {
    const std::lock_guard lock(mutex_);
    if (!evaluation.hash.empty()) ++simulated;  // what cannot be read is kept again
    store_.Keep(key, evaluation);
  }

  size_t simulated = 0;

 private:
  PointStore& store_;
  std::mutex mutex_;
};

class ShardedResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasSqlite()) GTEST_SKIP() << "this build has no SQLite";
    folder_ = fs::temp_directory_path() / fmt::format("rehearse-shards-{}", getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string File(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(ShardedResultsTest, MergedPartsOfASweepAreTheSweepWithoutSimulatingAgain) {
  const Study study = SmallStudy(R"("grid": [{"path": "training.batch", "values": [8, 16, 24]},
    {"path": "strategy.cached_layers", "values": [0, 2]},
    {"path": "strategy.data", "values": [1, 3]}])");
  const auto text = [&](const Sweep& sweep) {
    return ToText(study, sweep, Compare(study, sweep)) +
           ToJson(study, sweep, Compare(study, sweep)).dump();
  };
  std::vector<std::string> parts;
  size_t done = 0;
  for (size_t number = 1; number <= 3; ++number) {
    parts.push_back(File(fmt::format("{}.sqlite", number)));
    ResultsFile file(parts.back(), ResultsFile::Opening::kMakeIfMissing);
    SweepOptions options;
    options.stores = {&file};
    options.shard = {.number = number, .of = 3};
    const Sweep sweep = PlayStudy(study, options);
    EXPECT_EQ(sweep.left_out, 8u);  // of 12 each has 4
    EXPECT_EQ(sweep.interrupted, 0u);
    EXPECT_THAT(text(sweep), HasSubstr(fmt::format("4 points of 12: shard {}/3", number)));
    for (const PointOutcome& point : sweep.points) done += point.left_out ? 0 : 1;
  }
  EXPECT_EQ(done, 12u);
  MergeResults(parts, File("all.sqlite"));
  ResultsFile file(File("all.sqlite"), ResultsFile::Opening::kThere);
  CountingStore counting(file);
  SweepOptions options;
  options.stores = {&counting};
  EXPECT_EQ(text(PlayStudy(study, options)), text(PlayStudy(study, {})));
  EXPECT_EQ(counting.simulated, 0u);
}

Search SearchBy(const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
  for (const std::string& change : changes) document.Set(change);
  return ReadSearch(document);
}

TEST_F(ShardedResultsTest, MergedPartsOfASearchAreTheSearch) {
  for (const char* decide : {"simulation", "both"}) {
    const Search search = SearchBy({fmt::format("search.decide={}", decide)});
    std::vector<std::string> parts;
    size_t simulated = 0;
    for (size_t number = 1; number <= 2; ++number) {
      parts.push_back(File(fmt::format("{}{}.sqlite", decide, number)));
      ResultsFile file(parts.back(), ResultsFile::Opening::kMakeIfMissing);
      SearchRun run{.threads = 2};
      run.stores = {&file};
      run.shard = {.number = number, .of = 2};
      simulated += RunSearch(search, run).simulated;
    }
    MergeResults(parts, File("all.sqlite"));
    ResultsFile file(File("all.sqlite"), ResultsFile::Opening::kThere);
    CountingStore counting(file);
    SearchRun run{.threads = 2};
    run.stores = {&counting};
    const auto text = [&](const FoundPoints& found) {
      return ToText(search, found, {}) + ToJson(search, found, {}).dump();
    };
    const FoundPoints whole = RunSearch(search, {.threads = 2});
    EXPECT_EQ(text(RunSearch(search, run)), text(whole)) << decide;
    // With "both", the neighbours of the best are only known when all points are there.
    EXPECT_LE(simulated, whole.simulated);
    if (std::string(decide) == "simulation") {
      EXPECT_EQ(counting.simulated, 0u);
    }
  }
}

TEST(ShardTest, WhatGoesWhereSimulationsLeadCannotBeSharedOut) {
  const auto error = [](const std::vector<std::string>& changes) -> std::string {
    try {
      SearchRun run;
      run.shard = {.number = 1, .of = 2};
      RunSearch(SearchBy(changes), run);
    } catch (const Error& problem) {
      return problem.what();
    }
    return "no error";
  };
  EXPECT_THAT(error({"search.decide=simulation", "search.method=descent"}),
              HasSubstr("cannot be shared"));
  EXPECT_THAT(error({"search.decide=formula"}), HasSubstr("there are none"));
}

TEST_F(ShardedResultsTest, SweepsAndSearchesShareWhatTheySimulated) {
  ResultsFile file(File("a.sqlite"), ResultsFile::Opening::kMakeIfMissing);
  CountingStore counting(file);
  const Search search =
      SearchBy({"search.decide=simulation", "search.default_axes=false",
                R"(search.axes=[{"path": "training.batch", "values": [8, 16]}])"});
  SearchRun run;
  run.stores = {&counting};
  RunSearch(search, run);
  EXPECT_EQ(counting.simulated, 2u);
  const Study study = SmallStudy(R"("grid": [{"path": "training.batch", "values": [8, 16, 24]}])");
  SweepOptions options;
  options.stores = {&counting};
  const Sweep sweep = PlayStudy(study, options);
  EXPECT_EQ(counting.simulated, 3u);
  EXPECT_TRUE(sweep.points[0].kept);
  EXPECT_FALSE(sweep.points[2].kept);
}

}  // namespace shard_test
}  // namespace rehearse
