#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace compare_test {

using ::testing::HasSubstr;

class CompareProgramTest : public ProgramTest {};

// What `rehearse collective` prints is a table of nccl-tests: compared with its own cluster it
// matches to the printed digits (half of 0.01 us in 16, of 0.1 us in 300).
TEST_F(CompareProgramTest, OwnTablesAreMet) {
  const Outcome table = Execute("collective all-reduce --cluster dgx-a100 -b 64K -e 64M -f 4");
  ASSERT_EQ(table.code, 0) << table.err;
  Write("nccl.log", table.out);
  const Outcome json = Execute("compare nccl.log --cluster dgx-a100 --format json");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto result = nlohmann::json::parse(json.out);
  EXPECT_EQ(result["schema"], "rehearse.comparison.v1");
  EXPECT_EQ(result["kind"], "all-reduce");
  EXPECT_EQ(result["ranks"], 8);
  ASSERT_EQ(result["rows"].size(), 6u);  // 64 KiB to 64 MiB by fours
  for (const auto& row : result["rows"])
    EXPECT_LT(std::abs(row["relative_error"].get<double>()), 5e-4);
  EXPECT_EQ(result["errors"]["from_1_mib"]["samples"], 4);
  EXPECT_EQ(result["errors"]["below_1_mib"]["samples"], 2);
  const Outcome text = Execute("compare nccl.log --cluster dgx-a100");
  EXPECT_THAT(text.out, HasSubstr("ring/simple"));
  EXPECT_THAT(text.out, HasSubstr("from 1 MiB on    4 sizes"));
}

// A log of one seed of a hashed fabric matches with that seed, and not with another.
TEST_F(CompareProgramTest, PredictionsTakeTheRoutingThatIsAskedFor) {
  const std::string on = " --cluster selene:nodes=64 -a ring -p none --routing ecmp ";
  const Outcome table = Execute("collective all-gather -b 256M -e 1G" + on + "--routing-seed 3");
  ASSERT_EQ(table.code, 0) << table.err;
  Write("nccl.log", table.out);
  const auto error = [&](const std::string& options) {
    const Outcome json = Execute("compare nccl.log --format json" + on + options);
    EXPECT_EQ(json.code, 0) << json.err;
    return std::abs(nlohmann::json::parse(json.out)["rows"].back()["relative_error"].get<double>());
  };
  EXPECT_LT(error("--routing-seed 3"), 5e-4);
  EXPECT_GT(error("--routing-seed 4") + error("--routing-seed 5") + error("--routing-seed 6"),
            5e-3);
}

// A log made with other efficiencies is explained by them: 300·0.6 GB/s and 40 us are found again,
// and used again.
TEST_F(CompareProgramTest, TheTwoNumbersOfALogAreFoundAgain) {
  const std::string truth = R"({"schema": "rehearse.calibration.v1", "collective_overhead": "40us",
    "links": [{"kind": "nvlink", "bandwidth": "300GBps", "efficiency": 0.6}]})";
  Write("truth.json", truth);
  const std::string sweep =
      "collective all-reduce --cluster dgx-a100 -b 1K -e 1G -f 4 --calibration ";
  Write("nccl.log", Execute(sweep + "truth.json").out);
  const Outcome fit = Execute("compare nccl.log --cluster dgx-a100 --calibration fit.json");
  ASSERT_EQ(fit.code, 0) << fit.err;
  const auto calibration = nlohmann::json::parse(ReadFile(folder_ / "fit.json"));
  EXPECT_NEAR(calibration["links"][0]["efficiency"].get<double>(), 0.6, 0.0021);  // the grid
  const std::string overhead = calibration["collective_overhead"];
  EXPECT_THAT(overhead, HasSubstr("us"));
  EXPECT_NEAR(std::stod(overhead), 40, 0.05);
  EXPECT_LT(calibration["fit"]["held_out_errors_from_1_mib"]["largest"].get<double>(), 0.005);
  const Outcome again =
      Execute("compare nccl.log --cluster dgx-a100 --using fit.json --format json");
  ASSERT_EQ(again.code, 0) << again.err;
  const auto result = nlohmann::json::parse(again.out);
  EXPECT_LT(result["errors"]["from_1_mib"]["largest"].get<double>(), 0.005);
  // As part of a cluster file too.
  Write("cluster.json", R"({"preset": "dgx-a100", "calibration": "fit.json"})");
  EXPECT_EQ(Execute("collective all-reduce --cluster ./cluster.json -b 1G --format json").out,
            Execute("collective all-reduce --cluster dgx-a100 -b 1G --format json --calibration "
                    "fit.json")
                .out);
}

