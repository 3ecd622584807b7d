// What commands print for other programs, read as these would.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace output_format_test {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// Rows of cells, as RFC 4180 has them.
std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row = {""};
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      row.back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      row.emplace_back();
    } else if (!quoted && c == '\n') {
      rows.push_back(row);
      row = {""};
    } else {
      row.back() += c;
    }
  }
  return rows;
}

std::vector<nlohmann::ordered_json> ParseLines(const std::string& text) {
  std::vector<nlohmann::ordered_json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    rows.push_back(nlohmann::ordered_json::parse(line));
  return rows;
}

struct Printed {
  std::string command;
  std::vector<std::string> columns;  // some of them
};

class OutputFormatTest : public ProgramTest {
 protected:
  // In both formats the same cells; a number is the same double.
  void ExpectTable(const Printed& printed) const {
    SCOPED_TRACE(printed.command);
    const Outcome csv = Execute(printed.command + " --format csv");
    ASSERT_EQ(csv.code, 0) << csv.err;
    const Outcome lines = Execute(printed.command + " --format jsonl");
    ASSERT_EQ(lines.code, 0) << lines.err;
    const auto cells = ParseCsv(csv.out);
    const auto objects = ParseLines(lines.out);
    ASSERT_EQ(cells.size(), objects.size() + 1);
    EXPECT_GT(objects.size(), 0u);
    EXPECT_THAT(cells[0], IsSupersetOf(printed.columns));
    for (size_t i = 0; i < objects.size(); ++i) {
      ASSERT_EQ(cells[i + 1].size(), cells[0].size());
      size_t column = 0;
      for (const auto& [key, value] : objects[i].items()) {
        EXPECT_EQ(key, cells[0][column]);
        const std::string& cell = cells[i + 1][column++];
        // From another run of the simulator.
        if (key.starts_with("simulator.")) continue;
        if (value.is_null()) {
          EXPECT_EQ(cell, "");
        } else if (value.is_string()) {
          EXPECT_EQ(cell, value.get<std::string>());
        } else if (value.is_number()) {
          char* end = nullptr;
          EXPECT_EQ(std::strtod(cell.c_str(), &end), value.get<double>()) << key;
          EXPECT_EQ(*end, '\0') << key << ": " << cell;
        } else {
          EXPECT_EQ(cell, value.dump());
        }
      }
      EXPECT_EQ(column, cells[0].size());
    }
  }
};

TEST_F(OutputFormatTest, EveryCommandThatPrintsRowsPrintsThemForOtherPrograms) {
  const std::string scenario = "'" + Shipped("cpu-4d") + "'";
  Write("study.json", R"({"name": "s", "metric": "step_seconds", "base": ")" + Shipped("cpu-4d") +
                          R"(", "grid": [{"path": "training.batch", "values": [8, 9]}]})");
  const Outcome log = Execute("collective all-reduce --cluster dgx-a100 -b 1M -e 4M");
  Write("nccl.log", log.out);
  ASSERT_EQ(Execute("run " + scenario + " --out out").code, 0);
  const std::vector<Printed> commands = {
      {"sweep study.json", {"training.batch", "status", "reason", "step_seconds"}},
      {"collective all-gather --cluster dgx-a100 -b 1M -e 4M", {"bytes", "seconds"}},
      {"compare " + scenario + " out", {"list", "a_seconds", "relative_difference"}},
      {"compare out/result.json out/result.json", {"list", "a_seconds"}},
      {"compare nccl.log --cluster dgx-a100", {"bytes", "measured_seconds", "relative_error"}},
      {"list", {"kind", "name", "parameters", "summary", "source"}},
      {"list devices", {"name"}},
      {"topology dgx-a100", {"kind", "low", "high", "latency_seconds"}},
      {"topology dgx-a100 --matrix", {"from_rank", "to", "bandwidth_bytes_per_second"}},
      {"topology dgx-a100 --path 0,1", {"hop", "bottleneck"}},
      {"run " + scenario, {"step_seconds", "breakdown.idle_seconds", "given.training.batch"}},
      {"run '" + Shipped("jobs-two-trainings") + "'", {"job.name", "job.result.step_seconds"}},
      {"explain " + scenario, {"op", "begin_seconds", "end_seconds"}},
  };
  for (const Printed& command : commands) ExpectTable(command);
  for (const char* list : {"path", "by-kind", "by-op", "by-layer", "slack", "exposed",
                           "bottlenecks", "links", "sharers", "sensitivities"})
    ExpectTable({"explain " + scenario + " --table " + list, {}});
  ExpectTable({"explain '" + Shipped("cpu-pipeline") + "' --table stages", {}});
}

// The one that is impossible has a reason, and no number.
TEST_F(OutputFormatTest, WordsStandApartFromNumbers) {
  Write("study.json", R"({"name": "s", "metric": "step_seconds", "base": ")" + Shipped("cpu-4d") +
                          R"(", "grid": [{"path": "training.batch", "values": [8, 9]}]})");
  const auto rows = ParseCsv(Execute("sweep study.json --format csv").out);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"point", "training.batch", "status", "reason",
                                               "step_seconds", "best"}));
  EXPECT_EQ(rows[1][2], "done");
  EXPECT_EQ(rows[2][1], "9");
  EXPECT_EQ(rows[2][2], "impossible");
  EXPECT_THAT(rows[2][3], HasSubstr("a batch of 9"));
  EXPECT_EQ(rows[2][4], "");
}

TEST_F(OutputFormatTest, EveryCommandNamesTheFormatsThatItHas) {
  ExpectMistake("list --format cvs",
                {"--format: found \"cvs\"; did you mean \"csv\"?", "text, json, csv and jsonl"});
  ExpectMistake("sweep x.json --format yaml", {"text, json, csv, jsonl and markdown"});
  ExpectMistake("collective all-reduce --cluster dgx-a100 --explain --format csv",
                {"found \"csv\" with --explain; known are text and json"});
  ExpectMistake("topology dgx-a100 --svg --format jsonl", {"--svg", "--format jsonl"});
  const std::string scenario = "'" + Shipped("cpu-4d") + "'";
  ExpectMistake("explain " + scenario + " --format csv --table link",
                {"--table", "did you mean \"links\"?"});
  ExpectMistake("explain " + scenario + " --table links", {"--table is for --format csv"});
}

}  // namespace output_format_test
}  // namespace rehearse
