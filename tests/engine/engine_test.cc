// The engine against the naive reference engine, and against itself, on thousands of random
// programs.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/simulate.h"
#include "tests/support/random_program.h"
#include "tests/support/reference_engine.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace engine_test {

constexpr uint64_t kPrograms = kIsSanitized ? 1000 : 4000;

bool SameSpans(const std::vector<Span>& a, const std::vector<Span>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Span& x, const Span& y) {
    return x.ready == y.ready && x.begin == y.begin && x.end == y.end;
  });
}

// Both engines keep the same integer clock and round at the same points, halves up whatever the
// rounding errors of rates (1e-16 in one, 1e-19 in the other), so they agree to the picosecond.
TEST(EngineTest, AgreesWithTheNaiveReferenceOnRandomPrograms) {
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Program program = RandomProgram(seed);
    const Simulation simulation = Simulate(program, 1);
    const ReferenceResult reference = SimulateNaively(program);
    ASSERT_TRUE(SameSpans(simulation.timeline.spans, reference.spans)) << "seed " << seed;
    for (size_t link = 0; link < program.links.size(); ++link) {
      const long double expected = reference.link_bytes[link];
      ASSERT_NEAR(simulation.timeline.links[link].bytes.value(), expected, 1e-12L * expected)
          << "seed " << seed << ", link " << link;
    }
  }
}

// With everything else that a program may have, alone and together: cores that sometimes bind, long
// chains whose steady states are jumped over, interference, links that change.
class ExtendedEngineTest : public testing::TestWithParam<int> {
 protected:
  Extras extras() const {
    return {.core = (GetParam() & 1) != 0,
            .long_chains = (GetParam() & 2) != 0,
            .interference = (GetParam() & 4) != 0,
            .link_changes = (GetParam() & 8) != 0};
  }
};

TEST_P(ExtendedEngineTest, AgreesWithTheNaiveReference) {
  const uint64_t programs = (extras().long_chains ? 200 : 600) / (kIsSanitized ? 4 : 1);
  const uint32_t max_tasks = extras().long_chains ? 12 : 40;
  for (uint64_t i = 0; i < programs; ++i) {
    const uint64_t seed = 10'000 * (1 + static_cast<uint64_t>(GetParam())) + i;
    const Program program = Assemble({ExtendedRecipe(seed, max_tasks, extras())});
    const Simulation simulation = Simulate(program, 1);
    const ReferenceResult reference = SimulateNaively(program);
    ASSERT_TRUE(SameSpans(simulation.timeline.spans, reference.spans)) << "seed " << seed;
    for (size_t link = 0; link < program.links.size(); ++link) {
      const long double expected = reference.link_bytes[link];
      // Where a transfer in flight leaves a route, what it has moved is known to 1e-16 of its rate
      // times the time, 1e10 B/s · 1e-3 s at most, many times.
      ASSERT_NEAR(simulation.timeline.links[link].bytes.value(), expected,
                  1e-12L * expected + 1e-3L)
          << "seed " << seed << ", link " << link;
    }
  }
}

// Dozens of transfers are under way all the time, and each that starts or ends moves the ends of a
// few others: rates are hardly ever solved as a whole.
TEST_P(ExtendedEngineTest, AgreesWithTheNaiveReferenceWhereMuchIsUnderWay) {
  const uint64_t programs = extras().long_chains ? 10 : kIsSanitized ? 25 : 50;
  for (uint64_t i = 0; i < programs; ++i) {
    const uint64_t seed = 10'000 * (1 + static_cast<uint64_t>(GetParam())) + i;
    const uint32_t lanes = 4 + static_cast<uint32_t>(i);
    const ProgramRecipe recipe = BusyRecipe(seed, lanes, 5, extras());
    const Program program = Assemble({recipe});
    const Simulation simulation = Simulate(program, 1);
    ASSERT_TRUE(SameSpans(simulation.timeline.spans, SimulateNaively(program).spans))
        << "seed " << seed;
    Random shuffle(seed);
    ASSERT_TRUE(SameSpans(simulation.timeline.spans,
                          Simulate(Assemble({recipe}, &shuffle), 1).timeline.spans))
        << "in another order, seed " << seed;
    const Simulation recorded =
        Simulate(program, 1, {.record_link_loads = true, .record_bottlenecks = true});
    ASSERT_EQ(HashOf(simulation.timeline), HashOf(recorded.timeline)) << "seed " << seed;
  }
}

