// Compute and communication beside each other. Links have 1 B/ps, so that bytes are picoseconds.
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/engine/simulate.h"
#include "tests/sim/play.h"

namespace rehearse {
namespace interference_test {

class InterferenceTest : public PlayTest {
 protected:
  uint32_t Processor(double slowdown = 0, uint32_t host = Program::kNone, uint32_t copies = 1) {
    return builder_.AddProcessor({host, slowdown, copies});
  }
  TaskId Compute(int64_t picoseconds, uint32_t processor, double slowdown = 0) {
    const TaskId task = Delay(picoseconds);
    builder_.SetOwner(task, {processor, slowdown});
    return task;
  }
  TaskId Communicate(double bytes, std::vector<uint32_t> processors, int64_t latency = 0) {
    const TaskId task = Move(bytes, Over({{Link(), 1}}), latency);
    builder_.SetParties(task, builder_.AddPartySet(processors));
    return task;
  }
};

TEST_F(InterferenceTest, WithoutCoefficientsNothingChanges) {
  const uint32_t gpu = Processor();
  Compute(1000, gpu);
  Communicate(300, {gpu});
  Play();
  EXPECT_EQ(End(0), 1000);
  EXPECT_EQ(End(1), 300);
}

TEST_F(InterferenceTest, ComputeIsSlowedWhileItsProcessorCommunicates) {
  // Slowdown 0.5: 300 ps at 2/3 are 200 of the 1000; the other 800 take 800.
  const uint32_t gpu = Processor();
  Compute(1000, gpu, 0.5);
  Communicate(300, {gpu});
  Play();
  EXPECT_EQ(End(0), 1100);
  EXPECT_EQ(End(1), 300);
}

TEST_F(InterferenceTest, LatencyCountsAsCommunication) {
  // 200 of latency and 100 of bytes: the same 300 as above.
  const uint32_t gpu = Processor();
  Compute(1000, gpu, 0.5);
  Communicate(100, {gpu}, 200);
  Play();
  EXPECT_EQ(End(0), 1100);
}

TEST_F(InterferenceTest, OnlyItsOwnProcessorAndItsOwnCoefficientCount) {
  // 0: a slowdown of 1, 200 ps at 1/2. 1: none. 2: on another processor.
  const uint32_t gpu = Processor();
  const uint32_t other = Processor();
  Compute(1000, gpu, 1);
  Compute(1000, gpu, 0);
  Compute(1000, other, 1);
  Communicate(200, {gpu});
  Play();
  EXPECT_EQ(End(0), 1100);
  EXPECT_EQ(End(1), 1000);
  EXPECT_EQ(End(2), 1000);
}

TEST_F(InterferenceTest, ManyTransfersSlowNoMoreThanOne) {
  // Two transfers, 0..300 and 0..400: slowed for 400 ps, at 1/2.
  const uint32_t gpu = Processor();
  Compute(1000, gpu, 1);
  Communicate(300, {gpu});
  Communicate(400, {gpu});
  Play();
  EXPECT_EQ(End(0), 1200);
}

TEST_F(InterferenceTest, ATransferIsSlowedByComputeOfAnyOfItsParties) {
  // Slowdowns 1 and 3 of the two processors. The second computes until 400: at 1/4, 100 bytes. Then
  // only the first does, until 1000: 300 bytes at 1/2. The last 100 at full speed.
  const uint32_t one = Processor(1);
  const uint32_t two = Processor(3);
  Compute(1000, one);
  Compute(400, two);
  Communicate(500, {one, two});
  Play();
  EXPECT_EQ(End(2), 1100);
}

TEST_F(InterferenceTest, WhatASlowedTransferDoesNotUseStaysBooked) {
  // Two on one link, each with a share of 1/2; the first goes at 1/4 until its processor has
  // computed, at 400: 100 of its 300 bytes. The second has half the link all the time: its 300 take
  // 600. By then the first has 200 - 100 left and now has the link to itself: 700.
  const uint32_t gpu = Processor(1);
  Compute(400, gpu);
  const uint32_t set = Over({{Link(), 1}});
  const TaskId slowed = Move(300, set);
  builder_.SetParties(slowed, builder_.AddPartySet({gpu}));
  Move(300, set);
  Play({.record_link_loads = true});
  EXPECT_EQ(End(2), 600);
  EXPECT_EQ(End(1), 700);
  // What the link carries is what moves: 1/4 + 1/2, 1/2 + 1/2.
  ASSERT_EQ(simulation_.timeline.links[0].loads.size(), 3u);
  EXPECT_EQ(simulation_.timeline.links[0].loads[0].bytes_per_second, 0.75e12);
  EXPECT_EQ(simulation_.timeline.links[0].loads[1].bytes_per_second, 1e12);
  EXPECT_EQ(simulation_.timeline.links[0].loads[1].from, Time(400));
}

TEST_F(InterferenceTest, RanksShareTheCoresOfTheirHost) {
  // Three tasks on two cores: 2/3 each, so the 100 is done at 150. Then two on two.
  const uint32_t host = builder_.AddHost(2);
  Compute(100, Processor(0, host));
  Compute(300, Processor(0, host));
  Compute(300, Processor(0, host));
  Play();
  EXPECT_EQ(End(0), 150);
  EXPECT_EQ(End(1), 350);
  EXPECT_EQ(End(2), 350);
}

TEST_F(InterferenceTest, AProcessorThatCommunicatesTakesACore) {
  // One core: the transfer and the other rank's compute at half speed each, until the 100 bytes are
  // there at 200; 200 of the 300 are left.
  const uint32_t host = builder_.AddHost(1);
  Compute(300, Processor(0, host));
  Communicate(100, {Processor(0, host)});
  Play();
  EXPECT_EQ(End(1), 200);
  EXPECT_EQ(End(0), 400);
}

TEST_F(InterferenceTest, AFoldedProcessorCountsForAllThatItStandsFor) {
  // One that stands for four, on two cores: half speed.
  const uint32_t host = builder_.AddHost(2);
  Compute(300, Processor(0, host, 4));
  Play();
  EXPECT_EQ(End(0), 600);
}

TEST_F(InterferenceTest, ASteadyRingIsSlowedAtItsTime) {
  // 1000 steps of 100, at half speed from 20'000 to 40'000: 200 steps, then 100, then 700.
  const uint32_t gpu = Processor(1);
  const TaskId edge = Move(100, Over({{Link(), 1}}), 0, 1000);
  builder_.Chain(edge, edge);
  builder_.SetParties(edge, builder_.AddPartySet({gpu}));
  const TaskId wait = Delay(20'000);
  builder_.AddEdge(wait, Compute(20'000, gpu));
  Play();
  EXPECT_EQ(End(0), 110'000);
  EXPECT_GT(simulation_.stats.jumped, 900u);
}

TEST_F(InterferenceTest, NothingWithoutMeaning) {
  EXPECT_THROW(builder_.AddHost(0), InternalError);
  EXPECT_THROW(Processor(-1), InternalError);
  EXPECT_THROW(Processor(0, 0), InternalError) << "no host yet";
  EXPECT_THROW(Processor(0, Program::kNone, 0), InternalError);
  const uint32_t gpu = Processor();
  EXPECT_THROW(builder_.AddPartySet({gpu + 1}), InternalError);
  EXPECT_THROW(builder_.SetOwner(Delay(1), {gpu + 1, 0}), InternalError);
  EXPECT_THROW(builder_.SetOwner(Delay(1), {gpu, -1}), InternalError);
  EXPECT_THROW(builder_.SetOwner(Join(), {gpu, 0}), InternalError);
}

}  // namespace interference_test
}  // namespace rehearse
