// "rehearse report" as its user meets it: the page that is written, and inputs that cannot become
// one. What the page does in a browser is tested by tools/viewer/tests/run.
#include <nlohmann/json.hpp>

#include "sim/base/gzip.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace report_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string FromBase64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    if (letter == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(letters.find(letter));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

class ReportCommandTest : public ProgramTest {
 protected:
  // What stands in the page before its program.
  std::string Data() const {
    const std::string page = ReadFile(folder_ / "page.html");
    const std::string mark = "id=\"rehearse-data\">";
    const size_t begin = page.find(mark) + mark.size();
    return page.substr(begin, page.find("</script>", begin) - begin);
  }
  nlohmann::json Header() const {
    const std::string bytes = Gunzip(FromBase64(Data()), size_t{1} << 30);
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return nlohmann::json::parse(bytes.substr(4, size));
  }
  nlohmann::json Reported(const std::string& arguments) const {
    const Outcome outcome = Execute("report " + arguments + " -o page.html");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("page.html"));
    return Header();
  }

  // A timeline of one rank with these spans, by hand.
  static std::string TimelineText(const std::string& name, const std::string& spans,
                                  const std::string& schema = "rehearse.timeline.v1") {
    const nlohmann::json op = {{"name", name},       {"kind", "gemm"}, {"axis", ""},
                               {"phase", "forward"}, {"layer", 0},     {"micro_batch", 0}};
    nlohmann::json json = {{"schema", schema},
                           {"title", name},
                           {"provenance", "measured"},
                           {"ranks", 1},
                           {"role_of_rank", {{0, 1}}}};
    json["roles"] = {{{"name", "all"}, {"ops", {op}}}};
    json["steps"] = {
        {{"warm_up", false}, {"step_picoseconds", 7000}, {"spans", nlohmann::json::parse(spans)}}};
    return json.dump();
  }
};

TEST_F(ReportCommandTest, APageIsOneFileThatAsksNoNetwork) {
  const nlohmann::json page = Reported(Shipped("cpu-4d"));
  EXPECT_EQ(page["schema"], "rehearse.page.v1");
  ASSERT_EQ(page["runs"].size(), 1u);
  const nlohmann::json& run = page["runs"][0];
  EXPECT_EQ(run["provenance"], "simulated");
  EXPECT_GT(run["links"].size(), 0u);
  EXPECT_GT(run["memory"].size(), 0u);
  // Every span has a begin and a length, and every rank that is shown has some.
  const auto count = [&](const char* column) {
    return page["columns"][run["spans"][column].get<size_t>()][0].get<size_t>();
  };
  EXPECT_EQ(count("begin"), count("took"));
  EXPECT_EQ(run["shown"].back()[5], count("begin"));
  const std::string text = ReadFile(folder_ / "page.html");
  EXPECT_THAT(text, StartsWith("<!doctype html>"));
  EXPECT_THAT(text, HasSubstr("default-src 'none'"));
  for (const char* outside : {"src=\"", "href=\"", "url(http", "@import"})
    EXPECT_THAT(text, Not(HasSubstr(outside)));
}

// What the page plays is checked in a browser (tools/viewer/tests).
TEST_F(ReportCommandTest, AnyCollectiveOfAStepCanBeWatched) {
  const std::string lesson = "report " + Shipped("lessons/prefetch") + " ";
  const Outcome outcome = Execute(lesson + "--watch \"gather 3\" -o film.html");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(ReadFile(folder_ / "film.html"), HasSubstr("id=\"rehearse-film\">"));
  ExpectMistake(lesson + "--watch gather -o x.html",
                {"--watch: found \"gather\"", "gather 1, gather 2"});
  ExpectMistake(lesson + "--watch \"layer 1\" -o x.html", {"found \"layer 1\""});
  ExpectMistake(lesson + "--watch \"gather 1#2\" -o x.html", {"no rank does \"gather 1\" 2 times"});
  ExpectMistake(lesson + "--watch \"gather 1\" --live -o x.html", {"--watch and --live"});
  ExpectMistake("report " + Shipped("gpu-one") + " --watch x -o x.html", {"no collective"});
}

