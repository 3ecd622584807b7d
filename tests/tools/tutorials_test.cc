// The tutorials' commands, run as written, print what the tutorials show.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/places.h"
#include "tests/support/sanitizers.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace tutorials_test {

namespace fs = std::filesystem;

// Commands of a ```sh block, what the ```text block after it shows, if there is one, and what is
// said until the next commands. A block of ```sh measured may find the machine too busy to measure.
struct Step {
  bool is_measured = false;
  std::string commands;
  std::vector<std::string> shown;
  std::string said;
};

std::vector<Step> StepsOf(const std::string& path) {
  std::vector<Step> steps;
  std::string fence;  // of the block that is open: "sh", "text" or another
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      fence = fence.empty() ? line.substr(3) + "`" : "";
      if (fence.starts_with("sh")) steps.push_back({fence == "sh measured`", "", {}, ""});
    } else if (fence.starts_with("sh")) {
      steps.back().commands += line + "\n";
    } else if (fence == "text`" && !steps.empty()) {
      steps.back().shown.push_back(line);
    } else if (fence.empty() && !steps.empty()) {
      steps.back().said += line + "\n";
    }
  }
  return steps;
}

// "…" is any text of a line.
bool Matches(const std::string& shown, const std::string& line) {
  const std::string any = "…";
  size_t at = 0;
  for (size_t begin = 0; begin <= shown.size();) {
    const size_t end = std::min(shown.find(any, begin), shown.size());
    const std::string part = shown.substr(begin, end - begin);
    const bool is_last = end == shown.size();
    size_t found = 0;
    if (begin == 0) {
      found = line.starts_with(part) ? 0 : std::string::npos;
    } else if (is_last) {
      const bool fits = line.size() >= at + part.size() && line.ends_with(part);
      found = fits ? line.size() - part.size() : std::string::npos;
    } else {
      found = line.find(part, at);
    }
    if (found == std::string::npos) return false;
    at = found + part.size();
    if (is_last) return at == line.size();
    begin = end + any.size();
  }
  return at == line.size();
}

// A line that is only "…" stands for any number of lines; the others come in order.
void ExpectShown(const std::vector<std::string>& shown, const std::string& output,
                 const std::string& commands) {
  std::vector<std::string> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  size_t at = 0;
  bool may_skip = false;
  for (const std::string& wanted : shown) {
    if (wanted == "…") {
      may_skip = true;
      continue;
    }
    while (may_skip && at < lines.size() && !Matches(wanted, lines[at])) ++at;
    ASSERT_LT(at, lines.size()) << commands << "did not print\n" << wanted << "\nbut\n" << output;
    ASSERT_TRUE(Matches(wanted, lines[at])) << commands << "printed\n"
                                            << lines[at] << "\ninstead of\n"
                                            << wanted << "\n\n"
                                            << output;
    ++at;
    may_skip = false;
  }
  EXPECT_TRUE(may_skip || at == lines.size()) << commands << "printed more than is shown:\n"
                                              << (at < lines.size() ? lines[at] : "");
}

std::string WithoutBlanks(const std::string& text) {
  std::string dense;
  for (const char c : text)
    if (std::isspace(static_cast<unsigned char>(c)) == 0 && c != ',') dense += c;
  return dense;
}

// "93.1 %" and "1.479 ms" of a text, without blanks.
std::vector<std::string> FiguresIn(const std::string& text) {
  static const std::regex figure(
      R"((^|[^\w.])(\d[\d.,]*\d|\d)\s?(%|ms|us|s|GiB|MiB|GB/s)(?![\w/]))");
  std::vector<std::string> figures;
  for (std::sregex_iterator at(text.begin(), text.end(), figure), end; at != end; ++at)
    figures.push_back(WithoutBlanks((*at)[2].str() + (*at)[3].str()));
  return figures;
}

