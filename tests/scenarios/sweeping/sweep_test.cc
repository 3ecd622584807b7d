#include "scenarios/sweeping/sweep.h"

#include <atomic>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/scenario.h"
#include "scenarios/sweeping/study_report.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/version.h"
#include "tests/scenarios/small_study.h"
#include "tests/support/places.h"

namespace rehearse {
namespace sweep_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

double StepOf(const std::vector<std::string>& changes = {}) {
  JsonDocument document = JsonDocument::FromText(kSmallBase, "small.json");
  for (const std::string& change : changes) document.Set(change);
  return Rehearse(ReadScenario(document)).result.step.value();
}

class SweepTest : public ::testing::Test {
 protected:
  SweepTest()
      : folder_(fs::temp_directory_path() / ("rehearse-sweep-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~SweepTest() override { fs::remove_all(folder_); }

  SweepOptions Keeping() const {
    SweepOptions options;
    options.folder = folder_.string();
    return options;
  }

  fs::path folder_;
};

constexpr const char* kBatches = R"("grid": [{"path": "training.batch", "values": [8, 16, 24, 32]},
                                             {"path": "strategy.cached_layers", "values": [0, 2]}])";

TEST_F(SweepTest, WhatAMetricIsLessIsPlayedToo) {
  // Each rank holds an eighth of the matrices: 8 layers of 12·h² parameters of 2 bytes; vectors add
  // less than 1 %.
  const Study study = EightLayersStudy();
  for (const bool kept : {false, true}) {
    const Sweep sweep = PlayStudy(study, Keeping());
    EXPECT_EQ(sweep.points[0].kept, kept);
    const std::optional<double> value = study.metric.Of(sweep.points[0].result);
    ASSERT_TRUE(value.has_value());
    EXPECT_NEAR(*value / (8 * 12.0 * 1024 * 1024 * 2 / 8), 1, 0.01);
  }
}

TEST_F(SweepTest, APointIsTheScenarioPlayedByItself) {
  const Sweep sweep = PlayStudy(SmallStudy(kBatches), {});
  ASSERT_EQ(sweep.points.size(), 8u);
  EXPECT_EQ(sweep.points[3].result["step_seconds"],
            StepOf({"training.batch=16", "strategy.cached_layers=2"}));
}

TEST_F(SweepTest, ThreadsDoNotChangeWhatComesOut) {
  const Study study = SmallStudy(kBatches);
  SweepOptions one;
  one.threads = 1;
  SweepOptions many;
  many.threads = 7;
  const auto text = [&](const SweepOptions& options) {
    const Sweep sweep = PlayStudy(study, options);
    return ToJson(study, sweep, Compare(study, sweep)).dump();
  };
  EXPECT_EQ(text(one), text(many));
}

TEST_F(SweepTest, FinishedPointsAreNotPlayedAgain) {
  const Study study = SmallStudy(kBatches);
  const Sweep first = PlayStudy(study, Keeping());
  fs::remove(folder_ / "batch=16~cached_layers=0.json");
  std::ofstream(folder_ / "batch=24~cached_layers=0.json") << "{\"half of a fi";
  std::vector<std::string> said;
  SweepOptions options = Keeping();
  options.warn = [&](const std::string& message) { said.push_back(message); };
  const Sweep second = PlayStudy(study, options);
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("batch=24~cached_layers=0.json"),
                                      HasSubstr("simulated again"))));
  size_t kept = 0;
  for (size_t i = 0; i < 8; ++i) {
    kept += second.points[i].kept ? 1 : 0;
    EXPECT_EQ(first.points[i].result["timeline_hash"], second.points[i].result["timeline_hash"]);
  }
  EXPECT_EQ(kept, 6u);  // of 8, one was lost and one is broken
  SweepOptions again = Keeping();
  again.again = true;
  EXPECT_FALSE(PlayStudy(study, again).points[0].kept);
}

TEST_F(SweepTest, AChangedScenarioIsPlayedAgain) {
  PlayStudy(SmallStudy(kBatches), Keeping());
  Study longer = SmallStudy(kBatches);
  ChangeAllPoints(longer, "training.sequence=512");
  const Sweep sweep = PlayStudy(longer, Keeping());
  EXPECT_FALSE(sweep.points[0].kept);
  EXPECT_EQ(sweep.points[0].result["step_seconds"],
            StepOf({"training.sequence=512", "strategy.cached_layers=0"}));
  SweepOptions newer = Keeping();
  newer.build = "another";
  EXPECT_FALSE(PlayStudy(longer, newer).points[0].kept);
}