TEST_F(ReportCommandTest, TheStepIsThatOfRun) {
  const nlohmann::json run = Reported(Shipped("cpu-4d"))["runs"][0];
  const auto result =
      nlohmann::json::parse(Execute("run " + Shipped("cpu-4d") + " --format json").out);
  EXPECT_EQ(run["result"]["step_seconds"], result["step_seconds"]);
  EXPECT_EQ(run["result"]["timeline_hash"], result["timeline_hash"]);
}

TEST_F(ReportCommandTest, TwoStepsAreCompared) {
  const nlohmann::json page =
      Reported(Shipped("cpu-4d") + " --versus strategy.overlap_all_gather=false");
  ASSERT_EQ(page["runs"].size(), 2u);
  EXPECT_EQ(page["comparison"]["schema"], "rehearse.comparison.v1");
  EXPECT_EQ(page["comparison"]["given"][0]["path"], "strategy.overlap_all_gather");
  EXPECT_EQ(page["comparison"]["step"]["a_seconds"], page["runs"][0]["result"]["step_seconds"]);
}

TEST_F(ReportCommandTest, MoreThanTwoStepsAreShownToo) {
  const std::string one = " " + Shipped("cpu-4d");
  const nlohmann::json page = Reported(one + one + one + " --ranks 3");
  ASSERT_EQ(page["runs"].size(), 3u);
  EXPECT_FALSE(page.contains("comparison"));
  EXPECT_EQ(page["runs"][2]["asked"], nlohmann::json({3}));
}

// Four equal stages and eight micro-batches of 6 ms: (m + p - 1) times that, of which m are work
// (Huang et al.), less 1 ms, since the gradient of the first layer's input is not needed.
TEST_F(ReportCommandTest, PipelinesAreRowsWhoseBubbleIsThatOfThePapers) {
  const nlohmann::json page = Reported("--pipelines gpipe,zb-h1,zb-h2,zb-v,dualpipe");
  ASSERT_EQ(page["runs"].size(), 5u);
  EXPECT_EQ(page["as_pipelines"], true);
  const auto bubble = [&](size_t run) {
    return page["runs"][run]["pipeline"]["bubble"].get<double>();
  };
  const auto bubble_of = [&](size_t run, size_t row) {
    return page["runs"][run]["pipeline"]["rows"][row]["bubble"].get<double>();
  };
  EXPECT_NEAR(bubble_of(0, 3), 17.0 / 65, 0.005);
  EXPECT_NEAR(bubble_of(1, 3), 6.0 / 54, 0.005);
  EXPECT_NEAR(bubble_of(2, 3), 0, 0.005);
  EXPECT_NEAR(bubble(0), (3 * 17.0 + 25.0) / 4 / 65, 0.005);
  EXPECT_LT(bubble(3), bubble(1));
  EXPECT_EQ(page["runs"][0]["pipeline"]["rows"].size(), 4u);
  const auto column = [&](size_t run, size_t row, const char* name) {
    return page["runs"][run]["pipeline"]["rows"][row][name].get<size_t>();
  };
  // Forward and backward of each micro-batch; with weight gradients apart half as many more.
  EXPECT_EQ(page["columns"][column(0, 0, "begin")][0], 16);
  EXPECT_EQ(page["columns"][column(1, 3, "begin")][0], 24);
  const Outcome outcome = Execute("report --pipelines gpipe,dualpipe --svg -o pipes.svg");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string svg = ReadFile(folder_ / "pipes.svg");
  EXPECT_THAT(svg, HasSubstr("<title>gpipe above dualpipe</title>"));
  EXPECT_THAT(svg, HasSubstr("bubble 29."));
  EXPECT_THAT(svg, HasSubstr("forward from the other end"));
  EXPECT_THAT(svg, HasSubstr("<title>forward of micro-batch 8: "));
}

