// The program that tools/rehearse builds first, which only runs scenarios.
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace first_program_test {

using ::testing::HasSubstr;

class FirstProgramTest : public ProgramTest {
 protected:
  // In place of the whole program.
  Outcome ExecuteFirst(const std::string& arguments) const {
    const int status =
        Shell("'" + ProgramPath() + "_first' " + arguments + " > out.txt 2> err.txt");
    return {status, ReadFile(folder_ / "out.txt"), ReadFile(folder_ / "err.txt")};
  }
};

TEST_F(FirstProgramTest, ComesToTheSameStep) {
  const std::string arguments =
      "run '" + SourceDir() + "/scenarios/axonn-gpt20b-perlmutter.json' --format json";
  const Outcome first = ExecuteFirst(arguments);
  const Outcome whole = Execute(arguments);
  EXPECT_EQ(first.code, 0) << first.err;
  const std::string hash = "\"timeline_hash\"";
  EXPECT_THAT(first.out, HasSubstr(hash));
  const auto from_hash = [&](const Outcome& outcome) {
    const size_t begin = outcome.out.find(hash);
    return outcome.out.substr(begin, outcome.out.find('\n', begin) - begin);
  };
  EXPECT_EQ(from_hash(first), from_hash(whole));
}

// The launcher then builds the whole program and starts that.
TEST_F(FirstProgramTest, SaysByItsExitStatusWhereItWouldHaveToKnowMore) {
  const std::string scenario = "run '" + SourceDir() + "/scenarios/cpu-4d.json' ";
  EXPECT_EQ(ExecuteFirst(scenario + "--out traces --trace kineto").code, 86);
  const std::string calibration =
      Write("here.json", R"({"schema": "rehearse.calibration.v1", "collective_overhead": "7us",
 "about": {"machine": {"processor": "a", "cores": 2}, "representative": true}})");
  EXPECT_EQ(ExecuteFirst(scenario + "--calibration '" + calibration + "'").code, 86);
}

}  // namespace first_program_test
}  // namespace rehearse
