// "rehearse validate" as its user meets it.
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace validate_test {

using ValidateCommandTest = ProgramTest;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kTable =
    "name,cluster,model.preset,training.batch,training.sequence,training.recomputation,"
    "strategy.kind,strategy.data,strategy.overlap_gradients,step,memory,source\n"
    "one,dgx-a100,gpt-125m,8,1024,none,data-parallel,8,true,20ms,3GiB,a page\n"
    "two,dgx-a100:nodes=2,gpt-125m,16,1024,none,data-parallel,16,true,22ms,,a page\n";

TEST_F(ValidateCommandTest, EveryFormatHasRowsAndGroups) {
  Write("t.csv", kTable);
  const Outcome text = Execute("validate t.csv");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("a100-40g, data-parallel"));
  const Outcome csv = Execute("validate t.csv --format csv --threads 1");
  EXPECT_THAT(csv.out, StartsWith("row,group,source,measured_seconds,predicted_seconds,"));
  EXPECT_THAT(csv.out, HasSubstr("\none,\"a100-40g, data-parallel\",a page,0.02,"));
  EXPECT_THAT(Execute("validate t.csv --format markdown").out, HasSubstr("| --- | ---: |"));
  const auto json = nlohmann::json::parse(Execute("validate t.csv --format json").out);
  EXPECT_EQ(json["schema"], "rehearse.validation.v1");
  EXPECT_EQ(json["rows"][1]["name"], "two");
  EXPECT_EQ(json["groups"][0]["rows"], 2);
  EXPECT_TRUE(json["rows"][1]["memory_relative_error"].is_null());
}

TEST_F(ValidateCommandTest, SetChangesEveryRowAndSvgDrawsThem) {
  Write("t.csv", kTable);
  const Outcome drawn = Execute("validate t.csv --set training.batch=32 --svg p.svg");
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  const std::string svg = ReadFile(folder_ / "p.svg");
  EXPECT_THAT(svg, StartsWith("<svg "));
  EXPECT_THAT(svg, HasSubstr("<title>two: "));
  const Outcome printed = Execute("validate t.csv --set training.batch=32 --svg -");
  EXPECT_EQ(printed.out, svg);
  EXPECT_EQ(printed.err, drawn.out);
}

TEST_F(ValidateCommandTest, MistakesAreOneLine) {
  Write("t.csv", std::string(kTable) + "two,dgx-a100,,,,,,,,1s,,\n");
  ExpectMistake("validate t.csv", {"t.csv:4: a row is already called \"two\", in line 3"});
  ExpectMistake("validate", {"no table given"});
  ExpectMistake("validate none.csv", {"none.csv", "No such file"});
  Write("good.csv", kTable);
  ExpectMistake("validate good.csv --svg nowhere/p.svg", {"cannot write nowhere/p.svg"});
  ExpectMistake("validate good.csv --set training.batch=7", {"good.csv:2", "batch of 7"});
  ExpectMistake("validate '" + Shipped("cpu-4d") + "'",
                {"cpu-4d.json:1: found JSON, expected a table"});
}

}  // namespace validate_test
}  // namespace rehearse
