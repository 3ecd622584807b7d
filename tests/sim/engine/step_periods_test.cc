// What is jumped over, and that it makes no difference. Links have 1 B/ps, so that bytes are
// picoseconds.
#include "sim/engine/step_periods.h"

#include <gtest/gtest.h>

#include "sim/engine/simulate.h"
#include "tests/sim/play.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace step_periods_test {

class StepPeriodsTest : public PlayTest {
 protected:
  void Ring(size_t ranks, uint32_t steps, double bytes, int64_t latency) {
    std::vector<TaskId> edges;
    for (size_t i = 0; i < ranks; ++i) {
      edges.push_back(Move(bytes, Over({{Link(), 1}}), latency, steps));
    }
    for (size_t i = 0; i < ranks; ++i) builder_.Chain(edges[i], edges[(i + 1) % ranks]);
  }
  // With jumps, and step by step.
  void ExpectTheSameWithoutJumps() {
    Play();
    const Simulation plain = Simulate(program_, 1, {.jump = false});
    EXPECT_EQ(HashOf(plain.timeline), HashOf(simulation_.timeline));
    EXPECT_EQ(plain.stats.transfers, simulation_.stats.transfers);
  }
};

TEST_F(StepPeriodsTest, ARingCostsAHandfulOfSteps) {
  Ring(8, 10'000, 100, 7);
  Play();
  EXPECT_EQ(Step(), 10'000 * 107);
  EXPECT_EQ(simulation_.stats.transfers, 80'000u);
  EXPECT_GT(simulation_.stats.jumped, 79'900u);
  EXPECT_LT(simulation_.stats.events, 200u);
}

TEST_F(StepPeriodsTest, FewStepsAreNotLookedAt) {
  Ring(8, StepPeriods::kFewestSteps - 1, 100, 7);
  Play();
  EXPECT_EQ(simulation_.stats.jumped, 0u);
}

// The slowest edge leads to a steady state only once all go at its pace; see RingTest
// for the times.
TEST_F(StepPeriodsTest, AnUnequalRingIsJumpedOverOnceAllKeepThePaceOfItsSlowestEdge) {
  const Program program = RingProgram({0.4e12, 1e12, 1e12, 1e12}, 1000, 100, Time(0));
  const Simulation simulation = Simulate(program, 4);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(simulation.timeline.spans[i].end, Time(i * 100 + (1000 - i) * 250));
  }
  EXPECT_GT(simulation.stats.jumped, 3900u);
}

// Rings with steps of 107 and 118 that share nothing; each is jumped over independently.
TEST_F(StepPeriodsTest, RingsWithPeriodsOfTheirOwnAreJumpedOverSideBySide) {
  Ring(4, 10'000, 100, 7);
  Ring(6, 9'000, 111, 7);
  Play();
  EXPECT_EQ(End(0), 10'000 * 107);
  EXPECT_EQ(End(4), 9'000 * 118);
  EXPECT_LT(simulation_.stats.events, 400u);
}

// Whatever happens elsewhere ends a jump, but does not prevent the next one.
TEST_F(StepPeriodsTest, ComputeBesideARingDoesNotDisturbIt) {
  Ring(4, 10'000, 100, 7);
  TaskId last = Delay(1);
  for (int i = 0; i < 50; ++i) {
    const TaskId next = Delay(12'345);
    builder_.AddEdge(last, next);
    last = next;
  }
  ExpectTheSameWithoutJumps();
  EXPECT_EQ(End(0), 10'000 * 107);
  EXPECT_GT(simulation_.stats.jumped, 38'000u);
}

// 1000 bytes come at 50'000 and share a link of the ring with its steps of 100.
TEST_F(StepPeriodsTest, ATransferThatComesInTheMiddleIsFelt) {
  std::vector<TaskId> edges;
  std::vector<uint32_t> sets;
  for (int i = 0; i < 3; ++i) {
    sets.push_back(Over({{Link(), 1}}));
    edges.push_back(Move(100, sets.back(), 0, 1000));
  }
  for (int i = 0; i < 3; ++i) builder_.Chain(edges[i], edges[(i + 1) % 3]);
  const TaskId wait = Delay(50'000);
  builder_.AddEdge(wait, Move(1000, sets[0]));
  ExpectTheSameWithoutJumps();
  // Beside it, ten steps of the first edge take 200 each while it gets its 1000 bytes; the ring
  // goes at the pace of that edge: 1000 ps later.
  EXPECT_EQ(End(4), 52'000);
  EXPECT_EQ(Step(), 101'000);
  EXPECT_GT(simulation_.stats.jumped, 2'700u);
}

// The last of the ring starts when the others have long been waiting for it.
TEST_F(StepPeriodsTest, ALateRankSetsTheRingGoing) {
  std::vector<TaskId> edges;
  for (int i = 0; i < 4; ++i) edges.push_back(Move(100, Over({{Link(), 1}}), 0, 500));
  for (int i = 0; i < 4; ++i) builder_.Chain(edges[i], edges[(i + 1) % 4]);
  const TaskId wait = Delay(1'000'000);
  builder_.AddEdge(wait, edges[2]);
  ExpectTheSameWithoutJumps();
  EXPECT_EQ(End(2), 1'050'000);
  EXPECT_GT(simulation_.stats.jumped, 1'500u);
}

// A chain that is rerouted over the link of another, and back, at any point of a step.
TEST_F(StepPeriodsTest, ChainsThatMeetOnADetourAreOneGroup) {
  for (int64_t moment = 0; moment < 400; moment += 7) {
    ops_ = 0;
    const LinkId own = Link(2);
    const LinkId other = Link();
    const TaskId rerouted = Move(100, Over({{own, 1}}), 60, 300);
    builder_.SetAlternative(rerouted, Over({{other, 1}}));
    Move(100, Over({{other, 1}}), 30, 400);
    builder_.AddLinkChange({Time(10'000 + moment), own, 0});
    builder_.AddLinkChange({Time(20'000 + 3 * moment), own, 1});
    ExpectTheSameWithoutJumps();
    EXPECT_GT(simulation_.stats.jumped, 300u);
  }
}

// Two rings over the same nodes in opposite order, on unequal links: shared links, and a core that
// binds now and then.
TEST_F(StepPeriodsTest, RingsThatShareLinksAreOneGroup) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    ops_ = 0;
    Random random(seed);
    std::vector<LinkId> nics;
    for (int i = 0; i < 5; ++i) nics.push_back(Link(1 + 0.25 * random.Below(4)));
    const LinkId core = Link(4.5);
    for (const int direction : {1, 4}) {
      std::vector<TaskId> edges;
      for (int i = 0; i < 5; ++i) {
        edges.push_back(
            Move(100, Over({{nics[i], 1}, {nics[(i + direction) % 5], 1}, {core, 1}}), 3, 400));
      }
      for (int i = 0; i < 5; ++i) {
        builder_.Chain(edges[i * direction % 5], edges[(i + 1) * direction % 5]);
      }
    }
    ExpectTheSameWithoutJumps();
  }
}

}  // namespace step_periods_test
}  // namespace rehearse
