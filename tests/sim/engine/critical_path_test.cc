#include "sim/engine/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/play.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace critical_path_test {

using ::testing::ElementsAre;

class CriticalPathTest : public PlayTest {
 protected:
  void Find() {
    Play({.record_tasks = true});
    path_ = FindCriticalPath(program_, simulation_.tasks);
  }
  int64_t Slack(TaskId task) const { return path_.slack[task.index()].picoseconds(); }

  CriticalPath path_;
};

TEST_F(CriticalPathTest, AnEmptyProgramHasNone) {
  Find();
  EXPECT_TRUE(path_.chain.empty());
  EXPECT_TRUE(path_.slack.empty());
}

// a (10) and b (30) before c (5); d (12) beside them; the step ends at 35.
TEST_F(CriticalPathTest, TheChainGoesThroughWhatWasWaitedFor) {
  const TaskId a = Delay(10);
  const TaskId b = Delay(30);
  const TaskId c = Delay(5);
  const TaskId d = Delay(12);
  builder_.AddEdge(a, c);
  builder_.AddEdge(b, c);
  Find();
  EXPECT_THAT(path_.chain, ElementsAre(b, c));
  EXPECT_EQ(Slack(a), 20);
  EXPECT_EQ(Slack(b), 0);
  EXPECT_EQ(Slack(c), 0);
  EXPECT_EQ(Slack(d), 23);
}

TEST_F(CriticalPathTest, OfEqualPredecessorsTheFirstIsNamedAndBothAreCritical) {
  const TaskId a = Delay(10);
  const TaskId b = Delay(10);
  const TaskId c = Join();
  builder_.AddEdge(b, c);
  builder_.AddEdge(a, c);
  Find();
  EXPECT_THAT(path_.chain, ElementsAre(a, c));
  EXPECT_EQ(Slack(b), 0);
}

// A transfer of 40 is on the way, whatever held it back.
TEST_F(CriticalPathTest, FlowsCountWithTheTimeTheyTook) {
  const TaskId a = Delay(10);
  const TaskId flow = Move(40, Over({{Link(), 1}}));
  const TaskId b = Delay(45);
  builder_.AddEdge(a, flow);
  Find();
  EXPECT_THAT(path_.chain, ElementsAre(a, flow));
  EXPECT_EQ(Slack(b), 5);
}

// A ring of two that both end at 200, 50 before the end of the step; only the second is followed by
// something, which leaves no slack.
TEST_F(CriticalPathTest, TheFlowsOfARingHaveTheSameSlack) {
  const TaskId a = Move(100, Over({{Link(), 1}}), 0, 2);
  const TaskId b = Move(100, Over({{Link(), 1}}), 0, 2);
  builder_.Chain(a, b);
  builder_.Chain(b, a);
  const TaskId last = Delay(50);
  builder_.AddEdge(b, last);
  Find();
  EXPECT_THAT(path_.chain, ElementsAre(b, last));
  EXPECT_EQ(Slack(b), 0);
  EXPECT_EQ(Slack(a), 0);
}

// The definition, tried out: in programs without shared links, a delay may take longer by its
// slack, and not a picosecond more.
TEST_F(CriticalPathTest, ADelayMayTakeItsSlackLongerAndNoMore) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ProgramRecipe recipe = RandomRecipe(seed, 25);
    for (std::vector<LinkUse>& uses : recipe.use_sets) uses.clear();
    recipe.chains.clear();
    Program program = Assemble({recipe});
    const Simulation simulation = Simulate(program, 1, {.record_tasks = true});
    const CriticalPath path = FindCriticalPath(program, simulation.tasks);
    const Time step = simulation.timeline.step;
    for (uint32_t task = 0; task < program.tasks.size(); ++task) {
      if (program.tasks[task].kind != TaskKind::kDelay) continue;
      Time& delay = program.delays[program.tasks[task].payload];
      const Time before = delay;
      delay += path.slack[task];
      ASSERT_EQ(Simulate(program, 1).timeline.step, step) << "seed " << seed << ", task " << task;
      delay += Time(1);
      ASSERT_EQ(Simulate(program, 1).timeline.step, step + Time(1)) << "seed " << seed;
      delay = before;
    }
  }
}

// With chains the slack may be too small, never too large.
TEST_F(CriticalPathTest, WithChainsADelayMayTakeAtLeastItsSlackLonger) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ProgramRecipe recipe = RandomRecipe(seed, 25);
    for (std::vector<LinkUse>& uses : recipe.use_sets) uses.clear();
    Program program = Assemble({recipe});
    const Simulation simulation = Simulate(program, 1, {.record_tasks = true});
    const CriticalPath path = FindCriticalPath(program, simulation.tasks);
    ASSERT_EQ(FindCriticalChain(program, simulation.tasks), path.chain);
    ASSERT_EQ(simulation.tasks[path.chain.back().index()].end, simulation.timeline.step);
    ASSERT_EQ(simulation.tasks[path.chain.front().index()].start, Time());
    for (uint32_t task = 0; task < program.tasks.size(); ++task) {
      if (program.tasks[task].kind != TaskKind::kDelay) continue;
      Time& delay = program.delays[program.tasks[task].payload];
      const Time before = delay;
      delay += path.slack[task];
      ASSERT_EQ(Simulate(program, 1).timeline.step, simulation.timeline.step) << "seed " << seed;
      delay = before;
    }
  }
}

}  // namespace critical_path_test
}  // namespace rehearse
