#include "sim/engine/transfer_network.h"

#include <map>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/support/random_program.h"
#include "tests/support/reference_engine.h"

namespace rehearse {
namespace transfer_network_test {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Pair;

// Links of 1 B/ps, so that bytes are picoseconds; flow i crosses the i-th list of links.
Program Flows(uint32_t links, const std::vector<std::vector<LinkUse>>& flows, double bytes = 600) {
  ProgramBuilder builder;
  for (uint32_t i = 0; i < links; ++i) builder.AddLink({"link", "test", BytesPerSecond(1e12)});
  for (const std::vector<LinkUse>& uses : flows) {
    Flow flow;
    flow.bytes = bytes;
    flow.use_set = builder.AddUseSet(uses);
    builder.AddFlow(flow);
  }
  return builder.Build();
}

LinkUse Use(uint32_t link, uint32_t multiplicity = 1) { return {LinkId(link), multiplicity}; }

std::map<uint32_t, int64_t> Settle(TransferNetwork& network, int64_t now) {
  std::map<uint32_t, int64_t> ends;
  for (const auto [flow, end] : network.Settle(Time(now))) ends[flow] = end.picoseconds();
  return ends;
}

TEST(TransferNetworkTest, AFlowAloneMovesAtItsCapacity) {
  const Program program = Flows(1, {{Use(0)}});
  TransferNetwork network(program);
  network.Begin(0);
  EXPECT_THAT(Settle(network, 100), ElementsAre(Pair(0, 700)));
  EXPECT_THAT(Settle(network, 200), IsEmpty());
}

TEST(TransferNetworkTest, ANewcomerDelaysOnlyThoseItSharesALinkWith) {
  // Flows 0 and 1 are on links of their own. Flow 2 joins link 0 at 200: flow 0 has 400 left and
  // ends at 200 + 800; flow 1 is not even looked at.
  const Program program = Flows(2, {{Use(0)}, {Use(1)}, {Use(0)}});
  TransferNetwork network(program);
  network.Begin(0);
  network.Begin(1);
  EXPECT_THAT(Settle(network, 0), ElementsAre(Pair(0, 600), Pair(1, 600)));
  EXPECT_EQ(network.solves(), 2u);
  network.Begin(2);
  EXPECT_THAT(Settle(network, 200), ElementsAre(Pair(0, 1000), Pair(2, 1400)));
  EXPECT_EQ(network.solves(), 3u);
}

TEST(TransferNetworkTest, AFlowWhoseRateStaysKeepsItsEnd) {
  // Flow 0 crosses link 1 twice, which holds it at 1/2; flow 1 joins on link 0 and takes the other
  // half, solved in one component with flow 0, whose end is not reported again.
  const Program program = Flows(2, {{Use(0), Use(1, 2)}, {Use(0)}});
  TransferNetwork network(program);
  network.Begin(0);
  EXPECT_THAT(Settle(network, 0), ElementsAre(Pair(0, 1200)));
  network.Begin(1);
  EXPECT_THAT(Settle(network, 100), ElementsAre(Pair(1, 1300)));
}

TEST(TransferNetworkTest, TheNextStepAtOnceNeedsNoSolution) {
  const Program program = Flows(1, {{Use(0)}, {Use(0)}});
  TransferNetwork network(program);
  network.Begin(0);
  network.Begin(1);
  Settle(network, 0);
  for (int64_t step = 1; step < 5; ++step) {
    for (const uint32_t flow : {0u, 1u}) network.End(flow, Time(1200 * step));
    for (const uint32_t flow : {0u, 1u}) network.Begin(flow);
    EXPECT_THAT(Settle(network, 1200 * step),
                ElementsAre(Pair(0, 1200 * (step + 1)), Pair(1, 1200 * (step + 1))));
  }
  EXPECT_EQ(network.solves(), 1u);
}

TEST(TransferNetworkTest, ADormantComponentWakesWithItsOldRates) {
  const Program program = Flows(1, {{Use(0)}, {Use(0)}});
  TransferNetwork network(program);
  network.Begin(0);
  network.Begin(1);
  Settle(network, 0);
  network.End(0, Time(1200));
  network.End(1, Time(1200));
  EXPECT_THAT(Settle(network, 1200), IsEmpty());
  network.Begin(1);
  network.Begin(0);
  EXPECT_THAT(Settle(network, 2000), ElementsAre(Pair(0, 3200), Pair(1, 3200)));
  EXPECT_EQ(network.solves(), 1u);
}

TEST(TransferNetworkTest, HalfADormantComponentIsSolvedAnew) {
  const Program program = Flows(1, {{Use(0)}, {Use(0)}});
  TransferNetwork network(program);
  network.Begin(0);
  network.Begin(1);
  Settle(network, 0);
  network.End(0, Time(1200));
  network.End(1, Time(1200));
  Settle(network, 1200);
  network.Begin(1);
  EXPECT_THAT(Settle(network, 2000), ElementsAre(Pair(1, 2600)));
  // Flow 0 comes later: flow 1 has 300 left, which now take 600; it takes 300 of flow 0 with it,
  // whose other 300 go at full speed.
  network.Begin(0);
  EXPECT_THAT(Settle(network, 2300), ElementsAre(Pair(0, 3500), Pair(1, 2900)));
  network.End(1, Time(2900));
  EXPECT_THAT(Settle(network, 2900), ElementsAre(Pair(0, 3200)));
}

TEST(TransferNetworkTest, ADormantComponentDoesNotSurviveANewcomer) {
  // Flows 0 (links 0, 1) and 1 (link 1) sleep. Flow 2 takes link 0. When flow 1 wakes alone, link 1
  // is its own; when flow 0 wakes as well, it shares both its links.
  const Program program = Flows(2, {{Use(0), Use(1)}, {Use(1)}, {Use(0)}});
  TransferNetwork network(program);
  network.Begin(0);
  network.Begin(1);
  Settle(network, 0);
  network.End(0, Time(1200));
  network.End(1, Time(1200));
  Settle(network, 1200);
  network.Begin(2);
  EXPECT_THAT(Settle(network, 1200), ElementsAre(Pair(2, 1800)));
  network.Begin(1);
  EXPECT_THAT(Settle(network, 1300), ElementsAre(Pair(1, 1900)));
  network.Begin(0);
  EXPECT_THAT(Settle(network, 1400), ElementsAre(Pair(0, 2600), Pair(1, 2400), Pair(2, 2200)));
}

TEST(TransferNetworkTest, AComponentThatFallsApartIsTwo) {
  // Flow 1 connects flows 0 and 2; each link is shared by two. When it has left, they are alone.
  const Program program = Flows(2, {{Use(0)}, {Use(0), Use(1)}, {Use(1)}});
  TransferNetwork network(program);
  for (const uint32_t flow : {0u, 1u, 2u}) network.Begin(flow);
  EXPECT_THAT(Settle(network, 0), ElementsAre(Pair(0, 1200), Pair(1, 1200), Pair(2, 1200)));
  EXPECT_EQ(network.solves(), 1u);
  network.End(1, Time(400));
  EXPECT_THAT(Settle(network, 400), ElementsAre(Pair(0, 800), Pair(2, 800)));
  EXPECT_EQ(network.solves(), 2u) << "both are brought up to date at once";
}

TEST(TransferNetworkTest, LoadsAreRecordedThroughSleepAndWaking) {
  const Program program = Flows(1, {{Use(0)}, {Use(0)}});
  TransferNetwork network(program, {.loads = true});
  network.Begin(0);
  Settle(network, 0);  // 1 B/ps
  network.Begin(1);
  Settle(network, 100);  // two halves: no change
  network.End(0, Time(1100));
  network.End(1, Time(1100));
  Settle(network, 1100);  // rest
  network.Begin(0);
  network.Begin(1);
  Settle(network, 1200);
  network.End(0, Time(2400));
  network.End(1, Time(2400));
  Settle(network, 2400);
  std::vector<std::pair<int64_t, double>> loads;
  for (const LinkLoad& load : network.TakeLoads(0)) {
    loads.emplace_back(load.from.picoseconds(), load.bytes_per_second);
  }
  EXPECT_THAT(loads, ElementsAre(Pair(0, 1e12), Pair(1100, 0), Pair(1200, 1e12), Pair(2400, 0)));
}

// Flows begin and end at random, often in groups that rest and move again together; whatever
// sleeps, wakes or falls apart, each must be given the end that follows from rates solved from
// scratch.
TEST(TransferNetworkTest, EndsAreThoseOfRatesSolvedFromNothing) {
  constexpr double kBytes = 1e9;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const uint32_t links = random.Between(1, 6);
    const uint32_t count = random.Between(1, 10);
    std::vector<std::vector<LinkUse>> uses(count);
    for (std::vector<LinkUse>& set : uses) {
      const uint32_t first = random.Below(links);
      set.push_back(Use(first, random.Between(1, 2)));
      if (links > 1 && random.Chance(50)) set.push_back(Use((first + 1) % links));
    }
    const Program program = Flows(links, uses, kBytes);
    const std::vector<long double> capacities(links, 1);
    TransferNetwork network(program);

    std::vector<bool> moving(count, false);
    std::vector<long double> left(count, 0);
    std::vector<int64_t> end(count, 0);
    int64_t now = 0;
    for (int instant = 0; instant < 100; ++instant) {
      const uint32_t group = random.Between(1, 3);  // every group-th flow changes together
      const bool together = random.Chance(60);
      const bool wake = random.Chance(50);
      for (uint32_t flow = 0; flow < count; ++flow) {
        bool target = moving[flow];
        if (together) {
          if (flow % group == 0) target = wake;
        } else if (random.Chance(20)) {
          target = !target;
        }
        const bool again = moving[flow] && target && random.Chance(10);  // the next step at once
        if (moving[flow] && (!target || again)) network.End(flow, Time(now));
        if (target && (!moving[flow] || again)) {
          network.Begin(flow);
          left[flow] = kBytes;
        }
        moving[flow] = target;
      }
      for (const auto& [flow, time] : Settle(network, now)) end[flow] = time;

      std::vector<uint32_t> movers;
      std::vector<std::span<const LinkUse>> sets;
      for (uint32_t flow = 0; flow < count; ++flow) {
        if (!moving[flow]) continue;
        movers.push_back(flow);
        sets.emplace_back(uses[flow]);
      }
      const std::vector<long double> rates = FillProgressively(capacities, sets);
      const int64_t elapsed = random.Between(1, 1'000'000);
      for (size_t i = 0; i < movers.size(); ++i) {
        const uint32_t flow = movers[i];
        // Rounded to the clock, and rates are good to 1e-16 of up to 1e11 ps.
        ASSERT_NEAR(end[flow], now + left[flow] / rates[i], 0.51L) << "seed " << seed;
        left[flow] -= rates[i] * elapsed;
      }
      now += elapsed;
    }
  }
}

// Dozens of flows over shared links, where at each instant a few flows come, go or go on, or links
// get another capacity: rates brought up to date must be, to the last bit, those of all flows
// solved from scratch. Half of the numbers are coarse, so that links fill at the same level. An
// idle flow over each single link makes sure that no link is left out, which would be another
// problem.
TEST(TransferNetworkTest, RatesBroughtUpToDateAreThoseSolvedFromNothingToTheBit) {
  uint64_t compared = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const bool coarse = random.Chance(50);
    const uint32_t links = random.Between(2, 24);
    const uint32_t count = random.Between(4, 80);
    const auto random_rate = [&] {
      return coarse ? 1e9 * random.Between(1, 4) : 1e9 * (1 + random.Fraction());
    };
    ProgramBuilder builder;
    std::vector<double> capacities;
    for (uint32_t link = 0; link < links; ++link) {
      capacities.push_back(random_rate());
      builder.AddLink({"link", "test", BytesPerSecond(capacities.back())});
    }
    Flow flow;
    flow.bytes = 1e6;
    std::vector<std::vector<LinkUse>> uses;
    for (uint32_t i = 0; i < count + links; ++i) {
      std::vector<LinkUse> set;
      if (i >= count) {
        set.push_back(Use(i - count));
      } else {
        // Link 0 is crossed by most: a list too long to look ahead on.
        const uint32_t first = random.Chance(60) ? 0 : random.Below(links);
        const uint32_t others = random.Below(4);
        set.push_back(Use(first, coarse || random.Chance(70) ? 1 : random.Between(2, 1000)));
        for (uint32_t j = 1; j <= others && first + 3 * j < links; ++j) {
          set.push_back(Use(first + 3 * j, random.Chance(80) ? 1 : random.Between(2, 3)));
        }
      }
      flow.use_set = builder.AddUseSet(set);
      builder.AddFlow(flow);
      uses.push_back(std::move(set));
    }
    for (uint32_t link = 0; link < links; ++link) {
      builder.AddLinkChange({Time(1), LinkId(link), 4});  // there are changes, up to that
    }
    const Program program = builder.Build();
    TransferNetwork network(program);

    std::vector<bool> moving(count, false);
    for (int64_t instant = 0; instant < 60; ++instant) {
      const uint32_t percent = random.Chance(10) ? 60 : 6;
      for (uint32_t i = 0; i < count; ++i) {
        const bool again = moving[i] && random.Chance(3);  // the next step at once
        if (!again && !random.Chance(percent)) continue;
        if (moving[i]) network.End(i, Time(instant));
        if (!moving[i] || again) network.Begin(i);
        moving[i] = !moving[i] || again;
      }
      if (random.Chance(20)) {
        const uint32_t link = random.Below(links);
        capacities[link] = random_rate();
        network.SetCapacity(link, capacities[link]);
      }
      network.Settle(Time(instant));

      MaxMinProblem problem{capacities, {}};
      for (uint32_t i = 0; i < count; ++i) {
        if (moving[i]) problem.flows.emplace_back(uses[i]);
      }
      const std::vector<double> rates = SolveMaxMin(problem);
      size_t next = 0;
      for (uint32_t i = 0; i < count; ++i) {
        if (!moving[i]) continue;
        ASSERT_EQ(network.MotionOf(i).speed, rates[next++])
            << "seed " << seed << ", instant " << instant << ", flow " << i;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100'000u);
}

TEST(TransferNetworkTest, WhatAnEventDoesNotReachKeepsItsRate) {
  // On link i of a circle of 100: flow 2i, twice; flow 2i + 1, which crosses the next link as well;
  // and flow 2i - 1. All go at 1/4. A newcomer crosses link 0 three times: 1/7 for each flow there.
  // So flow 1 leaves 6/7 of link 1 to flow 3, which link 2 holds at 1/4, and to flow 2: 17/56 each
  // time. The same on link 99, where flow 199 comes from. The other 194 flows stay.
  std::vector<std::vector<LinkUse>> uses;
  for (uint32_t i = 0; i < 100; ++i) {
    uses.push_back({Use(i, 2)});
    uses.push_back({Use(i), Use((i + 1) % 100)});
  }
  uses.push_back({Use(0, 3)});
  const Program program = Flows(100, uses);
  TransferNetwork network(program);
  for (uint32_t flow = 0; flow < 200; ++flow) network.Begin(flow);
  EXPECT_EQ(Settle(network, 0).size(), 200u);
  EXPECT_EQ(network.solves(), 1u);
  network.Begin(200);
  // 600 - 100 / 4 = 575 bytes are left; 575 · 56 / 17 = 1894.1.
  EXPECT_THAT(Settle(network, 100), ElementsAre(Pair(0, 4125), Pair(1, 4125), Pair(2, 1994),
                                                Pair(198, 1994), Pair(199, 4125), Pair(200, 4300)));
  EXPECT_EQ(network.solves(), 2u);
}

// Step by step what sim/engine/README.md says; in milliseconds.
TEST(TransferNetworkTest, TheExampleOfTheReadme) {
  constexpr uint32_t kA = 0;
  constexpr uint32_t kB = 1;
  constexpr uint32_t kC = 2;
  constexpr int64_t kPicoseconds = 1'000'000'000;
  ProgramBuilder builder;
  for (const double capacity : {10.0, 10.0, 10.0, 25.0})
    builder.AddLink({"link", "test", BytesPerSecond(capacity)});
  for (uint32_t nic = 0; nic < 3; ++nic) {
    Flow flow;
    flow.bytes = nic == kB ? 50 : 100;
    flow.use_set = builder.AddUseSet({Use(nic), Use(3)});
    builder.AddFlow(flow);
  }
  builder.AddLinkChange({.time = ToTime(Seconds(20)), .link = LinkId(kA), .factor = 0});
  const Program program = builder.Build();
  TransferNetwork network(program);
  const auto settle = [&](double seconds) {
    std::map<uint32_t, int64_t> ends = Settle(network, ToTime(Seconds(seconds)).picoseconds());
    for (auto& [flow, end] : ends) end /= kPicoseconds;
    return ends;
  };
  EXPECT_EQ(network.relevance().role[3], LinkRole::kLazy);
  network.Begin(kA);
  network.Begin(kB);
  EXPECT_THAT(settle(0), ElementsAre(Pair(kA, 10'000), Pair(kB, 5'000)));
  network.End(kB, ToTime(Seconds(5)));
  EXPECT_THAT(settle(5), IsEmpty());
  EXPECT_EQ(network.solves(), 2u);
  network.Begin(kB);
  EXPECT_THAT(settle(6), ElementsAre(Pair(kB, 11'000)));
  EXPECT_EQ(network.solves(), 2u) << "its component was dormant";
  network.Begin(kC);
  EXPECT_THAT(settle(7), ElementsAre(Pair(kA, 10'600), Pair(kB, 11'800), Pair(kC, 19'000)));
  EXPECT_EQ(network.solves(), 4u) << "a component and a replay";
  network.End(kA, ToTime(Seconds(10.6)));
  EXPECT_THAT(settle(10.6), ElementsAre(Pair(kB, 11'600), Pair(kC, 17'600)));
  network.End(kB, ToTime(Seconds(11.6)));
  EXPECT_THAT(settle(11.6), IsEmpty());
  network.Begin(kA);
  EXPECT_THAT(settle(12), ElementsAre(Pair(kA, 22'000)));
  network.End(kC, ToTime(Seconds(17.6)));
  EXPECT_THAT(settle(17.6), IsEmpty());
  network.SetCapacity(kA, 0);
  EXPECT_THAT(network.Settle(ToTime(Seconds(20))),
              ElementsAre(Field(&TransferNetwork::FlowEnd::end, TransferNetwork::kNever)));
  EXPECT_EQ(network.StuckOn(kA), LinkId(kA));
  network.SetCapacity(kA, 10);
  EXPECT_THAT(settle(25), ElementsAre(Pair(kA, 27'000)));
}

TEST(TransferNetworkTest, RefusesToBeginTwiceOrToEndWhatDoesNotMove) {
  const Program program = Flows(1, {{Use(0)}});
  TransferNetwork network(program);
  EXPECT_THROW(network.End(0, Time(0)), InternalError);
  network.Begin(0);
  EXPECT_THROW(network.Begin(0), InternalError);
  EXPECT_THROW(network.End(0, Time(0)), InternalError) << "not settled";
}

}  // namespace transfer_network_test
}  // namespace rehearse