TEST_F(SweepTest, WhatIsKeptIsOfThisBuild) {
  EXPECT_THAT(SweepOptions().build,
              AllOf(HasSubstr(std::string(Version())), HasSubstr(std::string(BuildCommit()))));
}

// A scenario's files, and those that they name; all in the test's folder.
struct NamedFiles {
  std::string base;
  std::vector<std::string> read;
};

TEST_F(SweepTest, AnyChangedFileThatWasReadIsAReasonToPlayAgain) {
  fs::create_directories(folder_);
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name) << content;
  };
  const std::string calibration =
      R"({"schema": "rehearse.calibration.v1", "collective_overhead": "7us"})";
  for (const char* name : {"of_scenario.json", "of_file.json", "of_object.json"})
    write(name, calibration);
  write("box.json", R"({"preset": "perlmutter", "nodes": 2, "calibration": "of_file.json"})");
  auto scenario = nlohmann::json::parse(kSmallBase);
  scenario["cluster"] = "box.json";
  scenario["calibration"] = "of_scenario.json";
  write("by_files.json", scenario.dump());
  scenario["cluster"] = {{"preset", "perlmutter"}, {"nodes", 2}, {"calibration", "of_object.json"}};
  scenario.erase("calibration");
  write("by_object.json", scenario.dump());
  fs::copy_file(fs::path(SourceDir()) / "scenarios/schedules/two-ranks.json", folder_ / "two.json");
  write("of_jobs.json", R"({"name": "jobs", "cluster": "perlmutter:nodes=3", "jobs": [
      {"scenario": "by_object.json", "placement": "0-7"},
      {"schedule": "two.json", "placement": "8-9"}]})");

  // The cluster of a job's scenario does not count, so of_object.json is not read for it.
  const NamedFiles all[] = {{"by_files.json", {"of_scenario.json", "box.json", "of_file.json"}},
                            {"by_object.json", {"of_object.json"}},
                            {"of_jobs.json", {"by_object.json", "two.json"}}};
  for (const NamedFiles& files : all) {
    write("study.json", R"({"name": "s", "metric": "step_seconds", "points": [{"name": "p"}],
                            "base": ")" +
                            files.base + "\"}");
    const Study study = ReadStudy(JsonDocument::FromFile((folder_ / "study.json").string()));
    const auto is_kept = [&] { return PlayStudy(study, Keeping()).points[0].kept; };
    EXPECT_FALSE(is_kept());
    EXPECT_TRUE(is_kept());
    for (const std::string& name : files.read) {
      std::ofstream(folder_ / name, std::ios::app) << "\n";
      EXPECT_FALSE(is_kept()) << files.base << " with another " << name;
      EXPECT_TRUE(is_kept());
    }
    write("another.json", "{}");
    EXPECT_TRUE(is_kept());
  }
}

TEST_F(SweepTest, AKeptResultThatSomebodyChangedIsNotBelieved) {
  const Study study = SmallStudy(R"("points": [{"name": "p"}])");
  const Sweep first = PlayStudy(study, Keeping());
  const std::string file = (folder_ / "p.json").string();
  const auto damage = [&](const std::string& content) {
    std::ofstream(file) << content;
    std::vector<std::string> said;
    SweepOptions options = Keeping();
    options.warn = [&](const std::string& message) { said.push_back(message); };
    const Sweep sweep = PlayStudy(study, options);
    EXPECT_FALSE(sweep.points[0].kept);
    EXPECT_EQ(sweep.points[0].result["step_seconds"], first.points[0].result["step_seconds"]);
    EXPECT_TRUE(PlayStudy(study, Keeping()).points[0].kept);  // it has healed
    return said;
  };
  const auto kept = nlohmann::json::parse(std::ifstream(file));
  const auto negative = [&] {
    nlohmann::json changed = kept;
    changed["result"]["step_seconds"] = -1;
    return changed.dump();
  };
  const auto without_metric = [&] {
    nlohmann::json changed = kept;
    changed["result"].erase("step_seconds");
    return changed.dump();
  };
  for (const std::string& content : {negative(), without_metric(), std::string(1'000'000, '['),
                                     std::string("[]"), std::string("{}"), std::string()}) {
    const std::vector<std::string> said = damage(content);
    EXPECT_THAT(said, SizeIs(1)) << content.substr(0, 100);
    EXPECT_THAT(said, Each(AllOf(HasSubstr("p.json"), HasSubstr("simulated again"))));
  }
  EXPECT_THAT(damage(R"({"schema": "rehearse.point.v1", "result": {}})"), SizeIs(0));  // older
}