TEST_P(ExtendedEngineTest, JumpingAndRecordingChangeNothing) {
  uint64_t jumped = 0;
  for (uint64_t seed = 0; seed < (kIsSanitized ? 60 : 300); ++seed) {
    const Program program = Assemble({ExtendedRecipe(seed, 20, extras())});
    const Simulation plain = Simulate(program, 1, {.jump = false});
    const Simulation jumping = Simulate(program, 1);
    ASSERT_EQ(HashOf(plain.timeline), HashOf(jumping.timeline)) << "seed " << seed;
    ASSERT_EQ(plain.stats.transfers, jumping.stats.transfers) << "seed " << seed;
    ASSERT_EQ(plain.stats.jumped, 0u);
    for (size_t link = 0; link < program.links.size(); ++link) {
      const double bytes = plain.timeline.links[link].bytes.value();
      ASSERT_NEAR(jumping.timeline.links[link].bytes.value(), bytes, 1e-12 * bytes + 1e-3);
    }
    jumped += jumping.stats.jumped;
    const Simulation recorded =
        Simulate(program, 1, {.record_link_loads = true, .record_bottlenecks = true});
    ASSERT_EQ(HashOf(plain.timeline), HashOf(recorded.timeline)) << "seed " << seed;
  }
  EXPECT_EQ(jumped > 0, extras().long_chains);
}

INSTANTIATE_TEST_SUITE_P(AllExtras, ExtendedEngineTest, testing::Range(0, 16));

// Fewer, but with hundreds of tasks on few links: many flows at once, deep histories.
TEST(EngineTest, AgreesWithTheNaiveReferenceOnLargePrograms) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = RandomProgram(1'000'000 + seed, 400);
    ASSERT_TRUE(SameSpans(Simulate(program, 1).timeline.spans, SimulateNaively(program).spans))
        << "seed " << seed;
  }
}

// What a link carried according to its loads, the sum of load·dt, is what its flows moved, except
// that the end of each step is rounded by up to half a picosecond, during which the link carries up
// to its capacity.
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
      const double moved = static_cast<double>(reference.link_integral[i]);
      ASSERT_NEAR(carried, moved, rounding + 1e-9 * moved) << "seed " << seed << ", link " << i;
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

// Rates are solved one component at a time, and a flow whose rate stays the same keeps its end. So
// what shares no link and no edge with a program cannot change a bit of it.
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

// Committed numbers: equal on gcc and clang, Debug and Release (built with -ffp-contract=off). A
// change of the engine's meaning changes them and has to say so.
TEST(EngineTest, GoldenHashes) {
  EXPECT_EQ(HashOf(Simulate(RandomProgram(2026, 400), 1).timeline), "6f190d12735217fe");
  std::vector<double> capacities;
  for (int i = 0; i < 16; ++i) capacities.push_back(25e9 * (1 + 0.01 * i));
  EXPECT_EQ(HashOf(Simulate(RingProgram(capacities, 30, 1e6, Time(1'500'000)), 16).timeline),
            "064e6a2904797416");
  const Extras extras = {.core = true, .interference = true, .link_changes = true};
  EXPECT_EQ(HashOf(Simulate(Assemble({BusyRecipe(2026, 128, 8, extras)}), 1).timeline),
            "5f0b2d18206a4768");
}

}  // namespace engine_test
}  // namespace rehearse
