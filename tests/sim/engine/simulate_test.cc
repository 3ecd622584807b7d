// Closed forms. Links have 1 B/ps (1e12 B/s) unless said otherwise, so that bytes are picoseconds.
#include "sim/engine/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/sim/play.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace simulate_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using SimulateTest = PlayTest;

TEST_F(SimulateTest, NothingTakesNoTime) {
  Play();
  EXPECT_EQ(Step(), 0);
  EXPECT_EQ(simulation_.timeline.provenance, Provenance::kSimulated);
  EXPECT_EQ(simulation_.stats.events, 0u);
}

TEST_F(SimulateTest, DelaysFollowTheirPredecessors) {
  const TaskId a = Delay(10);
  const TaskId b = Delay(30);
  const TaskId both = Join();
  const TaskId c = Delay(5);
  builder_.AddEdge(a, both);
  builder_.AddEdge(b, both);
  builder_.AddEdge(both, c);
  Play();
  EXPECT_EQ(Begin(2), 30);
  EXPECT_EQ(End(2), 30);
  EXPECT_EQ(Begin(3), 30);
  EXPECT_EQ(End(3), 35);
  EXPECT_EQ(Step(), 35);
}

TEST_F(SimulateTest, AnEdgeGivenTwiceIsOneWait) {
  const TaskId a = Delay(10);
  const TaskId b = Delay(10);
  builder_.AddEdge(a, b);
  builder_.AddEdge(a, b);
  Play();
  EXPECT_EQ(End(1), 20);
}

TEST_F(SimulateTest, SpansTellReadyBeginAndEnd) {
  // Rank 0 is ready at 10, rank 1 at 30; the transfer of 100 bytes begins when both are.
  const TaskId a = builder_.AddDelay(Time(10));
  const TaskId b = builder_.AddDelay(Time(30));
  const TaskId meet = builder_.AddJoin();
  Flow flow;
  flow.bytes = 100;
  flow.use_set = Over({{Link(), 1}});
  const TaskId transfer = builder_.AddFlow(flow);
  builder_.AddEdge(a, meet);
  builder_.AddEdge(b, meet);
  builder_.AddEdge(meet, transfer);
  builder_.AddSpan({.rank = 1, .op = 0, .ready = b, .begin = meet, .end = transfer});
  builder_.AddSpan({.rank = 0, .op = 0, .ready = a, .begin = meet, .end = transfer});
  builder_.AddSpan({.rank = 0, .op = 1, .ready = transfer, .begin = transfer, .end = transfer});
  const Timeline timeline = Simulate(builder_.Build(), 2).timeline;
  ASSERT_EQ(timeline.spans.size(), 3u);
  EXPECT_EQ(timeline.ranks, 2u);
  EXPECT_EQ(timeline.spans[0].ready, Time(10));
  EXPECT_EQ(timeline.spans[0].begin, Time(30));
  EXPECT_EQ(timeline.spans[0].end, Time(130));
  EXPECT_EQ(timeline.spans[2].rank, 1u);
  EXPECT_EQ(timeline.spans[2].ready, Time(30));
  // `ready` is the task of `begin`: ready when it began.
  EXPECT_EQ(timeline.spans[1].ready, Time(30));
}

TEST_F(SimulateTest, AFlowTakesItsLatencyAndThenItsBytes) {
  // 7 + 100/1.
  Move(100, Over({{Link(), 1}}), 7);
  Play();
  EXPECT_EQ(End(0), 107);
}

TEST_F(SimulateTest, TheNarrowestLinkCounts) {
  // 100 / (1/4).
  Move(100, Over({{Link(), 1}, {Link(0.25), 1}, {Link(2), 1}}));
  Play();
  EXPECT_EQ(End(0), 400);
}

TEST_F(SimulateTest, AnEndIsRoundedToTheClockOnce) {
  // 10 bytes at 3 B/ps: 3.33 ps; 11 at 3: 3.67 ps; four steps of 10, one after the other: 4·3.
  Move(10, Over({{Link(3), 1}}));
  Move(11, Over({{Link(3), 1}}));
  Move(10, Over({{Link(3), 1}}), 0, 4);
  Play();
  EXPECT_EQ(End(0), 3);
  EXPECT_EQ(End(1), 4);
  EXPECT_EQ(End(2), 12);
}

