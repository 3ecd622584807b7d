// What the words of a script's commands are, without running it.
#include "tools/foreign/runs/megatron/shell_script.h"

#include <map>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace shell_script_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> WordsOf(const std::string& script) {
  std::vector<std::string> words;
  for (const ShellCommand& command : ReadShellScript(script, "run.sh").commands) {
    if (!words.empty()) words.emplace_back(";");
    for (const ShellWord& word : command.words)
      words.push_back(word.text + (command.is_conditional ? "?" : ""));
  }
  return words;
}

std::string MistakeIn(const std::string& script) {
  try {
    ReadShellScript(script, "run.sh");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(ShellScriptTest, VariablesStandForWordsAndQuotesKeepThemTogether) {
  EXPECT_THAT(WordsOf("A='x  y'\nrun $A \"$A\" '$A' ${A}z"),
              ElementsAre("run", "x", "y", "x  y", "$A", "x", "yz"));
  EXPECT_THAT(WordsOf("A=1; A+=2; export B=$A; run $B"), ElementsAre("run", "12"));
  EXPECT_THAT(WordsOf("run a\\ b a\\\nb # no words"), ElementsAre("run", "a b", "ab"));
  EXPECT_THAT(WordsOf("run \"\" ''"), ElementsAre("run", "", ""));
}

TEST(ShellScriptTest, AnArrayIsItsElementsWithCommentsLeftOut) {
  EXPECT_THAT(
      WordsOf("A=(\n  --a 1  # one\n  #--b 2 \\\n  --c\n)\nA+=(d)\nrun ${A[@]} \"${A[*]}\""),
      ElementsAre("run", "--a", "1", "--c", "d", "--a", "1", "--c", "d"));
}

TEST(ShellScriptTest, WhatHasNoValueStaysAsItIsWritten) {
  EXPECT_THAT(WordsOf("run $1 ${X} $(hostname -f) `date` ${X%.*} $@"),
              ElementsAre("run", "$1", "${X}", "$(hostname -f)", "`date`", "${X%.*}", "$@"));
  EXPECT_THAT(WordsOf("A=${X:-${Y:-\"4\"}}; run $A"), ElementsAre("run", "4"));
}

TEST(ShellScriptTest, ArithmeticIsDoneWhereAllIsKnown) {
  EXPECT_THAT(WordsOf("A=8;B=16; run $(($A*B)) $(( (A + 1) * 2 - 3 % 2 )) $((C * 2)) $((A / 0))"),
              ElementsAre("run", "128", "17", "$((C * 2))", "$((A / 0))"));
}

TEST(ShellScriptTest, ConditionsAreFollowedWhereBothSidesAreKnown) {
  const std::string choose =
      "if [ $N -gt 1 ]; then A=many; elif [[ $N == 1 ]]; then A=one\n"
      "else A=none; fi\nrun $A";
  EXPECT_THAT(WordsOf("N=2\n" + choose), ElementsAre("run", "many"));
  EXPECT_THAT(WordsOf("N=1\n" + choose), ElementsAre("run", "one"));
  EXPECT_THAT(WordsOf("N=0\n" + choose), ElementsAre("run", "none"));
  EXPECT_THAT(WordsOf(choose), ElementsAre("run", "$A"));
  EXPECT_THAT(ReadShellScript(choose, "run.sh").left_open, ElementsAre("A"));
  EXPECT_THAT(WordsOf("X=1\n[ -z \"$X\" ] && X=2\n[ -n \"$X\" ] && Y=3\nrun $X $Y"),
              ElementsAre("[", "-z", "1", "]", ";", "[", "-n", "1", "]", ";", "run", "1", "3"));
}

TEST(ShellScriptTest, TestsAreJoinedByAndAndOr) {
  const auto chosen = [](const std::string& condition) {
    return WordsOf("A=x; B=2; if " + condition + "; then C=yes; else C=no; fi; run $C").back();
  };
  EXPECT_EQ(chosen("[[ $A == y ]] || [[ $B == 2 ]] || [[ -z \"$A\" ]]"), "yes");
  EXPECT_EQ(chosen("[[ $A == y || ( $B -gt 1 && ! -z $A ) ]]"), "yes");
  EXPECT_EQ(chosen("[ $A = x -a $B -lt 2 ]"), "no");
  EXPECT_EQ(chosen("[[ $A == x ]] && [[ $UNKNOWN == 1 ]]"), "$C");
  EXPECT_EQ(chosen("[[ $A == y ]] && [[ $UNKNOWN == 1 ]]"), "no");
  EXPECT_EQ(chosen("[ -z $UNSET ]"), "yes");
  EXPECT_EQ(chosen("[ -z \"$SLURM_JOB_ID\" ]"), "$C");  // Slurm sets it
  EXPECT_EQ(chosen("[[ llama-7b == llama* ]]"), "yes");
  EXPECT_EQ(chosen("(( B * 2 == 4 ))"), "yes");
  EXPECT_EQ(chosen("! [ -f config.json ]"), "$C");
  EXPECT_EQ(WordsOf("N=1; [ $N = 2 ] && A=b || A=c; run $A").back(), "c");
  EXPECT_EQ(WordsOf("N=2; [ $N = 2 ] && A=b || A=c; run $A").back(), "b");
}

TEST(ShellScriptTest, ACaseIsFollowedWhereItsWordIsKnown) {
  const std::string choose =
      "case $M in\n  7b|7B) # small\n    L=32;;\n  (13b*) L=40 ;;\n  *)\n    L=80\nesac\nrun $L";
  EXPECT_EQ(WordsOf("M=7B\n" + choose).back(), "32");
  EXPECT_EQ(WordsOf("M=13b-chat\n" + choose).back(), "40");
  EXPECT_EQ(WordsOf("M=70b\n" + choose).back(), "80");
  EXPECT_EQ(WordsOf(choose).back(), "$L");
}

TEST(ShellScriptTest, PartsOfArraysAndCountsAreKnown) {
  EXPECT_THAT(WordsOf("A=(a b c); I=1; run ${#A[@]} ${A[0]} ${A[I+1]} ${A[7]}"),
              ElementsAre("run", "3", "a", "c", "${A[7]}"));
  EXPECT_THAT(WordsOf("A=abc; E=; run ${#A} ${A:+--on} ${E:+--off} ${A:?none}"),
              ElementsAre("run", "3", "--on", "abc"));
  EXPECT_THAT(
      WordsOf("N=4; ((M = N * 2)); run $(expr $N \\* 3) $(echo a $M) $(echo x | cat)").back(),
      "$(echo x | cat)");
  EXPECT_THAT(WordsOf("N=4; run $(expr $N \\* 3) $(echo a $N)"),
              ElementsAre("run", "12", "a", "4"));
}

TEST(ShellScriptTest, VariablesThatAreGivenKeepTheirValues) {
  const ShellStart start{.variables = {{"N", {"4", 0}}, {"1", {"llama", 0}}}, .is_fixed = true};
  const ShellScript script = ReadShellScript("N=8\nrun $N ${1:-gpt} $2", "run.sh", start);
  std::vector<std::string> words;
  for (const ShellWord& word : script.commands.front().words) words.push_back(word.text);
  EXPECT_THAT(words, ElementsAre("run", "4", "llama", "$2"));
}

TEST(ShellScriptTest, WhatALoopRunsIsConditional) {
  EXPECT_THAT(WordsOf("for T in 1 2; do run $T; done\nlast"),
              ElementsAre("T?", "in?", "1?", "2?", ";", "run?", "$T?", ";", "last"));
}

TEST(ShellScriptTest, RedirectionsAndHereDocumentsAreNoWords) {
  EXPECT_THAT(WordsOf("cat <<EOF > f.json\n{\"a': (\nEOF\nrun a 2>&1 | tee log &> /dev/null"),
              ElementsAre("cat", ";", "run", "a", ";", "tee", "log"));
}

TEST(ShellScriptTest, WordsKnowTheirLinesInVariablesToo) {
  const ShellScript script = ReadShellScript("A=\"\n--a 1\n--b 2\"\n\nrun \\\n  $A c", "run.sh");
  std::vector<int> lines;
  for (const ShellWord& word : script.commands.front().words) lines.push_back(word.line);
  EXPECT_THAT(lines, ElementsAre(5, 2, 2, 3, 3, 6));
}

TEST(ShellScriptTest, BatchOptionsAreKept) {
  const ShellScript script = ReadShellScript("#SBATCH --nodes=4 -N 2 # x\n# SBATCH no\n", "run.sh");
  std::vector<std::string> words;
  for (const ShellWord& word : script.batch_options) words.push_back(word.text);
  EXPECT_THAT(words, ElementsAre("--nodes=4", "-N", "2"));
}

std::vector<std::string> WordsWithFiles(const std::string& script,
                                        const std::map<std::string, std::string>& files,
                                        ShellScript* read = nullptr) {
  ShellStart start;
  start.files = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = files.find(name);
    return found == files.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  const ShellScript own = ReadShellScript(script, "run.sh", start);
  std::vector<std::string> words;
  for (const ShellCommand& command : own.commands) {
    const std::string& first = command.words.front().text;
    if (first == "." || first == "source" || first == "sbatch") continue;
    for (const ShellWord& word : command.words)
      words.push_back(fmt::format("{}:{}", word.line, word.text));
  }
  if (read != nullptr) *read = own;
  return words;
}

TEST(ShellScriptTest, ScriptsBesideItAreReadInTheirPlace) {
  const std::map<std::string, std::string> files = {
      {"conf.sh", "A=2$B\nif [ $B = 1 ]; then C=yes; fi"},
      {"conf/model.sh", "A=3"},
      {"job.slurm", "#SBATCH --ntasks-per-node=8\nrun $A\n"}};
  EXPECT_THAT(WordsWithFiles("B=1\n. `pwd`/conf.sh\nrun $A $C", files),
              ElementsAre("3:run", "2:21", "2:yes"));
  EXPECT_THAT(WordsWithFiles("source \"${DIR}/conf/model.sh\"; run $A", files),
              ElementsAre("1:run", "1:3"));
  EXPECT_THAT(WordsWithFiles("source /home/me/conf.sh\nrun $A", files),
              ElementsAre("2:run", "1:2$B"));
  // Nothing from outside, nothing under unknown conditions, nothing that is not there.
  EXPECT_THAT(WordsWithFiles(". ../conf.sh; run $A", files), ElementsAre("1:run", "1:$A"));
  EXPECT_THAT(WordsWithFiles("if [ -f x ]; then . conf.sh; fi; run $A", files),
              ElementsAre("1:run", "1:$A"));
  EXPECT_THAT(WordsWithFiles(". other.sh; run $A", files), ElementsAre("1:run", "1:$A"));
  ShellScript read;
  EXPECT_THAT(WordsWithFiles("A=4\nsbatch -p x --nodes=12 job.slurm", files, &read),
              ElementsAre("2:run", "1:4"));
  ASSERT_EQ(read.batch_options.size(), 4u);
  EXPECT_EQ(read.batch_options[2].text, "--nodes=12");
  EXPECT_EQ(read.batch_options[3].text, "--ntasks-per-node=8");
  ASSERT_EQ(read.read_in.size(), 1u);
  EXPECT_EQ(read.read_in.front().text, "job.slurm");
}

TEST(ShellScriptTest, AScriptThatReadsItselfInEnds) {
  const std::map<std::string, std::string> files = {{"a.sh", "run\n. a.sh\n"}};
  EXPECT_EQ(WordsWithFiles(". a.sh", files).size(), 32u);
}

TEST(ShellScriptTest, WhatIsNeverClosedIsToldWhereItBegins) {
  EXPECT_EQ(MistakeIn("\nrun \"a\nb"),
            "run.sh:2: a quote (\") that is opened here is never closed");
  EXPECT_EQ(MistakeIn("\n\nrun 'a"), "run.sh:3: a quote (') that is opened here is never closed");
  EXPECT_EQ(MistakeIn("A=( b\n"), "run.sh:1: an array that is opened here is never closed");
  EXPECT_EQ(MistakeIn("run ${A"), "run.sh:1: a brace that is opened here is never closed");
  EXPECT_EQ(MistakeIn("run $(a"), "run.sh:1: a parenthesis that is opened here is never closed");
  EXPECT_EQ(MistakeIn("cat <<E\nx\n"),
            "run.sh:1: a here-document that is opened here is never closed");
}

TEST(ShellScriptTest, VariablesThatGrowWithoutEndAreRefused) {
  std::string script = "A=0123456789abcdef\n";
  for (int i = 0; i < 30; ++i) script += "A=$A$A\n";
  EXPECT_THAT(MistakeIn(script), HasSubstr("variables grow to more than 4 MiB"));
  std::string nested = "1";
  for (int i = 0; i < 100; ++i) nested.insert(0, "${X:-").append("}");
  EXPECT_THAT(MistakeIn("run " + nested), HasSubstr("too deep"));
}

}  // namespace shell_script_test
}  // namespace rehearse
