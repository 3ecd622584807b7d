#include <nlohmann/json.hpp>

#include "tests/scenarios/small_scenario.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace search_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class SearchProgramTest : public ProgramTest {
 protected:
  SearchProgramTest() { Write("small.json", testing::kSmall); }
};

TEST_F(SearchProgramTest, SaysWhichConfigurationIsTheBestAndWhyOthersAreNot) {
  const Outcome search = Execute("search small.json --explain");
  EXPECT_EQ(search.code, 0) << search.err;
  EXPECT_THAT(search.out, AllOf(HasSubstr("The best is column"),
                                HasSubstr("column x row x depth x data (20), micro_batches (4): "
                                          "80 points"),
                                HasSubstr("The formula axonn kept"), HasSubstr("beside the first"),
                                HasSubstr("Impossible, by reason"),
                                HasSubstr("where the second takes longer")));
}

// What a run needs of a step is kept with it.
TEST_F(SearchProgramTest, KeptPointsRunAsTheyDidAtFirst) {
  const std::string search =
      R"(search small.json --objective run-time --results kept.sqlite --format json --set )"
      R"('run={"tokens": "10G", "step": "typical", "seeds": 5, )"
      R"("checkpoint": {"storage_bandwidth": "10GBps"}}')";
  const Outcome first = Execute(search);
  ASSERT_EQ(first.code, 0) << first.err;
  const Outcome second = Execute(search);
  ASSERT_EQ(second.code, 0) << second.err;
  const Json one = Json::parse(first.out);
  const Json other = Json::parse(second.out);
  EXPECT_EQ(other["points"][0]["run"], one["points"][0]["run"]);
  EXPECT_EQ(other["points"].size(), one["points"].size());
}

// Files that an axis names are beside the scenario, wherever the search runs.
TEST_F(SearchProgramTest, FilesThatAnAxisNamesAreFoundFromElsewhere) {
  std::filesystem::create_directory(folder_ / "sub");
  Json small = Json::parse(testing::kSmall);
  small["search"] = {{"axes", {{{"path", "cluster"}, {"values", {"mine.json"}}}}}};
  Write("sub/small.json", small.dump());
  Write("sub/mine.json", R"({"preset": "perlmutter", "nodes": 2})");
  const Outcome search = Execute("search sub/small.json --top 1 --out best");
  ASSERT_EQ(search.code, 0) << search.err;
  const Outcome run = Execute("run best/001.json");
  EXPECT_EQ(run.code, 0) << run.err;
}

// Those that the command names are in the working directory, as it is usual for commands.
TEST_F(SearchProgramTest, FilesOfClustersAreFoundFromWhereTheSearchRuns) {
  std::filesystem::create_directory(folder_ / "sub");
  Write("sub/small.json", testing::kSmall);
  Write("mine.json", R"({"preset": "perlmutter", "nodes": 2})");
  const Outcome search = Execute("search sub/small.json --clusters mine.json --top 1 --out best");
  ASSERT_EQ(search.code, 0) << search.err;
  EXPECT_THAT(search.out, HasSubstr("cluster mine.json"));
  const Outcome run = Execute("run best/001.json");
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST_F(SearchProgramTest, WhatItFoundRunsAsItSaid) {
  const Outcome search = Execute("search small.json --top 3 --out best --format json");
  ASSERT_EQ(search.code, 0) << search.err;
  const Json found = Json::parse(search.out);
  EXPECT_EQ(found["schema"], "rehearse.search.v1");
  for (size_t i = 0; i < 3; ++i) {
    const Outcome run = Execute("run best/00" + std::to_string(i + 1) + ".json --format json");
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(Json::parse(run.out)["step_seconds"], found["points"][i]["step_seconds"]);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "best/004.json"));
}

TEST_F(SearchProgramTest, RowsHaveAColumnForEachPath) {
  const Outcome search = Execute("search small.json --format csv --decide formula");
  EXPECT_EQ(search.code, 0) << search.err;
  EXPECT_THAT(search.out, HasSubstr("configuration,strategy.column,strategy.row,strategy.depth,"
                                    "strategy.data,training.micro_batches,status,formula,time,"));
}

TEST_F(SearchProgramTest, RunShowsThePapersFormula) {
  const Outcome run = Execute("run small.json --cost-model axonn");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("What axonn's formula says"), HasSubstr("eq. 9"),
                             HasSubstr("all-gathers of W (eq. 4)")));
  const Json result = Json::parse(Execute("run small.json --cost-model axonn --format json").out);
  EXPECT_EQ(result["cost_model"]["model"], "axonn");
  EXPECT_GT(result["cost_model"]["communication_seconds"], 0);
  ExpectMistake("run small.json --cost-model atp", {"ATP's model is for the strategy \"atp\""});
  ExpectMistake("run small.json --cost-model axon", {"did you mean \"axonn\""});
}

TEST_F(SearchProgramTest, MistakesAreOneMessage) {
  ExpectMistake("search", {"no scenario given"});
  ExpectMistake("search small.json --method decent", {"did you mean \"descent\""});
  ExpectMistake("search small.json --evaluations 0", {"from 1 to"});
  ExpectMistake("search small.json --quality --decide formula", {"--quality simulates everything"});
  ExpectMistake("search small.json --set strategy.kolumn=3", {"kolumn"});
  ExpectMistake("search small.json --objective money", {"needs \"price\""});
}

}  // namespace search_test
}  // namespace rehearse