TEST_F(ReportCommandTest, ATimelinesFileIsShownBelowAScenario) {
  ASSERT_EQ(Execute("run " + Shipped("cpu-4d") + " --out out").code, 0);
  const nlohmann::json page = Reported(Shipped("cpu-4d") + " out");
  ASSERT_EQ(page["runs"].size(), 2u);
  EXPECT_TRUE(page["runs"][1]["result"].is_null());
  EXPECT_EQ(page["runs"][0]["step"], page["runs"][1]["step"]);
}

TEST_F(ReportCommandTest, PointsOfStudiesAndMeasuredRowsAreTables) {
  Write("study.json", R"({"name": "two depths", "base": ")" + Shipped("cpu-4d") +
                          R"(", "metric": "step_seconds",
      "grid": [{"path": "strategy.overlap_all_gather", "values": [true, false]}]})");
  Write("t.csv",
        "name,cluster,model.preset,training.batch,training.sequence,training.recomputation,"
        "strategy.kind,strategy.data,strategy.overlap_gradients,step\n"
        "one,dgx-a100,gpt-125m,8,1024,none,data-parallel,8,true,20ms\n");
  const nlohmann::json page = Reported("study.json t.csv");
  ASSERT_EQ(page["tables"].size(), 2u);
  EXPECT_EQ(page["tables"][0]["kind"], "study");
  EXPECT_EQ(page["tables"][0]["rows"].size(), 2u);
  EXPECT_EQ(page["tables"][1]["rows"][0]["measured_seconds"], 0.02);
}

TEST_F(ReportCommandTest, ManyRanksAreFoldedToAFew) {
  const nlohmann::json run =
      Reported(Shipped("strategy-data-parallel") +
               " --set cluster=dgx-h100:nodes=4096 --set strategy.data=32768 "
               "--set training.batch=32768 --ranks 77")["runs"][0];
  EXPECT_EQ(run["ranks"], 32768);
  EXPECT_LE(run["shown"].size(), 25u);
  EXPECT_LT(ReadFile(folder_ / "page.html").size(), 1'000'000u);
}

TEST_F(ReportCommandTest, NamesAreDataAndNeverMarkup) {
  const std::string evil = "</script><img src=x onerror=alert(1)>\">";
  Write("evil.json", TimelineText(evil, "[[0, 0, 0, 0, 7000]]"));
  const nlohmann::json page = Reported("evil.json");
  EXPECT_EQ(page["runs"][0]["title"], evil);
  EXPECT_EQ(Data().find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789+/="),
            std::string::npos);
  const std::string text = ReadFile(folder_ / "page.html");
  EXPECT_THAT(text, Not(HasSubstr("<img")));
  EXPECT_THAT(text, HasSubstr("<title>&lt;/script&gt;&lt;img"));
}

TEST_F(ReportCommandTest, OneSpanIsEnough) {
  Write("one.json", TimelineText("alone", "[[0, 0, 1000, 2000, 7000]]"));
  const nlohmann::json run = Reported("one.json")["runs"][0];
  EXPECT_EQ(run["shown"][0][5], 1);
  EXPECT_EQ(run["step"], 7000);  // in ticks of a picosecond, since the step is short
  EXPECT_EQ(run["tick"], 1);
}