TEST_F(SimulateTest, HalfAPicosecondIsRoundedUpWhateverTheRoundingErrorsBefore) {
  // Two flows of n bytes share a link, and a third comes at 1 ps: they have n - 1/2 left at 1/3,
  // which takes 3n - 3/2 ps, with half a picosecond in real numbers. They end at 1 + 3n - 1,
  // whatever n - 1/2 over a third is in doubles.
  for (int n = 2; n < 1000; ++n) {
    const uint32_t link = Over({{Link(), 1}});
    ops_ = 0;
    Move(n, link);
    Move(n, link);
    const TaskId wait = Delay(1);
    builder_.AddEdge(wait, Move(10 * n, link));
    Play();
    ASSERT_EQ(End(0), 3 * n);
    ASSERT_EQ(End(1), 3 * n);
  }
}

TEST_F(SimulateTest, LessThanHalfAPicosecondIsAnInstant) {
  const TaskId first = Move(1, Over({{Link(3), 1}}));
  const TaskId second = Delay(5);
  builder_.AddEdge(first, second);
  Play();
  EXPECT_EQ(End(0), 0);
  EXPECT_EQ(End(1), 5);
}

TEST_F(SimulateTest, TwoEqualFlowsHalveALink) {
  // Each at 1/2: 100 / (1/2).
  const uint32_t link = Over({{Link(), 1}});
  Move(100, link);
  Move(100, link);
  Play();
  EXPECT_EQ(End(0), 200);
  EXPECT_EQ(End(1), 200);
}

TEST_F(SimulateTest, AFlowThatCrossesALinkTwiceTakesTwice) {
  // Alone: 2r = 1, 100/(1/2) = 200.
  Move(100, Over({{Link(), 2}}));
  // Beside one that crosses once: 2r + r = 1, both at 1/3 until the smaller, 100, ends at 300. The
  // other has 200 - 100 left and then 1/2: 300 + 200.
  const LinkId shared = Link();
  Move(200, Over({{shared, 2}}));
  Move(100, Over({{shared, 1}}));
  Play();
  EXPECT_EQ(End(0), 200);
  EXPECT_EQ(End(1), 500);
  EXPECT_EQ(End(2), 300);
}

TEST_F(SimulateTest, TheSmallerFlowLeavesAndTheOtherSpeedsUp) {
  // Half each until A (100) ends at 200; B has 300 - 100 left: 200 + 200 = 400 = all bytes /
  // capacity.
  const uint32_t link = Over({{Link(), 1}});
  Move(100, link);
  Move(300, link);
  Play();
  EXPECT_EQ(End(0), 200);
  EXPECT_EQ(End(1), 400);
}

TEST_F(SimulateTest, AFlowThatArrivesInTheMiddleTakesHalf) {
  // A (200) is alone until 100 and has 100 left, B has 100: both at 1/2 end at 100 + 200.
  const uint32_t link = Over({{Link(), 1}});
  Move(200, link);
  const TaskId wait = Delay(100);
  builder_.AddEdge(wait, Move(100, link));
  Play();
  EXPECT_EQ(End(0), 300);
  EXPECT_EQ(End(2), 300);
}

TEST_F(SimulateTest, ManyArrivalsLoseNoBytes) {
  // Flow i of n arrives at time i with 1000 bytes and stays until they have all come: the link is
  // busy from 0 on, so the last ends at n·1000, except for the rounding of the ends, 1/2 ps each.
  const uint32_t link = Over({{Link(), 1}});
  constexpr int kFlows = 300;
  for (int i = 0; i < kFlows; ++i) {
    const TaskId wait = builder_.AddDelay(Time(i));
    builder_.AddEdge(wait, Move(1000, link));
  }
  Play();
  EXPECT_NEAR(static_cast<double>(Step()), kFlows * 1000, kFlows * 0.5);
  EXPECT_EQ(simulation_.timeline.links[0].bytes.value(), kFlows * 1000.0);
}

TEST_F(SimulateTest, FlowsOnDifferentLinksDoNotMeet) {
  Move(100, Over({{Link(), 1}}));
  Move(100, Over({{Link(), 1}}));
  Play();
  EXPECT_EQ(End(0), 100);
  EXPECT_EQ(End(1), 100);
  EXPECT_EQ(simulation_.stats.solves, 2u);
}

