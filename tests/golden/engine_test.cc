// How the engine plays random programs, beside golden records: not only what comes of them, which
// the naive engine knows as well (tests/engine), but how much work it is: what is left out, kept,
// or jumped over only saves work, and a mistake there costs nothing but time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/fnv.h"
#include "sim/engine/simulate.h"
#include "tests/golden/record.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace engine_test {

// Sums and one number for all of some programs.
class Played {
 public:
  void Add(const Program& program) {
    const Simulation plain = Simulate(program, 1);
    AddStats(plain.stats);
    hash_.Add(HashOf(plain.timeline));
    const Simulation recorded =
        Simulate(program, 1, {.record_link_loads = true, .record_bottlenecks = true});
    AddStats(recorded.stats);
    std::string text;
    for (const LinkRecord& link : recorded.timeline.links) {
      text += fmt::format("{:.6g} {};", link.bytes.value(), link.loads.size());
      for (const LinkLoad& load : link.loads)
        text += fmt::format("{} {:.6g};", load.from.picoseconds(), load.bytes_per_second);
    }
    for (const Bottleneck& bottleneck : recorded.bottlenecks) {
      text += bottleneck.link.IsSet()
                  ? fmt::format("{} {:.6g};", bottleneck.link.index(), bottleneck.share)
                  : "none;";
    }
    hash_.Add(text);
  }

  std::string Line() const {
    return fmt::format("{} events, {} transfers, {} jumped, {} solves{}\n", sum_.events,
                       sum_.transfers, sum_.jumped, sum_.solves, DigestOf("timelines", hash_));
  }

 private:
  void AddStats(const SimulationStats& stats) {
    sum_.events += stats.events;
    sum_.transfers += stats.transfers;
    sum_.jumped += stats.jumped;
    sum_.solves += stats.solves;
  }

  SimulationStats sum_;
  Fnv1a hash_;
};

// A ring whose edges differ, so that its steady state takes a while to come.
Program UnevenRing(uint64_t seed) {
  Random random(seed);
  std::vector<double> capacities;
  const uint32_t edges = random.Between(2, 9);
  for (uint32_t i = 0; i < edges; ++i)
    capacities.push_back(1e9 * random.Between(1, random.Chance(50) ? 2 : 9));
  const Time latency(1000 * int64_t{random.Below(3000)});
  const double bytes = 1000.0 * random.Between(1, 50);
  const uint32_t steps = random.Between(2, 400);
  return RingProgram(capacities, steps, bytes, latency);
}

// In parts that take little time each.
class GoldenEngineTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(GoldenEngineTest, TakesAsMuchWorkAsIsRecorded) {
  constexpr uint32_t kParts = 4;
  GoldenRecord record(fmt::format("engine-{}", GetParam()));
  size_t number = GetParam();
  for (uint32_t mask = GetParam(); mask < 16; mask += kParts) {
    if (record.IsLeftOut(number++)) continue;
    const Extras extras = {.core = (mask & 1) != 0,
                           .long_chains = (mask & 2) != 0,
                           .interference = (mask & 4) != 0,
                           .link_changes = (mask & 8) != 0};
    std::string lines;
    for (uint64_t part = 0; part < 4; ++part) {
      Played small;
      for (uint64_t i = 0; i < 12; ++i)
        small.Add(Assemble({ExtendedRecipe(1000 * mask + 12 * part + i, 30, extras)}));
      Played busy;
      for (uint64_t i = 0; i < 2; ++i) {
        const uint32_t lanes = 10 + static_cast<uint32_t>(40 * i + 10 * part);
        busy.Add(Assemble({BusyRecipe(1000 * mask + 2 * part + i, lanes, 4, extras)}));
      }
      lines += "small: " + small.Line() + "busy: " + busy.Line();
    }
    record.Add(fmt::format("extras {}", mask), lines);
  }
  for (uint64_t seed = GetParam(); seed < 60; seed += kParts) {
    if (record.IsLeftOut(number++)) continue;
    Played ring;
    ring.Add(UnevenRing(seed));
    record.Add(fmt::format("ring {}", seed), ring.Line());
  }
  record.End();
}

INSTANTIATE_TEST_SUITE_P(Parts, GoldenEngineTest, ::testing::Range(0u, 4u));

}  // namespace engine_test
}  // namespace rehearse