// Two sizes determine two numbers: the text and the file say what was fitted, and how much better
// it is. A single size determines one of them.
TEST_F(CompareProgramTest, AFitSaysWhatItIsWorthAndWhatItLeavesOut) {
  Write("truth.json",
        R"({"schema": "rehearse.calibration.v1", "collective_overhead": "7us",
            "links": [{"kind": "network", "bandwidth": "25GBps", "efficiency": 0.64}]})");
  const std::string cluster = " --cluster switch:devices=4 -a ring -p none ";
  const std::string made =
      "collective all-reduce" + cluster + "--calibration truth.json -f 262144 ";
  Write("two.log", Execute(made + "-b 1K -e 256M").out);
  const Outcome two = Execute("compare two.log" + cluster + "--calibration fit.json");
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.out, HasSubstr("fitted on 2 of 2 sizes: network links of 25 GB/s at efficiency "
                                 "0.640, launching 7 us per collective and 0 s per channel; mean "
                                 "error 0.0 %, without 36.4 %; written to fit.json\n"));
  Write("one.log", Execute(made + "-b 256M").out);
  const Outcome one = Execute("compare one.log" + cluster + "--calibration fit.json --format json");
  const std::string remark = "the launch overhead is not fitted: these times do not determine it";
  EXPECT_EQ(nlohmann::json::parse(one.out)["fit"]["remarks"][0], remark);
  EXPECT_EQ(nlohmann::json::parse(ReadFile(folder_ / "fit.json"))["fit"]["remarks"][0], remark);
}

TEST_F(CompareProgramTest, MoreRanksThanDevicesAreTheLogsMistake) {
  Write("nccl.log", Execute("collective all-reduce --cluster dgx-a100 -b 1M").out);
  ExpectMistake("compare nccl.log --cluster switch:devices=4",
                {"nccl.log:", "found 8 ranks", "expected at most 4"});
}

TEST_F(CompareProgramTest, TablesWithCommasNeedTheirKind) {
  Write("table.csv", "size_B,time_us_oop,algbw\n1048576,74.78,14.02\n");
  ExpectMistake("compare table.csv --cluster dgx-a100", {"table.csv", "--kind"});
  const Outcome outcome = Execute("compare table.csv --cluster dgx-a100 --kind all-reduce");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("74.78"));
}

// 14 steps of 10 us and 2·7/8 of the bytes at 20 GB/s: AutoDDL's Table 2.
TEST_F(CompareProgramTest, AlphaAndBetaAreFittedToWhatWasMeasured) {
  Write("table.csv",
        "size_B,time_us_oop\n1048576,231.7504\n8388608,874.0032\n67108864,6012.0256\n");
  const std::string command = "compare table.csv --cluster dgx-a100 --kind ";
  EXPECT_THAT(Execute(command + "all-reduce").out,
              HasSubstr("10.00 us a step, 20.00 GB/s; error 0.0 %"));
  const auto json = nlohmann::json::parse(Execute(command + "all-reduce --format json").out);
  EXPECT_NEAR(json["alpha_beta"]["alpha_seconds"].get<double>(), 10e-6, 1e-10);
  EXPECT_EQ(json["alpha_beta"]["samples"], 3);
  // Its table says nothing of broadcasts.
  EXPECT_THAT(Execute(command + "broadcast").out, Not(HasSubstr("alpha")));
}

TEST_F(CompareProgramTest, RanksComeFromTheLogUnlessTheyAreGiven) {
  Write("nccl.log", Execute("collective all-gather --cluster dgx-a100 --ranks 0-3 -b 1M").out);
  EXPECT_THAT(Execute("compare nccl.log --cluster dgx-a100").out, HasSubstr("of 4 ranks"));
  EXPECT_THAT(Execute("compare nccl.log --cluster dgx-a100 --ranks 0,1").out,
              HasSubstr("of 2 ranks"));
  ExpectMistake("compare nccl.log --cluster dgx-a100 --ranks 9", {"--ranks"});
}

