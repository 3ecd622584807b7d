// The program that tools/rehearse builds first, without the formats of other programs.
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace first_program_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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

TEST_F(FirstProgramTest, SaysHowToHaveTheFormatsOfOthers) {
  const std::string box = Write("box.xml", "<system/>");
  for (const std::string& arguments :
       {"import nccl '" + box + "'", "compare '" + box + "' --cluster dgx-a100",
        "topology --import-nccl '" + box + "'", std::string("topology dgx-a100 --infragraph")}) {
    const Outcome outcome = ExecuteFirst(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_THAT(outcome.err, StartsWith("rehearse: "));
    EXPECT_THAT(outcome.err, HasSubstr("no formats of other programs; tools/rehearse builds"))
        << arguments;
  }
}

}  // namespace first_program_test
}  // namespace rehearse