TEST_F(SweepTest, WhatIsNoFileIsNotReplaced) {
  const Study study = SmallStudy(R"("points": [{"name": "p"}, {"name": "q"}])");
  fs::create_directories(folder_ / "q.json");
  const auto error = [&] {
    try {
      PlayStudy(study, Keeping());
    } catch (const Error& thrown) {
      return std::string(thrown.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error(), AllOf(HasSubstr("q.json"), HasSubstr("not a regular file")));
  EXPECT_FALSE(fs::exists(folder_ / "p.json"));  // said before the first point
  fs::remove(folder_ / "q.json");
  ASSERT_EQ(mkfifo((folder_ / "q.json").c_str(), 0600), 0);
  EXPECT_THAT(error(), HasSubstr("not a regular file"));
}

TEST_F(SweepTest, AnAxisThatIsMissingIsSaidBeforeTheFirstPoint) {
  const auto error_of = [&](const std::string& metric, const std::string& column) {
    const std::string text = fmt::format(
        R"({{"name": "s", "base": {}, "metric": "{}", "columns": ["step_seconds", "{}"], {}}})",
        kSmallBase, metric, column, kBatches);
    struct : ProgressObserver {
      void Done(double) override { began = true; }
      std::atomic<bool> began = false;
    } observer;
    SweepOptions options;
    options.observer = &observer;
    try {
      PlayStudy(ReadStudy(JsonDocument::FromText(text, "study.json")), options);
    } catch (const Error& error) {
      EXPECT_FALSE(observer.began);
      return std::string(error.what());
    }
    EXPECT_TRUE(observer.began);
    return std::string();
  };
  EXPECT_EQ(error_of("by_axis.row.seconds", "by_axis.depth.bytes"), "");
  EXPECT_THAT(error_of("by_axis.rwo.seconds", "ranks"),
              AllOf(HasSubstr("/metric"), HasSubstr("no axis \"rwo\""),
                    HasSubstr("did you mean \"row\"?")));
  EXPECT_THAT(error_of("ranks", "by_axis.dpeth.bytes"),
              AllOf(HasSubstr("/columns/1"), HasSubstr("did you mean \"depth\"?")));
}

// What a sweep reports, under its lock.
struct SweepListener : ProgressObserver {
  void Begin(std::string_view what, std::string_view /*parts*/, uint64_t all) override {
    began.emplace_back(what);
    wanted = all;
  }
  void Done(double parts) override {
    EXPECT_GE(parts, done);
    done = parts;
  }
  void Had(double parts) override { had = parts; }
  void Note(std::string_view text) override { note = text; }

  std::vector<std::string> began;
  uint64_t wanted = 0;
  std::atomic<double> done = 0;
  double had = 0;
  std::string note;
};

TEST_F(SweepTest, ItTellsHowManyPointsAreDoneAndTheBest) {
  const Study study = SmallStudy(kBatches);  // the smallest batch takes the least time
  for (const double had : {0, 8}) {
    SweepListener listener;
    SweepOptions options = Keeping();
    options.observer = &listener;
    PlayStudy(study, options);
    EXPECT_THAT(listener.began, ElementsAre("calibrating", "sweeping"));
    EXPECT_EQ(listener.wanted, 8u);
    EXPECT_NEAR(listener.done, 8, 1e-9);
    EXPECT_EQ(listener.had, had);
    EXPECT_THAT(listener.note, AllOf(HasSubstr("best step_seconds "), HasSubstr("batch=8")));
  }
}

TEST_F(SweepTest, AStoppedSweepKeepsWhatIsDoneAndGoesOnThere) {
  const Study study = SmallStudy(kBatches);
  SweepListener listener;
  SweepOptions options = Keeping();
  options.threads = 1;
  options.observer = &listener;
  options.is_stopped = [&] { return listener.done > 2.999; };
  const Sweep stopped = PlayStudy(study, options);
  EXPECT_EQ(stopped.left_out, 5u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(stopped.points[i].left_out, i >= 3) << i;
  const PublishedComparison comparison = Compare(study, stopped);
  EXPECT_THAT(ToText(study, stopped, comparison), HasSubstr("3 points of 8: interrupted"));
  EXPECT_EQ(ToJson(study, stopped, comparison)["points"].size(), 3u);
  EXPECT_EQ(ToJson(study, stopped, comparison)["points_left_out"], 5);
  const std::string csv = ToCsv(TableOf(study, stopped, comparison));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);

  options.is_stopped = [] { return false; };
  listener.done = 0;
  const Sweep whole = PlayStudy(study, options);
  EXPECT_EQ(whole.left_out, 0u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(whole.points[i].kept, i < 3) << i;
}

TEST_F(SweepTest, ASweepThatIsStoppedAtOnceHasNothing) {
  SweepOptions options = Keeping();
  options.is_stopped = [] { return true; };
  EXPECT_THROW(PlayStudy(SmallStudy(kBatches), options), Stopped);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SweepTest, CalibrationFindsTheValueThatGivesThePublishedFigure) {
  // The figure is that of a device 0.8 times as fast, so 0.8 must come out again.
  const double slow = StepOf({R"(edits=[{"devices": "**", "compute": "0.8x"}])"});
  const Study study = SmallStudy(fmt::format(
      R"("calibration": {{"point": "p", "from": 0.3, "to": 3,
           "set": {{"edits": [{{"devices": "**", "compute": "{{value}}x"}}]}}}},
         "points": [{{"name": "p", "published": {:.17g}}},
                    {{"name": "q", "set": {{"training.batch": 16}}, "published": 1}}])",
      slow));
  const Sweep sweep = PlayStudy(study, {});
  ASSERT_TRUE(sweep.calibrated[0]);
  EXPECT_NEAR(*sweep.calibrated[0], 0.8, 0.0005);
  const PublishedComparison comparison = Compare(study, sweep);
  EXPECT_TRUE(comparison.points[0].calibrates);
  EXPECT_NEAR(*comparison.points[0].error, 0, 1e-3);
  EXPECT_EQ(comparison.judged, 1u);  // the calibrating row is not judged
}