// Two programs' tables after one another, compared separately and fitted together: the efficiency
// that both were made with is found.
TEST_F(CompareProgramTest, ALogOfSeveralProgramsIsComparedTableByTable) {
  Write("truth.json", R"({"schema": "rehearse.calibration.v1", "collective_overhead": "20us",
    "links": [{"kind": "nvlink", "bandwidth": "300GBps", "efficiency": 0.6}]})");
  const std::string sizes = " --cluster dgx-a100 -b 1K -e 1G -f 8 --calibration truth.json";
  Write("both.log", Execute("collective all-reduce" + sizes).out +
                        Execute("collective all-gather --ranks 0-3" + sizes).out);
  const Outcome outcome =
      Execute("compare both.log --cluster dgx-a100 --calibration fit.json --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["tables"].size(), 2u);
  EXPECT_EQ(json["tables"][0]["kind"], "all-reduce");
  EXPECT_EQ(json["tables"][0]["ranks"], 8);
  EXPECT_EQ(json["tables"][1]["kind"], "all-gather");
  EXPECT_EQ(json["tables"][1]["ranks"], 4);
  EXPECT_EQ(json["errors"]["from_1_mib"]["samples"], 6);  // 4, 32 and 256 MiB, twice
  const auto calibration = nlohmann::json::parse(ReadFile(folder_ / "fit.json"));
  EXPECT_NEAR(calibration["links"][0]["efficiency"].get<double>(), 0.6, 0.0021);  // the grid
  EXPECT_EQ(calibration["fit"]["samples"], 14);
  const Outcome text = Execute("compare both.log --cluster dgx-a100 --using fit.json");
  EXPECT_THAT(text.out, HasSubstr("\nall 2 tables\nfrom 1 MiB on    6 sizes"));
  const Outcome one = Execute("compare both.log --cluster dgx-a100 --kind all-gather --rows 2");
  EXPECT_THAT(one.out, HasSubstr("5 that differ less (--rows all)"));
  EXPECT_THAT(one.err, HasSubstr("found all-reduce, expected all-gather; the table is left out"));
}

TEST_F(CompareProgramTest, TheKindFollowsFromTheColumns) {
  const std::string table = Execute("collective reduce-scatter --cluster dgx-a100 -b 1M").out;
  Write("old.log", table.substr(table.find("#\n")));  // without our comments and the name
  const Outcome outcome = Execute("compare old.log --cluster dgx-a100");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("reduce-scatter, one group of 8 ranks"));
}

TEST_F(CompareProgramTest, MistakesAreNamed) {
  Write("empty.log", "");
  Write("other.log", "hello\n");
  Write("nccl.log", "size_B,time_us\n1048576,70\n");
  Write("tiny.log", "size_B,time_us\n1048576,1e-308\n");
  ExpectMistake("compare", {"nothing to compare"});
  ExpectMistake("compare tiny.log --cluster dgx-a100 --kind all-reduce",
                {"tiny.log:2", "makes no sense"});
  ExpectMistake("compare /dev/zero nccl.log", {"/dev/zero", "more than 64 MiB"});
  ExpectMistake("compare missing.log --cluster dgx-a100", {"missing.log"});
  ExpectMistake("compare empty.log --cluster dgx-a100",
                {"empty.log", "cannot be compared; expected"});
  ExpectMistake("compare other.log --cluster dgx-a100",
                {"other.log", "cannot be compared; expected"});
  ExpectMistake("compare nccl.log", {"--cluster"});
  ExpectMistake("compare nccl.log nccl.log --cluster dgx-a100",
                {"cannot compare a table of nccl-tests with a table of nccl-tests"});
  ExpectMistake("compare nccl.log --cluster dgx-a100 --kind all-redce", {"all-reduce"});
  ExpectMistake("compare nccl.log --cluster dgx-a100 --kind all-reduce --using missing.json",
                {"missing.json"});
  ExpectMistake(
      "compare nccl.log --cluster dgx-a100 --kind all-reduce --calibration no/such/folder.json",
      {"no/such/folder.json"});
}

}  // namespace compare_test
}  // namespace rehearse
