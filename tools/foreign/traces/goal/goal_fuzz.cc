// GOAL that others wrote.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/traces/goal/goal.h"

namespace rehearse {
namespace {

void ReadFuzzedGoal(std::string_view input) {
  std::vector<std::string> remarks;
  ReadGoal(input, "step.goal", &remarks);
}

std::vector<std::string> GoalSeeds() {
  return {
      "num_ranks 2\nrank 0 {\nl1: calc 100 cpu 1\nl2: send 8b to 1 tag 3 cpu 0 nic 0\n"
      "l2 requires l1\n}\nrank 1 {\nl1: recv 8b from 0 tag 3\nl2: calc 5\nl2 irequires l1\n}\n",
      "// none\nnum_ranks 1\n/* one\n */ rank 0 {\ncalc 7\n}\n"};
}

std::vector<std::string> GoalWords() {
  return {"num_ranks ",  "rank ",   "{",  "}",     "calc ", "send ",      "recv ",
          "b to ",       "b from ", ": ", " tag ", " cpu ", " nic ",      " requires ",
          " irequires ", "-1",      "//", "/*",    "*/",    "4294967296", "\n"};
}

const FuzzTargetRow kGoalRow({"goal", ReadFuzzedGoal, GoalSeeds, GoalWords});

}  // namespace
}  // namespace rehearse
