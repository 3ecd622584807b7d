// What commands say while they work, and what they keep when they are interrupted.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/sanitizers.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace progress_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// How long the program is let run before it is interrupted: enough to be at work.
constexpr double kSeconds = kIsSanitized ? 12 : 2;

class InterruptedProgramTest : public ProgramTest {
 protected:
  // Exit code; what it printed is in out.txt and err.txt. A shell has what it runs in the
  // background ignore SIGINT.
  int InterruptAfter(double seconds, const std::string& arguments) const {
    return Shell("env --default-signal=INT \"$rehearse\" " + arguments +
                 " > out.txt 2> err.txt & sleep " + std::to_string(seconds) +
                 "; kill -s INT $!; wait $!");
  }
  std::string Out() const { return ReadFile(folder_ / "out.txt"); }
  std::string Err() const { return ReadFile(folder_ / "err.txt"); }

  // More points than anybody would wait for, some 10 ms each.
  void WriteLongStudy() const {
    std::string seeds = "0";
    for (int seed = 1; seed < 20'000; ++seed) seeds += ", " + std::to_string(seed);
    Write("study.json",
          R"({"name": "long", "metric": "step_seconds", "base": ")" + Shipped("axonn-weak-80b") +
              R"(", "grid": [{"path": "simulator.routing_seed", "values": [)" + seeds + "]}]}");
  }
};

TEST_F(InterruptedProgramTest, ASweepPrintsThePointsThatAreDone) {
  WriteLongStudy();
  EXPECT_EQ(InterruptAfter(kSeconds, "sweep study.json"), 130);
  EXPECT_THAT(Out(), ContainsRegex("^long   [0-9]+ points of 20000: interrupted\n"));
  EXPECT_THAT(Err(),
              AllOf(StartsWith("rehearse: interrupted: "),
                    HasSubstr(" of 20000 points are done; with --results FILE or --out DIR they "
                              "would be kept")));
}

TEST_F(InterruptedProgramTest, ASearchSaysHowItGoesOn) {
  auto scenario = nlohmann::json::parse(ReadFile(Shipped("axonn-weak-80b")));
  auto& axis = scenario["search"]["axes"][0];
  axis["path"] = "simulator.routing_seed";
  for (int seed = 0; seed < 2'000; ++seed) axis["values"].push_back(seed);
  scenario["search"]["default_axes"] = false;
  scenario["search"]["decide"] = "simulation";
  Write("search.json", scenario.dump());
  EXPECT_EQ(InterruptAfter(kSeconds, "search search.json"), 130);
  EXPECT_THAT(Err(), AllOf(HasSubstr(" points that were looked at, of 2000; with --results FILE"),
                           HasSubstr("the same command goes on there")));
  EXPECT_EQ(InterruptAfter(kSeconds, "search search.json --results kept.sqlite"), 130);
  EXPECT_THAT(Err(), HasSubstr("kept in kept.sqlite; the same command goes on there"));
}

TEST_F(InterruptedProgramTest, AnExecutionReportsTheStepsThatWereMeasured) {
  // After the first line of a log, each line is a step.
  EXPECT_EQ(
      Shell("env --default-signal=INT \"$rehearse\" execute '" + Shipped("cpu-4d") +
            "' --warmup 0 --repeat 100000 --format json --out o > out.txt 2> err.txt & until [ "
            "$(cat o/rank-*.jsonl 2> /dev/null | wc -l) -ge 12 ]; do sleep 0.05; done; "
            "kill -s INT $!; wait $!"),
      130);
  const size_t measured = nlohmann::json::parse(Out())["repeat_seconds"].size();
  EXPECT_GT(measured, 0u);
  EXPECT_THAT(Err(),
              HasSubstr("interrupted: measured " + std::to_string(measured) + " of 100000 steps"));
  EXPECT_TRUE(fs::exists(folder_ / "o/timeline.json"));
}

TEST_F(InterruptedProgramTest, ATrainingThatIsCutIsShownWithOneStepTimed) {
  EXPECT_EQ(InterruptAfter(kSeconds, "execute '" + Shipped("cpu-data-parallel") +
                                         "' --steps 100000 --repeat 100000 --format json"),
            130);
  const auto result = nlohmann::json::parse(Out());
  EXPECT_EQ(result["repeat_seconds"].size(), 1u);
  const size_t trained = result["training"]["losses"].size();
  EXPECT_GT(trained, 0u);
  EXPECT_THAT(Err(), HasSubstr("interrupted: trained " + std::to_string(trained) + " of 100000"));
}

TEST_F(InterruptedProgramTest, ACalibrationThatKnowsNoWorldWritesNothing) {
  EXPECT_EQ(InterruptAfter(kIsSanitized ? 4 : 1.5, "calibrate --ranks 2 -o mine.json"), 130);
  EXPECT_EQ(Out(), "");
  EXPECT_THAT(Err(), AllOf(StartsWith("rehearse: interrupted: nothing is written to mine.json"),
                           HasSubstr("--networks")));
  EXPECT_FALSE(fs::exists(folder_ / "mine.json"));
}

// A terminal of its own: util-linux's script.
class TerminalTest : public InterruptedProgramTest {
 protected:
  std::string Typescript(const std::string& variables) const {
    EXPECT_EQ(Shell("env -u OMPI_COMM_WORLD_RANK -u SLURM_PROCID " + variables +
                    " script -qec \"timeout --foreground -s INT " + std::to_string(kSeconds) +
                    " '$rehearse' sweep study.json --out kept; rm -r kept\" log.txt > out.txt "
                    "2>&1"),
              0);
    return Out();
  }
};

TEST_F(TerminalTest, ProgressStandsInPlaceWhereItCan) {
  if (std::system("command -v script > /dev/null") != 0) GTEST_SKIP() << "no script here";
  WriteLongStudy();
  const std::string able = Typescript("TERM=xterm");
  EXPECT_THAT(able, ContainsRegex("\r\x1b\\[Ksweeping: [0-9]+ of 20000 points"));
  EXPECT_THAT(able, HasSubstr("; best step_seconds "));
  EXPECT_THAT(able, ContainsRegex("\r\x1b\\[Krehearse: interrupted: [0-9]+ of 20000 points"));
  // Elsewhere it is printed as lines, the first after half a minute.
  for (const char* variables : {"TERM=dumb", "TERM=xterm OMPI_COMM_WORLD_RANK=0"}) {
    EXPECT_THAT(Typescript(variables), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("sweeping")),
                                             StartsWith("rehearse: interrupted: ")))
        << variables;
  }
}

}  // namespace progress_test
}  // namespace rehearse