TEST_F(SweepTest, OneCalibrationServesAllGroupsThatHaveNone) {
  const double slow = StepOf({R"(edits=[{"devices": "**", "compute": "0.8x"}])"});
  const Study study = SmallStudy(fmt::format(
      R"("calibration": {{"point": "a/p", "from": 0.3, "to": 3,
           "set": {{"edits": [{{"devices": "**", "compute": "{{value}}x"}}]}}}},
         "groups": [{{"name": "b", "points": [{{"name": "p"}}]}},
                    {{"name": "a", "points": [{{"name": "p", "published": {:.17g}}}]}}])",
      slow));
  const Sweep sweep = PlayStudy(study, {});
  EXPECT_EQ(sweep.calibrated[0], sweep.calibrated[1]);
  EXPECT_EQ(sweep.points[0].result["step_seconds"], sweep.points[1].result["step_seconds"]);
  EXPECT_TRUE(Compare(study, sweep).points[1].calibrates);
}

TEST_F(SweepTest, LimitsThatDoNotEncloseTheFigureAreRefused) {
  const Study study = SmallStudy(
      R"("calibration": {"point": "p", "from": 0.9, "to": 1.1,
           "set": {"edits": [{"devices": "**", "compute": "{value}x"}]}},
         "points": [{"name": "p", "published": 1000}])");
  try {
    PlayStudy(study, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("/calibration"), HasSubstr("enclose"), HasSubstr("1000")));
  }
}

TEST_F(SweepTest, ImpossibleCombinationsOfAGridAreShownNotFatal) {
  const Study study = SmallStudy(R"("grid": [{"path": "strategy.column", "values": [2, 3]}])");
  const Sweep sweep = PlayStudy(study, {});
  EXPECT_EQ(sweep.points[0].error, "");
  EXPECT_THAT(sweep.points[1].error, HasSubstr("does not fit cluster"));
  EXPECT_THAT(ToText(study, sweep, Compare(study, sweep)), HasSubstr("impossible"));
}