TEST_F(ReportCommandTest, WhatIsNoReportIsSaidWhereItIs) {
  ExpectMistake("report", {"nothing to report on"});
  ExpectMistake("report " + Shipped("cpu-4d"), {"-o FILE.html is missing"});
  ExpectMistake("report none.json -o page.html", {"none.json", "No such file"});
  Write("empty.json", TimelineText("nothing", "[]"));
  ExpectMistake("report empty.json -o page.html", {"empty.json:1: /steps", "no span"});
  Write("new.json", TimelineText("later", "[[0, 0, 0, 0, 7000]]", "rehearse.timeline.v9"));
  ExpectMistake("report new.json -o page.html", {"new.json:1: /schema", "rehearse.timeline.v9"});
  Write("result.json", R"({"schema": "rehearse.result.v1"})");
  ExpectMistake("report result.json -o page.html", {"result.json:1: /schema", "timeline.json"});
  const std::string packed = Gzip(TimelineText("cut", "[[0, 0, 0, 0, 7000]]"));
  Write("cut.json.gz", packed.substr(0, packed.size() / 2));
  ExpectMistake("report cut.json.gz -o page.html", {"cut.json.gz"});
  Write("list.json", "[1, 2]");
  ExpectMistake("report list.json -o page.html", {"list.json:1", "a scenario"});
  Write("one.json", TimelineText("alone", "[[0, 0, 0, 0, 7000]]"));
  std::string many;
  for (int i = 0; i < 25; ++i) many += " one.json";
  ExpectMistake("report" + many + " -o page.html", {"found 25 steps, expected at most 24"});
  ExpectMistake("report one.json --pipelines gpipe -o page.html", {"a \"pipeline\""});
  ExpectMistake("report --pipelines gpipe,zb-h9 -o page.html", {"zb-h9", "zb-h1"});
  ExpectMistake("report --pipelines dualpipe --set training.micro_batches=4 -o page.html",
                {"found 4 micro-batches, expected at least 8"});
  ExpectMistake("report one.json --versus strategy.depth=2 -o page.html",
                {"--versus", "one.json is a timeline"});
  ExpectMistake("report one.json --set strategy.depth=2 -o page.html", {"--set"});
  ExpectMistake("report one.json -o nowhere/page.html", {"cannot write nowhere/page.html"});
  ExpectMistake("report " + Shipped("cpu-4d") + " --versus strategy.dept=2 -o page.html",
                {"--versus", "dept"});
  ExpectMistake("report " + Shipped("cpu-4d") + " --ranks 99 -o page.html", {"--ranks"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "page.html"));
}

TEST_F(ReportCommandTest, PicturesLieOneAboveTheOther) {
  const Outcome outcome =
      Execute("report " + Shipped("cpu-pipeline") + " " + Shipped("cpu-4d") + " --svg -o two.svg");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string svg = ReadFile(folder_ / "two.svg");
  EXPECT_THAT(svg, StartsWith("<svg "));
  EXPECT_THAT(svg, HasSubstr(">micro-batch</text>"));
  EXPECT_THAT(svg, HasSubstr("stage 1"));
  ExpectMistake("report " + Shipped("cpu-4d") + " --window 1ms-2ms -o page.html", {"--svg"});
}

TEST_F(ReportCommandTest, APictureShowsRanksThatDifferAndThoseThatAreAskedFor) {
  const std::string lesson = SourceDir() + "/scenarios/lessons/straggler.json";
  const std::string slow =
      " --set 'simulator.perturbation={\"stragglers\": [{\"devices\": \"node1/**\", "
      "\"compute_time\": \"1.5x\"}]}' --svg -o slow.svg";
  ASSERT_EQ(Execute("report " + lesson + slow).code, 0);
  std::string svg = ReadFile(folder_ / "slow.svg");
  EXPECT_THAT(svg, HasSubstr("(rank 0)"));
  EXPECT_THAT(svg, HasSubstr("(rank 1)"));
  EXPECT_THAT(svg, Not(HasSubstr("(rank 3)")));
  ASSERT_EQ(Execute("report " + lesson + " --ranks 3" + slow).code, 0);
  svg = ReadFile(folder_ / "slow.svg");
  EXPECT_THAT(svg, HasSubstr("(rank 3)"));
}

