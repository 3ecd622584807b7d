// "rehearse lessons" as its user meets it.
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace lessons_test {

using ::testing::HasSubstr;
using ::testing::Not;

class LessonsCommandTest : public ProgramTest {};

TEST_F(LessonsCommandTest, TheyAreListed) {
  const Outcome outcome = Execute("lessons");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name :
       {"ring", "two-rings", "beside-dw", "prefetch", "chunks", "straggler", "bubble", "experts",
        "tree", "ecmp", "zero-bubble", "transposed", "incast"})
    EXPECT_THAT(outcome.out, HasSubstr(std::string("  ") + name + " "));
}

TEST_F(LessonsCommandTest, ALessonAsksAndKeepsItsAnswer) {
  const Outcome asked = Execute("lessons prefetch");
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_THAT(asked.out, HasSubstr("20.01 ms"));
  EXPECT_THAT(asked.out, HasSubstr("gather"));
  EXPECT_THAT(asked.out, HasSubstr("rehearse lessons prefetch --answer"));
  EXPECT_THAT(asked.out, Not(HasSubstr("14 ms")));
  const Outcome answered = Execute("lessons prefetch --answer");
  EXPECT_EQ(answered.code, 0) << answered.err;
  EXPECT_THAT(answered.out, HasSubstr("Changed: 14 ms"));
  EXPECT_THAT(answered.out, HasSubstr("All but the first gather"));
}

// "To change" shows a line that a shell can run, with the lesson's step as its result.
TEST_F(LessonsCommandTest, TheCommandThatIsShownMakesTheChange) {
  const std::string out = Execute("lessons prefetch").out;
  const size_t begin = out.find("rehearse run scenarios/");
  ASSERT_NE(begin, std::string::npos);
  std::string command = out.substr(begin, out.find('\n', begin) - begin);
  command.replace(0, std::string("rehearse run scenarios/").size(),
                  "$rehearse run " + SourceDir() + "/scenarios/");
  EXPECT_EQ(Shell(command + " > shown.txt"), 0);
  EXPECT_THAT(ReadFile(folder_ / "shown.txt"), HasSubstr("One step takes 14 ms"));
}

TEST_F(LessonsCommandTest, OwnChangesAreDrawnBelow) {
  const Outcome outcome =
      Execute("lessons ring --set cluster.devices=2 --set jobs.0.schedule.ranks=2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("With your change: 4.004 ms"));
}

TEST_F(LessonsCommandTest, ThePageHoldsAllOfThemAndTheSimulator) {
  const Outcome outcome = Execute("lessons -o lessons.html");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("open it in a browser"));
  const std::string page = ReadFile(folder_ / "lessons.html");
  for (const char* id :
       {"rehearse-lessons", "rehearse-simulator", "rehearse-data-ring", "rehearse-data-experts"})
    EXPECT_THAT(page, HasSubstr(std::string("id=\"") + id + "\">"));
  EXPECT_LT(page.size(), size_t{3} << 20);
}

// What a teacher opens who has only cloned; it is written again when what lessons show changes.
TEST_F(LessonsCommandTest, ThePageInTheRepositoryIsWhatTheProgramMakes) {
  const Outcome outcome = Execute("lessons -o lessons.html --beside ../../tools/viewer/bundle");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = ReadFile(folder_ / "lessons.html");
  EXPECT_LT(page.size(), size_t{200} << 10);
  EXPECT_TRUE(page == ReadFile(SourceDir() + "/scenarios/lessons/lessons.html"))
      << "in scenarios/lessons: rehearse lessons -o lessons.html --beside "
         "../../tools/viewer/bundle";
  for (const char* part : {"viewer.js", "simulator.js"}) {
    EXPECT_THAT(page, HasSubstr(std::string("<script src=\"../../tools/viewer/bundle/") + part));
    EXPECT_TRUE(std::filesystem::exists(SourceDir() + "/tools/viewer/bundle/" + part));
  }
}

TEST_F(LessonsCommandTest, MistakesAreToldAndLeaveNothingBehind) {
  const auto mistake = [&](const std::string& arguments) {
    const Outcome outcome = Execute("lessons " + arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(mistake("rign"), HasSubstr("did you mean \"ring\"?"));
  EXPECT_THAT(mistake("--answer"), HasSubstr("which lesson?"));
  EXPECT_THAT(mistake("ring -o x.html"), HasSubstr("leave out the lesson's name"));
  EXPECT_THAT(mistake("ring --answer --set cluster.devices=2"), HasSubstr("one of them"));
  EXPECT_THAT(mistake("ring --set cluster.devcies=2"), HasSubstr("did you mean"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.html"));
}

}  // namespace lessons_test
}  // namespace rehearse