// Paths of grids and choices are columns, objects value by value; what only another point changes
// has the base's value (training.batch of the small scenario), or none.
TEST_F(SweepTest, RowsHaveAColumnForEachValueThatChanges) {
  const Study study = SmallStudy(
      R"("grid": [{"path": "strategy.column", "values": [2, 3]},
                  {"choices": [{"name": "as it is", "set": {}},
                               {"name": "twice", "set": {"training.batch": 16,
                                                         "simulator": {"fidelity": "formula"}}}]}])");
  const Sweep sweep = PlayStudy(study, {});
  const DataTable table = TableOf(study, sweep, Compare(study, sweep));
  std::vector<std::string> names;
  for (const DataColumn& column : table.columns()) names.push_back(column.name);
  EXPECT_EQ(names, (std::vector<std::string>{"point", "strategy.column", "training.batch",
                                             "simulator.fidelity", "status", "reason",
                                             "step_seconds", "best"}));
  const nlohmann::ordered_json rows = ToJson(table);
  EXPECT_EQ(rows[0]["strategy.column"], 2);
  EXPECT_EQ(rows[0]["training.batch"], 8);
  EXPECT_TRUE(rows[0]["simulator.fidelity"].is_null());
  EXPECT_EQ(rows[1]["training.batch"], 16);
  EXPECT_EQ(rows[1]["simulator.fidelity"], "formula");
  EXPECT_EQ(rows[1]["status"], "done");
  EXPECT_EQ(rows[1]["step_seconds"].get<double>(),
            sweep.points[1].result["step_seconds"].get<double>());
  EXPECT_EQ(rows[2]["status"], "impossible");
  EXPECT_THAT(rows[2]["reason"].get<std::string>(), HasSubstr("does not fit cluster"));
  EXPECT_TRUE(rows[2]["step_seconds"].is_null());
  EXPECT_EQ(
      ToJson(study, sweep, Compare(study, sweep))["points"][1]["parameters"]["training.batch"], 16);
}

// Where nothing is published, nothing says so.
TEST_F(SweepTest, PublishedFiguresHaveColumnsWhereThereAreSome) {
  const Study bare = SmallStudy(R"("points": [{"name": "one"}])");
  const Sweep sweep = PlayStudy(bare, {});
  EXPECT_THAT(ToText(bare, sweep, Compare(bare, sweep)), Not(HasSubstr("published")));
  EXPECT_THAT(ToMarkdown(bare, sweep, Compare(bare, sweep)), Not(HasSubstr("error")));
  EXPECT_THAT(ToCsv(TableOf(bare, sweep, Compare(bare, sweep))), Not(HasSubstr("published")));
}

TEST_F(SweepTest, APointThatFailsIsAMistake) {
  const Study study = SmallStudy(R"("points": [{"name": "p", "set": {"strategy.column": 3}}])");
  try {
    PlayStudy(study, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("study.json"), HasSubstr("/points/0"),
                                    HasSubstr("point \"p\""), HasSubstr("does not fit cluster")));
  }
}

TEST_F(SweepTest, RatiosAndOrdersAreComparedWithWhatIsPublished) {
  // Twice the batch is published to take 1.5 times as long (it takes nearly 2 here), and less than
  // half of it.
  const Study study = SmallStudy(R"("tolerance": 0.6, "points": [{"name": "one"},
      {"name": "two", "set": {"training.batch": 16}, "relative_to": "one", "published": 1.5},
      {"name": "four", "set": {"training.batch": 32}, "relative_to": "one", "published": 1.2}],
      "orders": [["one", "two", "four"]])");
  const Sweep sweep = PlayStudy(study, {});
  const PublishedComparison comparison = Compare(study, sweep);
  const double ratio = StepOf({"training.batch=16"}) / StepOf();
  EXPECT_NEAR(*comparison.points[1].error, ratio / 1.5 - 1, 1e-12);
  EXPECT_EQ(comparison.judged, 2u);
  EXPECT_EQ(comparison.worst, 2u);
  // Pairs: four < two is wrong; one (1) < two and one < four are right; then the study's two
  // orders.
  ASSERT_EQ(comparison.pairs.size(), 5u);
  size_t right = 0;
  for (const OrderedPair& pair : comparison.pairs) right += pair.right ? 1 : 0;
  EXPECT_EQ(right, 4u);
  // The metric is each point's own, with its ratio beside it.
  const nlohmann::ordered_json rows = ToJson(TableOf(study, sweep, comparison));
  EXPECT_TRUE(rows[0]["ratio"].is_null());
  EXPECT_EQ(rows[1]["relative_to"], "one");
  EXPECT_NEAR(rows[1]["ratio"].get<double>(), ratio, 1e-12);
  EXPECT_NEAR(rows[1]["step_seconds"].get<double>(), StepOf({"training.batch=16"}), 1e-12);
  EXPECT_EQ(rows[1]["published"], 1.5);
}

}  // namespace sweep_test
}  // namespace rehearse
