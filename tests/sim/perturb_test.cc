#include "sim/perturb.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/sim/play.h"

namespace rehearse {
namespace {

Program Delays(size_t count, size_t links = 0) {
  ProgramBuilder builder;
  builder.AddHost(1);
  for (uint32_t i = 0; i < 2; ++i) builder.AddProcessor({});
  for (size_t i = 0; i < links; ++i) builder.AddLink({"link", "test", BytesPerSecond(1e9)});
  for (size_t i = 0; i < count; ++i) {
    const TaskId delay = builder.AddDelay(Time(1'000'000'000));
    if (i % 4 != 3) builder.SetOwner(delay, {static_cast<uint32_t>(i % 2), 0});
  }
  return builder.Build();
}

TEST(PerturbTest, NothingAskedForNothingChanged) {
  const Program before = Delays(100, 10);
  const Program after = Perturb(before, {.seed = 5});
  EXPECT_EQ(before.delays, after.delays);
  for (const ProgramLink& link : after.links) EXPECT_EQ(link.capacity.value(), 1e9);
}

// Mean 0 and variance 1 of z: with 100,000 delays of 1 and a jitter of 0.1, the mean is 1 within
// 5·0.1/√100,000 = 0.0016, the standard deviation 0.1 within 5 %. Cutting off at 3 takes away less
// than 1 % of the variance. None is off by more than 0.3.
TEST(PerturbTest, JitterHasTheStatedMeanAndDeviationAndIsCutOff) {
  const Program program = Perturb(Delays(100'000), {.seed = 1, .delay_jitter = 0.1});
  double sum = 0;
  double squares = 0;
  for (const Time delay : program.delays) {
    const double factor = static_cast<double>(delay.picoseconds()) / 1e9;
    ASSERT_NEAR(factor, 1, 0.3 + 1e-9);
    sum += factor - 1;
    squares += (factor - 1) * (factor - 1);
  }
  EXPECT_NEAR(sum / 100'000, 0, 0.0016);
  EXPECT_NEAR(std::sqrt(squares / 100'000), 0.1, 0.005);
}

TEST(PerturbTest, LinksHaveNoiseOfTheirOwn) {
  const Program program =
      Perturb(Delays(2, 2), {.seed = 1, .delay_jitter = 0.1, .link_jitter = 0.1});
  const double link = program.links[0].capacity.value() / 1e9;
  const double delay = static_cast<double>(program.delays[0].picoseconds()) / 1e9;
  EXPECT_GT(std::abs(link - 1), 1e-6);
  EXPECT_GT(std::abs(link - delay), 1e-6);
  EXPECT_GT(std::abs(link - program.links[1].capacity.value() / 1e9), 1e-6);
}

TEST(PerturbTest, TheSeedAndThePositionAloneDecide) {
  const Program few = Perturb(Delays(10), {.seed = 1, .delay_jitter = 0.1});
  const Program many = Perturb(Delays(100), {.seed = 1, .delay_jitter = 0.1});
  const Program other = Perturb(Delays(10), {.seed = 2, .delay_jitter = 0.1});
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(few.delays[i], many.delays[i]);
  EXPECT_NE(few.delays, other.delays);
}

TEST(PerturbTest, TheFirstNumbersAreTheSameOnEveryMachine) {
  const Program program = Perturb(Delays(2), {.seed = 1, .delay_jitter = 0.1});
  EXPECT_EQ(program.delays[0].picoseconds(), 921'534'000);
  EXPECT_EQ(program.delays[1].picoseconds(), 1'026'022'544);
}

TEST(PerturbTest, AStragglersDelaysTakeLonger) {
  const Program program = Perturb(Delays(8), {.stragglers = {{1, 2}}});
  // Processor 1 owns delays 1 and 5; 3 and 7 are nobody's.
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(program.delays[i].picoseconds(), i % 4 == 1 ? 2'000'000'000 : 1'000'000'000) << i;
  }
}

TEST(PerturbTest, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(Perturb(Delays(1), {.delay_jitter = 0.31}), InternalError);
  EXPECT_THROW(Perturb(Delays(1), {.link_jitter = -0.1}), InternalError);
  EXPECT_THROW(Perturb(Delays(1), {.stragglers = {{2, 2}}}), InternalError);
  EXPECT_THROW(Perturb(Delays(1), {.stragglers = {{0, 0}}}), InternalError);
}

}  // namespace
}  // namespace rehearse