TEST_F(SimulateTest, AFlowWithoutLinksOrWithoutBytesOnlyWaits) {
  const uint32_t link = Over({{Link(), 1}});
  Move(100, Over({}), 7, 3);
  Move(0, link, 7, 3);
  Move(0, link, 0, 3);
  Play();
  EXPECT_EQ(End(0), 21);
  EXPECT_EQ(End(1), 21);
  EXPECT_EQ(End(2), 0);
  EXPECT_EQ(simulation_.stats.transfers, 3u) << "those of the first flow";
}

TEST_F(SimulateTest, StepsOfAFlowFollowEachOther) {
  // 3·(7 + 100).
  Move(100, Over({{Link(), 1}}), 7, 3);
  Play();
  EXPECT_EQ(End(0), 321);
  EXPECT_EQ(simulation_.stats.transfers, 3u);
  EXPECT_EQ(simulation_.stats.events, 6u);
}

TEST_F(SimulateTest, LongCascadesWithinOneInstantNeedNoStack) {
  // 100,000 empty steps of two flows in a ring, then 100,000 joins in a row.
  const uint32_t none = Over({});
  const TaskId a = Move(0, none, 0, 100'000);
  const TaskId b = Move(0, none, 0, 100'000);
  builder_.Chain(a, b);
  builder_.Chain(b, a);
  TaskId last = b;
  for (int i = 0; i < 100'000; ++i) {
    const TaskId next = builder_.AddJoin();
    builder_.AddEdge(last, next);
    last = next;
  }
  builder_.AddEdge(last, Delay(5));
  Play();
  EXPECT_EQ(Begin(2), 0);
  EXPECT_EQ(Step(), 5);
}

// A ring of p flows over links of their own: all steps coincide, each lasts L + b/C.
TEST(RingTest, AnEqualRingTakesStepsTimesLatencyAndTransfer) {
  for (const uint32_t ranks : {2u, 3u, 7u, 16u}) {
    const uint32_t steps = 2 * (ranks - 1);
    const Simulation simulation =
        Simulate(RingProgram(std::vector<double>(ranks, 1e12), steps, 100, Time(7)), ranks);
    for (const Span& span : simulation.timeline.spans)
      EXPECT_EQ(span.end, Time(int64_t{steps} * 107));
    EXPECT_EQ(simulation.stats.transfers, ranks * steps);
    EXPECT_EQ(simulation.stats.solves, ranks) << "one a link, not one a step";
  }
}

// The flows of a ring that all cross one core link are one component; it is solved once, whether
// its steps begin immediately or after a latency, since the same flows move again.
TEST(RingTest, StepsThatCoincideAreSolvedOnce) {
  for (const int64_t latency : {0, 7}) {
    ProgramBuilder builder;
    const LinkId core = builder.AddLink({"core", "test", BytesPerSecond(1e12)});
    Flow flow;
    flow.bytes = 100;
    flow.latency = Time(latency);
    flow.steps = 10;
    flow.use_set = builder.AddUseSet({{core, 1}});
    for (uint32_t i = 0; i < 4; ++i) {
      const TaskId task = builder.AddFlow(flow);
      builder.AddSpan({.rank = i, .op = 0, .ready = TaskId(), .begin = task, .end = task});
    }
    for (uint32_t i = 0; i < 4; ++i) builder.Chain(TaskId(i), TaskId((i + 1) % 4));
    const Simulation simulation = Simulate(builder.Build(), 4);
    // 10 steps at a quarter of the link.
    EXPECT_EQ(simulation.timeline.step, Time(10 * (latency + 400)));
    EXPECT_EQ(simulation.stats.solves, 1u);
  }
}

// Step s of flow i ends at e_i(s) = max(e_i(s-1), e_{i-1}(s-1)) + d_i, and e_i(0) = d_i, so
//   e_i(s) = max over all paths of s moves back, each to oneself or to the upstream, of the sum
//            of d.
// With one slow flow, d_0 = D, all others d < D: the best path from i >= 1 goes the i hops back to
// flow 0 through i fast flows (i itself included) and stays there, if s >= i:
//   e_i(s) = i·d + (s + 1 - i)·D.
// So every flow, once the slow one has reached it, goes at the slow one's pace D a step, and the
// slow one itself is never kept waiting: e_0(s) = (s+1)·D.
TEST(RingTest, AnUnequalRingGoesAtThePaceOfItsSlowestEdge) {
  constexpr int64_t kSlow = 250;  // 100 bytes at 0.4 B/ps
  constexpr int64_t kFast = 100;  // at 1 B/ps
  constexpr uint32_t kSteps = 12;
  const Simulation simulation =
      Simulate(RingProgram({0.4e12, 1e12, 1e12, 1e12}, kSteps, 100, Time(0)), 4);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(simulation.timeline.spans[i].end, Time(i * kFast + (kSteps - i) * kSlow)) << i;
  }
  EXPECT_EQ(simulation.timeline.step, Time(kSteps * kSlow));
}

// An open chain of 5 steps, D = 250 and d = 100. With the slow flow first, it does step s in 250·s
// .. 250·(s+1), and flow 1 waits for each: its last step begins when step 3 of flow 0 has ended, at
// 4·250 (its own step 3 has long ended), and ends at 1000 + 100. With the slow flow last, the first
// runs through, 5·100, and the second is never kept waiting, 5·250.
TEST(RingTest, AnOpenChainWaitsOnlyForItsUpstream) {
  const auto play = [](double first, double second) {
    ProgramBuilder builder;
    for (const double rate : {first, second}) {
      const LinkId link = builder.AddLink({"link", "test", BytesPerSecond(rate)});
      Flow flow;
      flow.bytes = 100;
      flow.steps = 5;
      flow.use_set = builder.AddUseSet({{link, 1}});
      const TaskId task = builder.AddFlow(flow);
      builder.AddSpan(
          {.rank = task.index(), .op = 0, .ready = TaskId(), .begin = task, .end = task});
    }
    builder.Chain(TaskId(0), TaskId(1));
    return Simulate(builder.Build(), 2).timeline;
  };
  const Timeline slow_first = play(0.4e12, 1e12);
  EXPECT_EQ(slow_first.spans[0].end, Time(1250));
  EXPECT_EQ(slow_first.spans[1].end, Time(1100));
  const Timeline slow_last = play(1e12, 0.4e12);
  EXPECT_EQ(slow_last.spans[0].end, Time(500));
  EXPECT_EQ(slow_last.spans[1].end, Time(1250));
}

// A ring of equal flows on links of their own goes as one flow that is its own upstream: each step
// takes latency + bytes / capacity, 5 + 100, and waits for nobody.
TEST_F(SimulateTest, AFlowMayBeItsOwnUpstream) {
  for (const uint32_t steps : {1u, 7u, 1000u}) {
    ops_ = 0;
    const TaskId edge = Move(100, Over({{Link(), 1}}), 5, steps);
    builder_.Chain(edge, edge);
    Play();
    const Timeline ring =
        Simulate(RingProgram({1e12, 1e12, 1e12, 1e12}, steps, 100, Time(5)), 4).timeline;
    EXPECT_EQ(End(0), 105 * steps);
    EXPECT_EQ(End(0), ring.step.picoseconds());
    EXPECT_EQ(simulation_.stats.transfers, steps);
  }
}

// Two folded rings over one link: each edge stands for two that share the link with each other and
// with the other ring's two, so the link is crossed four times: 100 bytes at 1/4, 400 per step.
TEST_F(SimulateTest, FoldedRingsShareALinkByMultiplicity) {
  const uint32_t set = Over({{Link(), 2}});
  for (int ring = 0; ring < 2; ++ring) {
    const TaskId edge = Move(100, set, 0, 50);
    builder_.Chain(edge, edge);
  }
  Play();
  EXPECT_EQ(End(0), 50 * 400);
  EXPECT_EQ(End(1), 50 * 400);
}

// A flow that starts late holds up its downstream after that one's first step, which needs no
// upstream. Flow 0 starts at 1000, steps of 100: flow 1 does step 0 in 0..100, and step 1 in
// 1100..1200.
TEST_F(SimulateTest, AStepWaitsForAnUpstreamThatHasNotStarted) {
  const uint32_t one = Over({{Link(), 1}});
  const uint32_t other = Over({{Link(), 1}});
  const TaskId wait = Delay(1000);
  const TaskId late = Move(100, one, 0, 2);
  const TaskId early = Move(100, other, 0, 2);
  builder_.AddEdge(wait, late);
  builder_.Chain(late, early);
  Play();
  EXPECT_EQ(End(1), 1200);
  EXPECT_EQ(Begin(2), 0);
  EXPECT_EQ(End(2), 1200);
}

TEST_F(SimulateTest, LinksCountBytesTimesStepsTimesMultiplicity) {
  const LinkId a = Link();
  const LinkId b = Link();
  Link();
  Move(100, Over({{a, 2}, {b, 1}}), 0, 3);
  Move(0.1, Over({{a, 1}}));
  Play();
  // 100·3·2 + 0.1, 100·3; nothing on the third.
  ASSERT_EQ(simulation_.timeline.links.size(), 3u);
  EXPECT_EQ(simulation_.timeline.links[0].bytes.value(), 600 + 0.1);
  EXPECT_EQ(simulation_.timeline.links[1].bytes.value(), 300);
  EXPECT_EQ(simulation_.timeline.links[2].bytes.value(), 0);
  EXPECT_THAT(simulation_.timeline.links[0].loads, IsEmpty()) << "not asked for";
}

TEST_F(SimulateTest, LoadsArePiecewiseConstantAndEndWithNone) {
  // A (200, twice over link a, at 1/2) from 0 to 400; B (300) on b alone from 100 to 400, at 1.
  // Link a: 1 from 0 to 400. Link b: A's 1/2 from 0 on; when B joins at 100, b is shared by A at
  // 1/2 and B at 1/2: full. A ends at 400 with B at 300 - 150 left, which goes at 1 until 550.
  const LinkId a = Link();
  const LinkId b = Link();
  Move(200, Over({{a, 2}, {b, 1}}));
  const TaskId wait = Delay(100);
  builder_.AddEdge(wait, Move(300, Over({{b, 1}})));
  Play({.record_link_loads = true});
  const auto loads = [this](size_t link) {
    std::vector<std::pair<int64_t, double>> result;
    for (const LinkLoad& load : simulation_.timeline.links[link].loads) {
      result.emplace_back(load.from.picoseconds(), load.bytes_per_second);
    }
    return result;
  };
  using Load = std::pair<int64_t, double>;
  EXPECT_THAT(loads(0), ElementsAre(Load(0, 1e12), Load(400, 0)));
  EXPECT_THAT(loads(1), ElementsAre(Load(0, 0.5e12), Load(100, 1e12), Load(550, 0)));
}

TEST_F(SimulateTest, TasksThatWaitForEachOtherAreNamed) {
  Delay(10);
  const TaskId a = Join();
  const TaskId b = Join();
  builder_.AddEdge(a, b);
  builder_.AddEdge(b, a);
  try {
    Play();
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("2 of 3 tasks can never end"),
                                    HasSubstr("task 1 (a join), which waits for 1 of its 1")));
  }
}