TEST_F(ReportCommandTest, MicroBatchesAndWaitsInAPictureSayWhatTheyAre) {
  const Outcome outcome = Execute("report " + Shipped("cpu-pipeline") + " --svg -o stages.svg");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string svg = ReadFile(folder_ / "stages.svg");
  EXPECT_THAT(svg, HasSubstr("<title>micro-batch 1, forward: "));
  EXPECT_THAT(svg, HasSubstr("<title>micro-batch 2, backward: "));
  EXPECT_THAT(svg, HasSubstr(" waits for the group: "));
}

TEST_F(ReportCommandTest, ASearchIsDots) {
  const nlohmann::json page =
      Reported(Shipped("cpu-4d") +
               " --search --set 'search={\"axes\": [{\"path\": \"strategy.overlap_all_gather\", "
               "\"values\": [true, false]}], \"objective\": \"time\"}'");
  ASSERT_EQ(page["tables"].size(), 1u);
  EXPECT_EQ(page["tables"][0]["kind"], "search");
  EXPECT_EQ(page["tables"][0]["metric"], "time");
  EXPECT_GE(page["tables"][0]["rows"].size(), 2u);
  ASSERT_EQ(page["machines"]["machines"].size(), 1u);
  EXPECT_EQ(page["machines"]["machines"][0]["run"], 0);
  EXPECT_EQ(page["runs"].size(), 1u);  // the best
}

TEST_F(ReportCommandTest, ClustersAreComparedAndTheirBestsPlayed) {
  const nlohmann::json page =
      Reported(Shipped("strategy-fsdp") + " --clusters dgx-a100,dgx-h100:nodes=1");
  const nlohmann::json& machines = page["machines"]["machines"];
  ASSERT_EQ(machines.size(), 2u);
  EXPECT_EQ(machines[0]["name"], "dgx-a100");
  EXPECT_EQ(machines[1]["name"], "dgx-h100:nodes=1");
  const nlohmann::json& points = page["machines"]["points"];
  for (size_t i = 0; i < 2; ++i) {
    const nlohmann::json& run = page["runs"][i];
    EXPECT_EQ(run["title"], machines[i]["name"]);
    EXPECT_NEAR(run["result"]["step_seconds"].get<double>(),
                points["values"]["step"][machines[i]["point"].get<size_t>()].get<double>(), 1e-5);
  }
  EXPECT_THAT(page["machines"]["sentence"].get<std::string>(),
              StartsWith("dgx-h100:nodes=1 is the fastest: "));
}

// The search made the changes before its own: they do not undo what it found.
TEST_F(ReportCommandTest, ABestIsPlayedAsItWasFound) {
  const nlohmann::json page = Reported(
      Shipped("cpu-4d") +
      " --search --set training.batch=16 --set 'search={\"default_axes\": false, \"axes\": "
      "[{\"path\": \"training.batch\", \"values\": [8]}]}'");
  EXPECT_NEAR(page["runs"][0]["result"]["step_seconds"].get<double>(),
              page["machines"]["points"]["values"]["step"][0].get<double>(), 1e-7);
}

TEST_F(ReportCommandTest, APageHasOneSearch) {
  const std::string both = Shipped("cpu-4d") + " " + Shipped("cpu-fsdp");
  ExpectMistake("report " + both + " --search -o page.html", {"--search is for one scenario"});
  ExpectMistake("report " + Shipped("cpu-4d") + " --search --versus a.b=1 -o page.html",
                {"--search and --versus do not go together"});
  ExpectMistake("report " + Shipped("cpu-4d") + " --live --clusters dgx-a100 -o page.html",
                {"--live and --clusters do not go together"});
  ExpectMistake("report " + Shipped("cpu-4d") + " --clusters dgx-z100 -o page.html", {"dgx-z100"});
}

TEST_F(ReportCommandTest, ThePageGoesToStandardOutputToo) {
  Write("one.json", TimelineText("alone", "[[0, 0, 0, 0, 7000]]"));
  const Outcome outcome = Execute("report one.json -o -");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, StartsWith("<!doctype html>"));
  EXPECT_EQ(outcome.err, "");
}

}  // namespace report_test
}  // namespace rehearse
