// rehearse run --gantt.
#include <algorithm>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/places.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace gantt_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using GanttProgramTest = ProgramTest;

size_t WidestLine(const std::string& text) {
  std::istringstream lines(text);
  size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto characters = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    });
    widest = std::max(widest, static_cast<size_t>(characters));
  }
  return widest;
}

std::string GanttIn(const std::string& output) { return output.substr(output.find("Timeline ")); }

TEST_F(GanttProgramTest, TheExampleOfTheReadmeIsWhatItPrints) {
  const std::string options = "--gantt --window 1.5s-1.62s";
  const Outcome outcome = Execute("run '" + Shipped("axonn-gpt20b-perlmutter") + "' " + options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string readme = ReadFile(SourceDir() + "/scenarios/README.md");
  EXPECT_THAT(readme, HasSubstr("axonn-gpt20b-perlmutter.json " + options + "\n"));
  EXPECT_THAT(readme, HasSubstr("```text\n" + GanttIn(outcome.out) + "```\n"));
}

TEST_F(GanttProgramTest, ItFollowsTheResultAsWideAsTheTerminalOr100) {
  const std::string run = "run '" + Shipped("axonn-gpt20b-perlmutter") + "'";
  const Outcome plain = Execute(run);
  const Outcome drawn = Execute(run + " --gantt --ranks 0,5");
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  // Up to the wall time, which differs.
  EXPECT_EQ(drawn.out.substr(0, drawn.out.find("Simulated in")),
            plain.out.substr(0, plain.out.find("Simulated in")));
  EXPECT_EQ(WidestLine(GanttIn(drawn.out)), 100u);
  EXPECT_THAT(drawn.out,
              AllOf(HasSubstr("(rank 0)\n"), HasSubstr("(rank 5)\n"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(Shell("COLUMNS=60 \"$rehearse\" " + run + " --gantt > out.txt"), 0);
  EXPECT_EQ(WidestLine(GanttIn(ReadFile(folder_ / "out.txt"))), 60u);
}

// 1,024 ranks, of which one is played; two jobs, each with its first device.
TEST_F(GanttProgramTest, FoldedRanksAndJobsAreDrawnToo) {
  const Outcome folded = Execute("run '" + Shipped("axonn-weak-80b") + "' --gantt --ranks 1000");
  EXPECT_EQ(folded.code, 0) << folded.err;
  EXPECT_THAT(GanttIn(folded.out), AllOf(HasSubstr("(rank 1000)"), HasSubstr("\n  depth ")));
  const Outcome jobs = Execute("run '" + Shipped("jobs-two-trainings") + "' --gantt");
  EXPECT_EQ(jobs.code, 0) << jobs.err;
  EXPECT_THAT(GanttIn(jobs.out), HasSubstr("Timeline   2 ranks"));
}

TEST_F(GanttProgramTest, Mistakes) {
  const std::string run = "run '" + Shipped("axonn-gpt20b-perlmutter") + "' ";
  ExpectMistake(run + "--gantt --format json", {"--gantt", "--format json"});
  ExpectMistake(run + "--window 1s-2s", {"--window", "--gantt", "--out DIR"});
  ExpectMistake(run + "--gantt --ranks 16", {"--ranks", "\"16\"", "0 to 15"});
  ExpectMistake(run + "--gantt --window 5s-6s", {"--window", "after the step's end at "});
  ExpectMistake(run + "--gant", {"unknown option", "--gantt"});
}

}  // namespace gantt_test
}  // namespace rehearse