class TutorialsTest : public ProgramTest {
 protected:
  // A folder that looks like the repository, where the commands may write.
  TutorialsTest() {
    fs::create_directories(folder_ / "tools");
    fs::create_directory_symlink(SourceDir() + "/scenarios", folder_ / "scenarios");
    Write("tools/rehearse", "#!/bin/sh\nexec '" + ProgramPath() + "' \"$@\"\n");
    fs::permissions(folder_ / "tools/rehearse", fs::perms::owner_all);
  }

  void Follow(const std::string& name) {
    const std::vector<Step> steps = StepsOf(SourceDir() + "/scenarios/tutorials/" + name);
    ASSERT_GE(steps.size(), 5u);
    std::string seen;  // commands and what they printed
    for (const Step& step : steps) {
      if (step.is_measured && kIsSanitized) GTEST_SKIP() << "nothing to measure under a sanitizer";
      Write("step.sh", step.commands);
      const int status = Shell("bash -e step.sh > out.txt 2> err.txt");
      const std::string complaints = ReadFile(folder_ / "err.txt");
      const bool is_busy = complaints.find("left alone by other programs") != std::string::npos;
      if (step.is_measured && is_busy) GTEST_SKIP() << complaints;
      ASSERT_EQ(status, 0) << step.commands << complaints;
      if (!step.shown.empty())
        ExpectShown(step.shown, ReadFile(folder_ / "out.txt"), step.commands);
      if (HasFatalFailure()) return;
      seen += WithoutBlanks(step.commands + ReadFile(folder_ / "out.txt"));
      for (const std::string& figure : FiguresIn(step.said))
        EXPECT_THAT(seen, ::testing::HasSubstr(figure)) << name << " says it after\n"
                                                        << step.commands;
    }
  }
};

TEST_F(TutorialsTest, TheArchitectCanFollow) { Follow("architect.md"); }
TEST_F(TutorialsTest, TheValidatorCanFollow) { Follow("validator.md"); }
TEST_F(TutorialsTest, TheTeacherCanFollow) { Follow("teacher.md"); }
TEST_F(TutorialsTest, TheDoctorCanFollow) { Follow("doctor.md"); }
TEST_F(TutorialsTest, WhoeverPlacesJobsCanFollow) { Follow("../queues/README.md"); }
TEST_F(TutorialsTest, WhoeverChoosesCanFollow) { Follow("../studies/choose.md"); }

// The step that the README shows is what its first command prints; how long that takes differs.
TEST_F(TutorialsTest, TheReadmesStepIsWhatItsCommandPrints) {
  std::vector<std::string> shown;
  for (const Step& step : StepsOf(SourceDir() + "/README.md")) {
    if (shown.empty()) shown = step.shown;
  }
  ASSERT_FALSE(shown.empty());
  std::string& last = shown.back();
  ASSERT_TRUE(last.starts_with("Simulated in ")) << last;
  last = "Simulated in …" + last.substr(last.find(" ms"));
  ExpectShown(shown, Execute("run scenarios/axonn-gpt20b-perlmutter.json").out, "README.md");
}

TEST(TutorialPatternTest, FiguresOfASentenceAreFound) {
  EXPECT_THAT(FiguresIn("With 20 ms, 93.1 % of 1,024 MiB; 16 GPUs, v1.2 s2, 5 GB/s."),
              ::testing::ElementsAre("20ms", "93.1%", "1024MiB", "5GB/s"));
}

TEST(TutorialPatternTest, AnEllipsisIsAnyTextOfALine) {
  EXPECT_TRUE(Matches("Simulated in … ms: 4 events", "Simulated in 12.8 ms: 4 events"));
  EXPECT_TRUE(Matches("a…", "abc"));
  EXPECT_TRUE(Matches("…c", "abc"));
  EXPECT_TRUE(Matches("abc", "abc"));
  EXPECT_FALSE(Matches("abc", "abcd"));
  EXPECT_FALSE(Matches("a…d", "abc"));
  EXPECT_FALSE(Matches("a…b…c", "acb"));
}

}  // namespace tutorials_test
}  // namespace rehearse
