// The engine against the naive reference engine, and against itself, on thousands of random programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/simulate.h"
#include "tests/engine/random_program.h"
#include "tests/engine/reference_engine.h"

namespace rehearse {
namespace {

constexpr uint64_t kPrograms = 4000;

int64_t Difference(Time a, Time b) { return std::abs((a - b).picoseconds()); }

int64_t LargestDifference(const std::vector<Span>& a, const std::vector<Span>& b) {
  int64_t largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max({largest, Difference(a[i].ready, b[i].ready),
                        Difference(a[i].begin, b[i].begin), Difference(a[i].end, b[i].end)});
  }
  return largest;
}

bool SameSpans(const std::vector<Span>& a, const std::vector<Span>& b) {
  return a.size() == b.size() && LargestDifference(a, b) == 0;
}

// Both engines round at the same points, so that nearly all programs agree to the bit. They differ where
// an end falls on half a picosecond to within the rounding of rates (1e-16 relative), as coarse numbers do:
// then one end is 1 ps off. Another flow whose rate r' becomes r at that end has moved 1 ps·|r - r'|
// more or less, and its own end moves by |r - r'|/r ps. Rates on links of 1 to 10 GB/s that a few flows
// share differ by a factor of a few tens at most, and the ends that do so are few: 100 ps a program
// (of about 1e8 ps) is generous, and 1e-6 of it.
TEST(EngineTest, AgreesWithTheNaiveReferenceOnRandomPrograms) {
  uint64_t equal = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Program program = RandomProgram(seed);
    const Simulation simulation = Simulate(program, 1);
    const ReferenceResult reference = SimulateNaively(program);
    ASSERT_EQ(simulation.timeline.spans.size(), reference.spans.size()) << "seed " << seed;
    const int64_t largest = LargestDifference(simulation.timeline.spans, reference.spans);
    ASSERT_LE(largest, 100) << "seed " << seed;
    if (largest == 0) ++equal;
    for (size_t link = 0; link < program.links.size(); ++link) {
      const long double expected = reference.link_bytes[link];
      ASSERT_NEAR(simulation.timeline.links[link].bytes.value(), expected, 1e-12L * expected)
          << "seed " << seed << ", link " << link;
    }
  }
  RecordProperty("equal_to_the_bit", static_cast<int>(equal));
  EXPECT_GE(equal, kPrograms * 98 / 100);
}

// Fewer, but with hundreds of tasks on few links: many flows at once, deep histories.
TEST(EngineTest, AgreesWithTheNaiveReferenceOnLargePrograms) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = RandomProgram(1'000'000 + seed, 400);
    const int64_t largest = LargestDifference(Simulate(program, 1).timeline.spans,
                                              SimulateNaively(program).spans);
    EXPECT_LE(largest, 100) << "seed " << seed;
  }
}

// What a link carried by its loads, sum of load·dt, is what its flows moved, except that the end of each
// step is rounded by up to half a picosecond, during which the link carries up to its capacity.
TEST(EngineTest, LinkLoadsStayWithinCapacityAndAddUpToTheBytes) {
  for (uint64_t seed = 0; seed < kPrograms / 4; ++seed) {
    const Program program = RandomProgram(seed);
    const Simulation simulation = Simulate(program, 1, {.record_link_loads = true});
    const ReferenceResult reference = SimulateNaively(program);
    for (size_t i = 0; i < program.links.size(); ++i) {
      const LinkRecord& link = simulation.timeline.links[i];
      double before = 0;
      double carried = 0;
      for (size_t j = 0; j < link.loads.size(); ++j) {
        const double load = link.loads[j].bytes_per_second;
        ASSERT_NE(load, before) << "equal neighbours are one";
        ASSERT_LE(load, link.capacity.value() * (1 + 1e-9));
        ASSERT_GE(load, 0);
        if (j + 1 < link.loads.size()) {
          ASSERT_LT(link.loads[j].from, link.loads[j + 1].from);
          carried += load * ToSeconds(link.loads[j + 1].from - link.loads[j].from).value();
        }
        before = load;
      }
      ASSERT_EQ(before, 0) << "the last load is none, seed " << seed;
      const double rounding =
          static_cast<double>(reference.link_step_ends[i]) * 0.5e-12 * link.capacity.value();
      ASSERT_NEAR(carried, link.bytes.value(), rounding + 1e-9 * link.bytes.value())
          << "seed " << seed << ", link " << i;
    }
  }
}

TEST(EngineTest, RecordingLoadsChangesNothing) {
  for (uint64_t seed = 0; seed < kPrograms / 10; ++seed) {
    const Program program = RandomProgram(seed);
    EXPECT_EQ(HashOf(Simulate(program, 1).timeline),
              HashOf(Simulate(program, 1, {.record_link_loads = true}).timeline));
  }
}

TEST(EngineTest, TheSameProgramGivesTheSameHash) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(HashOf(Simulate(RandomProgram(seed), 1).timeline),
              HashOf(Simulate(RandomProgram(seed), 1).timeline));
  }
}

// Rates are solved a component at a time, and a flow whose rate stays keeps its end. So what shares no link
// and no edge with a program cannot change one bit of it.
TEST(EngineTest, AProgramDoesNotNoticeAnotherBesideIt) {
  for (uint64_t seed = 0; seed < kPrograms / 4; ++seed) {
    const ProgramRecipe one = RandomRecipe(2 * seed, 30);
    const ProgramRecipe other = RandomRecipe(2 * seed + 1, 30);
    const Timeline both = Simulate(Assemble({one, other}), 2).timeline;
    std::vector<Span> apart = Simulate(Assemble({one}), 1).timeline.spans;
    for (const Span& span : Simulate(Assemble({other}), 1).timeline.spans) apart.push_back(span);
    ASSERT_TRUE(SameSpans(both.spans, apart)) << "seed " << seed;
  }
}

// Events of one instant are one batch, and rates do not depend on the order of flows or links.
TEST(EngineTest, TheOrderOfTasksAndLinksDoesNotMatter) {
  for (uint64_t seed = 0; seed < kPrograms / 4; ++seed) {
    const ProgramRecipe recipe = RandomRecipe(seed, 60);
    Random shuffle(seed);
    ASSERT_TRUE(SameSpans(Simulate(Assemble({recipe}), 1).timeline.spans,
                          Simulate(Assemble({recipe}, &shuffle), 1).timeline.spans))
        << "seed " << seed;
  }
}

// Committed numbers: equal on gcc and clang, Debug and Release (built with -ffp-contract=off). A change of
// the engine's meaning changes them and has to say so.
TEST(EngineTest, GoldenHashes) {
  EXPECT_EQ(HashOf(Simulate(RandomProgram(2026, 400), 1).timeline), "golden1");
  std::vector<double> capacities;
  for (int i = 0; i < 16; ++i) capacities.push_back(25e9 * (1 + 0.01 * i));
  EXPECT_EQ(HashOf(Simulate(RingProgram(capacities, 30, 1e6, Time(1'500'000)), 16).timeline),
            "golden2");
}

}  // namespace
}  // namespace rehearse
