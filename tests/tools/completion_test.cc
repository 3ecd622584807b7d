// What shells learn from `rehearse completion`, as a user would see it; and the page for man.
#include "tools/completion.h"

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "tests/tools/program_fixture.h"
#include "tools/scenario_paths.h"

namespace rehearse {
namespace completion_test {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using Words = std::vector<std::string>;

class CompletionTest : public ProgramTest {
 protected:
  CompletionTest() {
    Write("scenario.json", "{}");
    Write("table.csv", "");
    fs::create_directories(folder_ / "studies");
  }

  static bool Has(const std::string& program) {
    return std::system(("command -v " + program + " > /dev/null").c_str()) == 0;
  }

  Words Lines(const std::string& file) const {
    std::istringstream text(ReadFile(folder_ / file));
    Words lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  // What bash offers after this line, with the variables that it sets for the tab key.
  Words InBash(const std::string& line) const {
    Write("line.txt", line);
    Write("try.bash", R"(
source <("$1" completion bash)
COMP_LINE=$(cat line.txt; echo .)
COMP_LINE=${COMP_LINE%.}
COMP_POINT=${#COMP_LINE}
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
_rehearse
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
)");
    EXPECT_EQ(Shell("bash --norc try.bash \"$rehearse\" > words.txt 2> err.txt"), 0);
    EXPECT_EQ(ReadFile(folder_ / "err.txt"), "");
    return Lines("words.txt");
  }

  Words InFish(const std::string& line) const {
    EXPECT_EQ(Shell("\"$rehearse\" completion fish > rehearse.fish && fish --no-config -c "
                    "'source rehearse.fish; complete -C \"" +
                    line + "\"' | cut -f 1 > words.txt"),
              0);
    return Lines("words.txt");
  }
};

TEST_F(CompletionTest, BashCompletesCommandsAndOptions) {
  EXPECT_THAT(InBash("rehearse ru"), UnorderedElementsAre("run"));
  EXPECT_THAT(InBash("rehearse "), IsSupersetOf({"run", "sweep", "list", "completion", "man"}));
  EXPECT_THAT(InBash("rehearse help co"),
              UnorderedElementsAre("collective", "compare", "completion"));
  EXPECT_THAT(InBash("rehearse run --fi"), UnorderedElementsAre("--fidelity"));
  for (const Command& command : Commands()) {
    const Words offered = InBash(std::string("rehearse ") + command.name + " -");
    const CommandSyntax syntax = command.syntax();
    for (const auto& option : syntax.options.options())
      EXPECT_THAT(offered, Contains("--" + option->long_name())) << command.name;
  }
}

TEST_F(CompletionTest, BashCompletesWhatAnOptionTakes) {
  EXPECT_THAT(InBash("rehearse run --fidelity f"), UnorderedElementsAre("formula", "fluid"));
  // Bash takes --fidelity=f as three words, of which the last is completed.
  EXPECT_THAT(InBash("rehearse run --fidelity=f"), UnorderedElementsAre("formula", "fluid"));
  EXPECT_THAT(InBash("rehearse collective all-reduce -a tr"), Contains("tree"));
  EXPECT_THAT(InBash("rehearse collective all-r"), UnorderedElementsAre("all-reduce"));
  EXPECT_THAT(InBash("rehearse list cl"), UnorderedElementsAre("clusters"));
  EXPECT_THAT(InBash("rehearse sweep scenario.json --format m"), UnorderedElementsAre("markdown"));
  EXPECT_THAT(InBash("rehearse explain --rows "), IsEmpty());
}

TEST_F(CompletionTest, BashCompletesClusters) {
  EXPECT_THAT(InBash("rehearse collective all-reduce --cluster dgx-a"),
              UnorderedElementsAre("dgx-a100", "dgx-a100-80g"));
  EXPECT_THAT(InBash("rehearse collective all-reduce --cluster dgx-a100:"),
              IsSupersetOf({"nodes=", "nics=", "fabric="}));
  EXPECT_THAT(InBash("rehearse topology s"), IsSupersetOf({"switch", "scenario.json"}));
}

TEST_F(CompletionTest, BashCompletesWhatSetChanges) {
  EXPECT_THAT(InBash("rehearse run x.json --set strategy.dep"),
              UnorderedElementsAre("strategy.depth="));
  EXPECT_THAT(InBash("rehearse run x.json --set cluster."),
              IsSupersetOf({"cluster.nodes=", "cluster.node.nics="}));
  EXPECT_THAT(InBash("rehearse run --set simulator.fidelity=fl"), UnorderedElementsAre("fluid"));
  EXPECT_THAT(InBash("rehearse run --set strategy.kind="), Contains("megatron"));
}

TEST_F(CompletionTest, BashCompletesFilesOfTheRightKind) {
  EXPECT_THAT(InBash("rehearse run "), UnorderedElementsAre("scenario.json", "studies"));
  EXPECT_THAT(InBash("rehearse compare scenario.json t"), Contains("table.csv"));
  EXPECT_THAT(InBash("rehearse run scenario.json --out s"), UnorderedElementsAre("studies"));
  EXPECT_THAT(InBash("rehearse run scenario.json "), IsEmpty());
}

TEST_F(CompletionTest, ZshReadsItsScript) {
  if (!Has("zsh")) GTEST_SKIP() << "no zsh here";
  EXPECT_EQ(Shell("\"$rehearse\" completion zsh > _rehearse && zsh -n _rehearse"), 0);
  EXPECT_THAT(ReadFile(folder_ / "_rehearse"), StartsWith("#compdef rehearse\n"));
}

TEST_F(CompletionTest, FishCompletesWhatBashDoes) {
  if (!Has("fish")) GTEST_SKIP() << "no fish here";
  EXPECT_THAT(InFish("rehearse ru"), UnorderedElementsAre("run"));
  EXPECT_THAT(InFish("rehearse run --fidelity f"), UnorderedElementsAre("formula", "fluid"));
  EXPECT_THAT(InFish("rehearse collective all-r"), UnorderedElementsAre("all-reduce"));
  EXPECT_THAT(InFish("rehearse run --set strategy.dep"), UnorderedElementsAre("strategy.depth="));
  EXPECT_THAT(InFish("rehearse run s"), UnorderedElementsAre("scenario.json", "studies/"));
}

TEST_F(CompletionTest, AnotherShellIsRefused) {
  ExpectMistake("completion", {"no shell given", "bash|zsh|fish"});
  ExpectMistake("completion basch", {"unknown shell \"basch\"", "did you mean \"bash\"?"});
}

// ---- What --set can change ----------------------------------------------------------------------

TEST(ScenarioPathsTest, TheyAreThoseOfTheTables) {
  std::map<std::string, std::vector<std::string>> names;
  for (const ScenarioPath& path : ScenarioPaths()) names[path.path] = path.names;
  for (const char* path : {"strategy.depth", "strategy.d1", "cluster.nodes", "cluster.node.nics",
                           "cluster.fabric.radix", "training.batch", "edits", "jobs"})
    EXPECT_TRUE(names.count(path) > 0) << path;
  EXPECT_EQ(names["simulator.fidelity"], (Words{"formula", "fluid", "step", "packet"}));
  EXPECT_EQ(names["strategy.overlap_all_gather"], (Words{"true", "false"}));
  EXPECT_THAT(names["strategy.kind"], IsSupersetOf({"4d", "fsdp", "megatron"}));
  EXPECT_THAT(names["model.preset"], Contains("gpt-20b"));
  EXPECT_THAT(names["cluster"], Contains("perlmutter"));
  EXPECT_EQ(names.count("strategy"), 0u);  // an object
}

TEST(ScenarioPathsTest, WhatShippedScenariosSayIsThere) {
  std::set<std::string> known;
  for (const ScenarioPath& path : ScenarioPaths()) known.insert(path.path);
  for (const auto& entry : fs::directory_iterator(fs::path(SourceDir()) / "scenarios")) {
    if (entry.path().extension() != ".json") continue;
    const JsonDocument document = JsonDocument::FromFile(entry.path().string());
    for (const auto& [part, value] : document.value().items()) {
      if (!value.is_object()) {
        EXPECT_TRUE(known.count(part) > 0) << part;
        continue;
      }
      for (const auto& [key, inner] : value.items()) {
        const std::string path = part + "." + key;
        // For an object, the keys that are in it.
        const auto below = known.lower_bound(path + ".");
        const bool has_keys = below != known.end() && below->starts_with(path + ".");
        EXPECT_TRUE(known.count(path) > 0 || has_keys) << entry.path() << ": " << path;
      }
    }
  }
}

// ---- The page for man ---------------------------------------------------------------------------

TEST_F(CompletionTest, TheManPageHasAllCommandsAndOptions) {
  const Outcome page = Execute("man");
  ASSERT_EQ(page.code, 0) << page.err;
  EXPECT_THAT(page.out, StartsWith(".TH REHEARSE 1 "));
  if (!Has("groff")) GTEST_SKIP() << "no groff here";
  Write("rehearse.1", page.out);
  ASSERT_EQ(Shell("groff -man -Tutf8 -ww rehearse.1 2> err.txt | col -b > page.txt"), 0);
  EXPECT_EQ(ReadFile(folder_ / "err.txt"), "");  // all warnings are on
  const std::string text = ReadFile(folder_ / "page.txt");
  for (const Command& command : Commands()) {
    EXPECT_THAT(text, HasSubstr(std::string("rehearse ") + command.name));
    const CommandSyntax syntax = command.syntax();
    for (const auto& option : syntax.options.options())
      EXPECT_THAT(text, HasSubstr("--" + option->long_name())) << command.name;
  }
}

}  // namespace completion_test
}  // namespace rehearse
