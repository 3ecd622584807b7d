// GOAL that others wrote, as a schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/algorithms/algorithm.h"
#include "sim/base/error.h"
#include "tests/collectives/schedules.h"
#include "tools/foreign/traces/goal/goal.h"

namespace rehearse {
namespace goal_read_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OneCollective;
using testing::Preset;

std::string MistakeOf(const std::string& text) {
  std::vector<std::string> remarks;
  try {
    ReadGoal(text, "step.goal", &remarks);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(GoalReadTest, WhatItSays) {
  std::vector<std::string> remarks;
  const Schedule schedule = ReadGoal(
      "// two ranks\n"
      "num_ranks 3\n"
      "rank 0 {\r\n"
      "first: calc 1500 cpu 2\n"
      "l2: send 8192b to 1 tag 3 cpu 0 nic 1  /* and\n more */ \n"
      "l2 requires first\n"
      "calc 20\n"
      "}\n"
      "rank 1 {\n"
      "  a: recv 8192b from 0 tag 3\n"
      "  b : calc 7\n"
      "  b requires a\n"
      "}\n",
      "step.goal", &remarks);
  ASSERT_EQ(schedule.ranks(), 3u);
  const Role& first = schedule.roles[0];
  ASSERT_EQ(first.ops.size(), 3u);
  std::vector<double> times;
  for (const Op& op : first.ops) {
    if (const auto* compute = std::get_if<Compute>(&op.work))
      times.push_back(compute->duration.value());
  }
  EXPECT_THAT(times, ::testing::UnorderedElementsAre(1.5e-6, 20e-9));
  const Op& last = schedule.roles[1].ops.back();
  EXPECT_EQ(last.name, "calc");
  EXPECT_THAT(last.after, ElementsAre(OpId(0)));
  const auto& received = std::get<Receive>(schedule.roles[1].ops.front().work);
  EXPECT_EQ(received.peer, 0u);
  EXPECT_EQ(received.bytes.value(), 8192);
  EXPECT_TRUE(schedule.roles[schedule.role_of_rank[2]].ops.empty());
}

// What begins with another waits for all that the other waits for.
TEST(GoalReadTest, BeginsWithAnother) {
  std::vector<std::string> remarks;
  const Schedule schedule = ReadGoal(
      "num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20 cpu 1\nc: calc 30 cpu 2\nb requires a\n"
      "c irequires b\n}\n",
      "step.goal", &remarks);
  EXPECT_THAT(schedule.roles[0].ops[2].after, ElementsAre(OpId(0)));
  EXPECT_THAT(remarks, Contains(HasSubstr("1 \"irequires\"")));
}

// What we write of every algorithm can be read, and has as many messages.
TEST(GoalReadTest, EveryAlgorithmComesBack) {
  const auto cluster = Preset("switch", "devices", 8);
  std::vector<uint32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  uint32_t read = 0;
  for (const Algorithm& algorithm : Algorithms()) {
    if (!algorithm.kinds.Has(CollectiveKind::kAllReduce)) continue;
    Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 8e6, {all});
    std::get<Collective>(schedule.roles[0].ops[0].work).algorithm =
        ParseAlgorithm(algorithm.name());
    GoalText goal;
    try {
      Router router(*cluster);
      goal = WriteGoal(schedule, router, 1, {}, [](uint32_t, const Op&) { return Seconds(1e-6); });
    } catch (const Error&) {  // it does not suit this machine, or has switches
      continue;
    }
    SCOPED_TRACE(algorithm.name());
    std::vector<std::string> remarks;
    const Schedule back = ReadGoal(goal.text, "ring.goal", &remarks);
    uint64_t sends = 0;
    for (const Role& role : back.roles) {
      for (const Op& op : role.ops) sends += std::holds_alternative<Send>(op.work) ? 1 : 0;
    }
    EXPECT_EQ(sends, goal.messages);
    ++read;
  }
  EXPECT_GT(read, 3u);
}

TEST(GoalReadTest, MistakesNameTheirLine) {
  const std::string begin = "num_ranks 2\nrank 0 {\n";
  EXPECT_THAT(MistakeOf(""), HasSubstr("step.goal: is empty"));
  EXPECT_THAT(MistakeOf("num_ranks 0\n"), HasSubstr("step.goal:1: found \"num_ranks 0\""));
  EXPECT_THAT(MistakeOf("num_ranks 2000000\n"), HasSubstr("at most 1048576"));
  EXPECT_THAT(MistakeOf("num_ranks 2\nrank 2 {\n}\n"), HasSubstr("step.goal:2: found rank 2"));
  EXPECT_THAT(MistakeOf(begin + "}\nrank 0 {\n}\n"), HasSubstr("a second time"));
  EXPECT_THAT(MistakeOf(begin + "l1: calc 1\n"), HasSubstr("rank 0 has no end"));
  EXPECT_THAT(MistakeOf(begin + "l1: calc x\n}\n"),
              HasSubstr("step.goal:3: found \"l1 : calc x\""));
  EXPECT_THAT(MistakeOf(begin + "l1: send 8 to 1\n}\n"), HasSubstr("step.goal:3"));
  EXPECT_THAT(MistakeOf(begin + "l1: send 8b from 1\n}\n"), HasSubstr("step.goal:3"));
  EXPECT_THAT(MistakeOf(begin + "l1: calc 1 tag 3\n}\n"), HasSubstr("step.goal:3"));
  EXPECT_THAT(MistakeOf(begin + "l1: recv 8b from -1\n}\n"), HasSubstr("any sender"));
  EXPECT_THAT(MistakeOf(begin + "l1: calc 1\nl1: calc 2\n}\n"), HasSubstr("step.goal:4"));
  EXPECT_THAT(MistakeOf(begin + "l1: calc 1\nl1 requires l2\n}\n"), HasSubstr("\"l2\""));
  EXPECT_THAT(MistakeOf(begin + "l1: calc 1\nl2: calc 1\nl1 requires l2\nl2 requires l1\n}\n"),
              HasSubstr("cycle"));
  EXPECT_THAT(MistakeOf(begin + "l1: send 8b to 1\n}\nrank 1 {\n}\n"),
              HasSubstr("rank 1 does not receive"));
  EXPECT_THAT(MistakeOf(begin + "l1: send 8b to 7\n}\n"), HasSubstr("7"));
}

}  // namespace goal_read_test
}  // namespace rehearse
