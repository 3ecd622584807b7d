#include "sim/packets/remembered_network.h"

#include <queue>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/packets/packet_tree.h"

namespace rehearse {
namespace remembered_network_test {

struct Played {
  std::vector<std::pair<int64_t, uint32_t>> arrivals;
  PacketStats stats;
  uint64_t skipped = 0;
};

// Rounds of messages, each at rest before the next; in some a message begins when another arrives,
// and now and then one differs.
Played Play(const PacketOptions& options, bool remembers, uint64_t seed) {
  PacketTree tree(4, 50e9, Time(1'000'000));
  std::mt19937_64 random(seed);
  constexpr uint32_t kFlows = 24;
  for (uint32_t i = 0; i < kFlows; ++i) {
    const auto from = static_cast<uint32_t>(random() % 16);
    tree.AddFlow(from, (from + 1 + static_cast<uint32_t>(random() % 15)) % 16);
  }
  RememberedNetwork network(tree.wiring(), options, remembers);
  Played played;
  int64_t round_start = 0;
  for (uint32_t round = 0; round < 30; ++round) {
    const uint64_t kind = random() % 4;
    const bool differs = random() % 5 == 0;
    using Start = std::pair<int64_t, uint32_t>;
    std::priority_queue<Start, std::vector<Start>, std::greater<>> starts;
    for (uint32_t flow = 0; flow < kFlows / 2; ++flow)
      starts.emplace(round_start + static_cast<int64_t>(kind * flow * 700'000), flow);
    if (differs) starts.emplace(round_start + 3'333'333, kFlows - 1);
    while (!starts.empty() || network.under_way() > 0) {
      const Time until(starts.empty() ? int64_t{1} << 60 : starts.top().first);
      if (network.Run(until)) {
        for (const uint32_t flow : network.arrived()) {
          played.arrivals.emplace_back(network.now().picoseconds(), flow);
          if (flow < kFlows / 2 - 1) starts.emplace(network.now().picoseconds(), flow + kFlows / 2);
        }
        continue;
      }
      const auto [time, flow] = starts.top();
      starts.pop();
      network.Begin(flow, 50'000 * (kind + 1), Time(time));
    }
    // Most rounds find all at rest, some do not.
    round_start = network.now().picoseconds() + (random() % 6 == 0 ? 1'000'000 : 50'000'000'000);
  }
  played.stats = network.Stats();
  played.skipped = network.SkippedHops();
  return played;
}

TEST(RememberedNetworkTest, WhatIsRememberedIsWhatWouldBePlayed) {
  for (const LinkControl control :
       {LinkControl::kPfc, LinkControl::kCredits, LinkControl::kDrop, LinkControl::kTrim}) {
    for (const PathChoice choice :
         {PathChoice::kHash, PathChoice::kFlowlet, PathChoice::kSpray, PathChoice::kAdaptive}) {
      PacketOptions options;
      options.link_control = control;
      options.path_choice = choice;
      options.recovery = Recovery::kSelective;
      options.buffer = 60'000;
      if (control == LinkControl::kPfc) options.rate_control = RateControl::kDcqcn;
      for (uint64_t seed = 0; seed < 3; ++seed) {
        const Played without = Play(options, false, seed);
        const Played with = Play(options, true, seed);
        ASSERT_EQ(with.arrivals, without.arrivals)
            << Name(control) << " " << Name(choice) << " " << seed;
        // What comes after the very last arrival may or may not be counted.
        const auto count = [](uint64_t number) { return static_cast<double>(number); };
        const double hops = count(without.stats.hops);
        EXPECT_NEAR(count(with.stats.hops), hops, 1e-3 * hops);
        EXPECT_NEAR(count(with.stats.marked), count(without.stats.marked), 2);
        EXPECT_NEAR(count(with.stats.dropped), count(without.stats.dropped), 2);
        EXPECT_NEAR(count(with.stats.pauses), count(without.stats.pauses), 2);
        EXPECT_EQ(without.skipped, 0u);
        EXPECT_GT(10 * with.skipped, with.stats.hops) << Name(control) << " " << Name(choice);
      }
    }
  }
}

// Nor do senders that learn from acknowledgements keep anything beyond rest.
TEST(RememberedNetworkTest, SendersThatLearnForgetAtRest) {
  for (const RateControl control :
       {RateControl::kHpcc, RateControl::kSwift, RateControl::kTimely, RateControl::kNscc}) {
    for (const LinkControl link : {LinkControl::kPfc, LinkControl::kDrop, LinkControl::kTrim}) {
      PacketOptions options;
      options.link_control = link;
      options.recovery = Recovery::kSelective;
      options.buffer = 60'000;
      options.rate_control = control;
      for (uint64_t seed = 0; seed < 3; ++seed) {
        const Played without = Play(options, false, seed);
        const Played with = Play(options, true, seed);
        ASSERT_EQ(with.arrivals, without.arrivals)
            << Name(control) << " " << Name(link) << " " << seed;
        EXPECT_GT(10 * with.skipped, with.stats.hops) << Name(control) << " " << Name(link);
      }
    }
  }
}

}  // namespace remembered_network_test
}  // namespace rehearse
