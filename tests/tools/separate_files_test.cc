// An output never takes the place of an input, nor of another output.
#include <string>

#include <gtest/gtest.h>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace separate_files_test {

class SeparateFilesTest : public ProgramTest {
 protected:
  SeparateFilesTest() { Write("step.json", scenario_); }

  const std::string scenario_ = ReadFile(Shipped("cpu-4d"));
};

TEST_F(SeparateFilesTest, WhatIsReadIsNotWrittenOver) {
  ExpectMistake("plan step.json -o step.json",
                {"--output: found \"step.json\", which is read; expected another file"});
  ExpectMistake("report step.json -o ./step.json", {"--output", "which is read"});
  ExpectMistake("search step.json --out step.json", {"--out:", "which is read"});
  EXPECT_EQ(ReadFile(folder_ / "step.json"), scenario_);
}

TEST_F(SeparateFilesTest, AClusterFileIsNotWrittenOver) {
  ASSERT_EQ(Execute("topology switch:devices=2 -o two.json").code, 0);
  ExpectMistake("topology two.json --svg -o two.json", {"--output", "which is read"});
  EXPECT_NE(ReadFile(folder_ / "two.json").find("\"fabric\""), std::string::npos);
}

TEST_F(SeparateFilesTest, ALinkToWhatIsReadIsItToo) {
  std::filesystem::create_symlink("step.json", folder_ / "link.json");
  ExpectMistake("plan step.json -o link.json", {"--output", "link.json", "which is read"});
}

TEST_F(SeparateFilesTest, TwoOutputsNeedTwoPlaces) {
  ExpectMistake("plan step.json --goal step.goal -o step.goal",
                {"--goal and --output: both are step.goal; expected two places"});
  ExpectMistake("plan step.json --goal - -o -", {"both are standard output"});
  ExpectMistake("calibrate --device-points calibration.json", {"both are calibration.json"});
  ExpectMistake("search step.json --out best --results best", {"both are best"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "best"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "step.goal"));
}

TEST_F(SeparateFilesTest, AFolderMayBeCalledAsAPresetIs) {
  const std::string step =
      "run '" + Shipped("schedules/two-ranks") + "' --cluster switch:devices=2";
  EXPECT_EQ(Execute(step + " --out switch").code, 0);
  EXPECT_EQ(Execute(step + " --out switch").code, 0);
}

TEST_F(SeparateFilesTest, APipeMayBeBothEnds) {
  EXPECT_EQ(Shell("$rehearse plan - -o - < step.json > step.schedule.json"), 0);
  EXPECT_EQ(Execute("plan step.json --goal /dev/null -o /dev/null").code, 0);
  EXPECT_EQ(Execute("plan step.json --goal -").code, 0);
}

}  // namespace separate_files_test
}  // namespace rehearse
