// Delays that run one after the other as one task. Links have 1 B/ps, so that bytes are
// picoseconds.
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/sim/play.h"

namespace rehearse {
namespace series_test {

class SeriesTest : public PlayTest {
 protected:
  // Three delays on the processor, with a span for each.
  TaskId Three(uint32_t processor, double slowdown) {
    const DelayOwner owner{processor, slowdown};
    const uint32_t series =
        builder_.AddSeries({Time(100), Time(200), Time(300)}, {owner, owner, owner});
    return AddThree(series);
  }
  TaskId AddThree(uint32_t series) {
    const TaskId task = Add(builder_.AddTaskOfSeries(series));
    ops_ += 2;
    return task;
  }
  TaskId Communicate(double bytes, uint32_t processor) {
    const TaskId task = Move(bytes, Over({{Link(), 1}}));
    builder_.SetParties(task, builder_.AddPartySet({processor}));
    return task;
  }
};

TEST_F(SeriesTest, HasASpanForEachDelayAndOneEvent) {
  const TaskId before = Delay(50);
  const TaskId three = AddThree(builder_.AddSeries({Time(100), Time(0), Time(300)}));
  builder_.AddEdge(before, three);
  builder_.AddEdge(Join(), three);
  Play();
  EXPECT_EQ(Begin(1), 50);
  EXPECT_EQ(End(1), 150);
  EXPECT_EQ(Begin(2), 150);
  EXPECT_EQ(End(2), 150);
  EXPECT_EQ(Begin(3), 150);
  EXPECT_EQ(End(3), 450);
  EXPECT_EQ(simulation_.timeline.spans[3].ready, Time(150));
  EXPECT_EQ(Step(), 450);
}

TEST_F(SeriesTest, TasksShareIt) {
  const uint32_t series = builder_.AddSeries({Time(100), Time(200), Time(300)});
  const TaskId first = AddThree(series);
  builder_.AddEdge(first, AddThree(series));
  Play();
  EXPECT_EQ(End(0), 100);
  EXPECT_EQ(End(2), 600);
  EXPECT_EQ(Begin(3), 600);
  EXPECT_EQ(End(4), 900);
  EXPECT_EQ(End(5), 1200);
}

// From 150 to 250 at half speed: the second delay has 150 left at 150, 100 at 250, and ends at 350.
TEST_F(SeriesTest, IsSlowedFromTheMiddleOfADelayOn) {
  const uint32_t gpu = builder_.AddProcessor({});
  Three(gpu, 1);
  builder_.AddEdge(Delay(150), Communicate(100, gpu));
  Play();
  EXPECT_EQ(End(0), 100);
  EXPECT_EQ(Begin(1), 100);
  EXPECT_EQ(End(1), 350);
  EXPECT_EQ(End(2), 650);
  // The wait, the transfer, the end of the slowed delay, and of the series.
  EXPECT_LE(simulation_.stats.events, 4u);
}

// The transfer begins at the very end of the first delay and lasts for 400, which is all that the
// second one needs at half speed.
TEST_F(SeriesTest, IsSlowedFromTheBeginningOfADelayOn) {
  const uint32_t gpu = builder_.AddProcessor({});
  Three(gpu, 1);
  builder_.AddEdge(Delay(100), Communicate(400, gpu));
  Play();
  EXPECT_EQ(End(0), 100);
  EXPECT_EQ(End(1), 500);
  EXPECT_EQ(End(2), 800);
}

// Two processors run the same delays; the transfer makes those of one take twice as long for 100,
// of which it does 50.
TEST_F(SeriesTest, ProcessorsShareDelays) {
  const uint32_t slow = builder_.AddProcessor({});
  const uint32_t other = builder_.AddProcessor({});
  const DelayOwner owner{slow, 1};
  const uint32_t series = builder_.AddSeries({Time(100), Time(200)}, {owner, owner});
  Add(builder_.AddTaskOfSeries(series));
  ++ops_;
  Add(builder_.AddTaskOfSeries(builder_.AddSeriesLike(series, other)));
  ++ops_;
  Communicate(100, slow);
  Play();
  EXPECT_EQ(program_.delays.size(), 2u);
  EXPECT_EQ(End(0), 150);
  EXPECT_EQ(End(1), 350);
  EXPECT_EQ(End(2), 100);
  EXPECT_EQ(End(3), 300);
}

constexpr int64_t kDay = int64_t{86'400} * 1'000'000'000'000;

// Days 0 to 50, 50 to 80, 80 to 110: the clock ends with day 106.
TEST_F(SeriesTest, ADelayBeyondTheRangeIsNamed) {
  AddThree(builder_.AddSeries({Time(50 * kDay), Time(30 * kDay), Time(30 * kDay)}));
  try {
    Play();
    FAIL();
  } catch (const StepTooLong& error) {
    EXPECT_EQ(error.op(), 2u);
  }
}

// Its processor communicates all the time, so that the second delay would end on day 50 + 60.
TEST_F(SeriesTest, ASlowedDelayBeyondTheRangeIsNamed) {
  const uint32_t gpu = builder_.AddProcessor({});
  AddThree(builder_.AddSeries({Time(50 * kDay), Time(30 * kDay), Time(30 * kDay)},
                              {{gpu, 0}, {gpu, 1}, {gpu, 0}}));
  Communicate(200.0 * static_cast<double>(kDay), gpu);
  try {
    Play();
    FAIL();
  } catch (const StepTooLong& error) {
    EXPECT_EQ(error.op(), 1u);
  }
}

TEST_F(SeriesTest, BelongsToOneProcessorAndHasSeveralDelays) {
  const uint32_t gpu = builder_.AddProcessor({});
  const uint32_t other = builder_.AddProcessor({});
  EXPECT_THROW(builder_.AddSeries({Time(1)}), InternalError);
  EXPECT_THROW(builder_.AddSeries({Time(1), Time(-1)}), InternalError);
  EXPECT_THROW(builder_.AddSeries({Time(1), Time(1)}, {{gpu, 0}}), InternalError);
  EXPECT_THROW(builder_.AddSeries({Time(1), Time(1)}, {{gpu, 0}, {other, 0}}), InternalError);
  EXPECT_THROW(builder_.AddTaskOfSeries(7), InternalError);
  EXPECT_THROW(builder_.AddSeriesLike(7, gpu), InternalError);
}

}  // namespace series_test
}  // namespace rehearse