TEST_F(SimulateTest, AChainWhoseUpstreamWaitsForItIsNamed) {
  // Flow 1 can do one step without flow 0, which waits for the end of flow 1.
  const uint32_t none = Over({});
  const TaskId upstream = Move(1, none, 0, 2);
  const TaskId downstream = Move(1, none, 0, 2);
  builder_.Chain(upstream, downstream);
  builder_.AddEdge(downstream, upstream);
  EXPECT_THROW(Play(), InternalError);
}

// 1 + 2 + 3 in a chain.
TEST_F(SimulateTest, DelaysThatOnlyWaitForEachOtherAreOneEvent) {
  const TaskId a = Delay(1);
  const TaskId b = Delay(2);
  const TaskId c = Delay(3);
  builder_.AddEdge(a, b);
  builder_.AddEdge(b, c);
  Play();
  EXPECT_EQ(simulation_.stats.events, 1u);
  EXPECT_EQ(Begin(1), 1);
  EXPECT_EQ(End(1), 3);
  EXPECT_EQ(End(2), 6);
}

TEST_F(SimulateTest, ADelayThatWaitsForTwoIsReachedByTheLater) {
  const TaskId a = Delay(1);
  const TaskId b = Delay(4);
  const TaskId c = Delay(3);
  const TaskId d = Delay(2);
  builder_.AddEdge(a, c);
  builder_.AddEdge(b, c);
  builder_.AddEdge(c, d);
  Play();
  EXPECT_EQ(Begin(2), 4);
  EXPECT_EQ(End(3), 9);
  EXPECT_EQ(simulation_.stats.events, 3u);  // a, b, and c that goes on to d
}

}  // namespace simulate_test
}  // namespace rehearse
