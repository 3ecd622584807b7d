// What is skipped is what would be played: messages begin, meet and end at random, and all of it is
// the same to the last bit whether steady states are skipped or not.
#include <cstdint>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/packets/packet_network.h"
#include "tests/sim/packets/packet_tree.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace packet_steady_test {

struct Played {
  std::vector<std::pair<int64_t, uint32_t>> arrivals;
  PacketStats stats;
  std::vector<uint64_t> sent;     // by port
  std::vector<int64_t> paused;    // by port
  std::vector<uint64_t> longest;  // queue, by port
  uint64_t skipped = 0;
};

// Flows between random pairs of 16 hosts, each of which sends a few messages: some one right after
// the other, some after a while.
Played Play(const PacketOptions& options, bool skips, uint64_t seed, uint64_t most_bytes) {
  PacketTree tree(4, 50e9, Time(1'000'000));
  std::mt19937_64 random(seed);
  const auto flows = static_cast<uint32_t>(1 + random() % (uint64_t{1} << (1 + random() % 5)));
  constexpr uint32_t kMessages = 4;
  struct Plan {
    uint64_t bytes = 0;
    int64_t wait = 0;  // after the one before
  };
  std::vector<std::vector<Plan>> plans(flows);
  const auto crowd = static_cast<uint32_t>(1 + random() % 16);
  for (uint32_t i = 0; i < flows; ++i) {
    const auto from = static_cast<uint32_t>(random() % 16);
    const auto to = static_cast<uint32_t>(random() % crowd);
    tree.AddFlow(from, from == to ? (from + 1) % 16 : to);
    for (uint32_t k = 0; k < kMessages; ++k)
      plans[i].push_back({1 + random() % most_bytes,
                          random() % 3 == 0 ? static_cast<int64_t>(random() % 20'000'000) : 0});
  }
  PacketNetwork network(tree.wiring(), options, skips);
  Played played;
  using Start = std::pair<int64_t, uint32_t>;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts;
  std::vector<uint32_t> next(flows, 0);
  for (uint32_t i = 0; i < flows; ++i)
    if (random() % 4 != 0) starts.emplace(plans[i][0].wait, i);
  while (!starts.empty() || network.under_way() > 0) {
    const Time until(starts.empty() ? int64_t{1} << 60 : starts.top().first);
    if (network.Run(until)) {
      for (const uint32_t flow : network.arrived()) {
        played.arrivals.emplace_back(network.now().picoseconds(), flow);
        ++next[flow];
      }
      for (const uint32_t flow : network.arrived())
        if (next[flow] < kMessages)
          starts.emplace(network.now().picoseconds() + plans[flow][next[flow]].wait, flow);
      continue;
    }
    const auto [time, flow] = starts.top();
    starts.pop();
    network.Begin(flow, plans[flow][next[flow]].bytes, Time(time));
  }
  while (!network.IsAtRest()) network.Run(network.now() + Time(1'000'000'000));
  played.stats = network.stats();
  for (uint32_t port = 0; port < tree.wiring().ports.size(); ++port) {
    played.sent.push_back(network.BytesOf(port));
    played.paused.push_back(network.PausedOf(port).picoseconds());
    played.longest.push_back(network.MostQueuedAt(port));
  }
  played.skipped = network.SkippedHops();
  return played;
}

void ExpectEqual(const Played& with, const Played& without) {
  ASSERT_EQ(with.arrivals, without.arrivals);
  EXPECT_EQ(with.sent, without.sent);
  EXPECT_EQ(with.paused, without.paused);
  EXPECT_EQ(with.longest, without.longest);
  EXPECT_EQ(with.stats.packets, without.stats.packets);
  EXPECT_EQ(with.stats.hops, without.stats.hops);
  EXPECT_EQ(with.stats.marked, without.stats.marked);
  EXPECT_EQ(with.stats.dropped, without.stats.dropped);
  EXPECT_EQ(with.stats.trimmed, without.stats.trimmed);
  EXPECT_EQ(with.stats.repeated, without.stats.repeated);
  EXPECT_EQ(with.stats.reordered, without.stats.reordered);
  EXPECT_EQ(with.stats.pauses, without.stats.pauses);
  EXPECT_EQ(with.stats.paused, without.stats.paused);
  EXPECT_EQ(with.stats.longest_pause, without.stats.longest_pause);
  EXPECT_EQ(with.stats.longest_paused, without.stats.longest_paused);
  EXPECT_EQ(with.stats.most_queued, without.stats.most_queued);
}

TEST(PacketSteadyTest, WhatIsSkippedIsWhatWouldBePlayed) {
  constexpr uint64_t kMostBytes = 8'000'000;
  const uint64_t seeds = kIsSanitized ? 5 : 40;
  uint64_t skipped = 0;
  uint64_t hops = 0;
  for (const LinkControl control :
       {LinkControl::kPfc, LinkControl::kCredits, LinkControl::kDrop, LinkControl::kTrim}) {
    for (const PathChoice choice : {PathChoice::kHash, PathChoice::kSpray, PathChoice::kAdaptive}) {
      PacketOptions options;
      options.link_control = control;
      options.path_choice = choice;
      options.recovery = Recovery::kSelective;
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        options.buffer = seed % 3 == 0 ? 60'000 : 1'000'000;
        options.pause_above = seed % 3 == 0 ? 60'000 : 200'000;
        options.resume_below = options.pause_above - 20'000;
        options.cut_through = seed % 4 == 1;
        options.rate_control = RateControl::kNone;
        if (control == LinkControl::kPfc && seed % 2 == 1) {
          options.rate_control = RateControl::kDcqcn;
          options.recovery =
              choice == PathChoice::kHash ? Recovery::kGoBackN : Recovery::kSelective;
        }
        if (control == LinkControl::kDrop || control == LinkControl::kTrim || seed % 5 == 2) {
          options.rate_control = RateControl::kWindow;
          options.window = seed % 2 == 0 ? 512'000 : 150'000;
        }
        const Played without = Play(options, false, seed, kMostBytes);
        const Played with = Play(options, true, seed, kMostBytes);
        SCOPED_TRACE(::testing::Message() << Name(control) << " " << Name(choice) << " "
                                          << Name(options.rate_control) << ", seed " << seed);
        ASSERT_NO_FATAL_FAILURE(ExpectEqual(with, without));
        EXPECT_EQ(without.skipped, 0u);
        skipped += with.skipped;
        hops += with.stats.hops;
      }
    }
  }
  RecordProperty("skipped", std::to_string(skipped) + " of " + std::to_string(hops));
  EXPECT_GT(50 * skipped, hops);  // most of these collide all the time
}

// Messages of 10,000 packets and more, which never meet: little of them is played.
TEST(PacketSteadyTest, OfLongMessagesThatDoNotMeetLittleIsPlayed) {
  for (const LinkControl control : {LinkControl::kPfc, LinkControl::kCredits}) {
    PacketTree tree(8, 50e9, Time(1'000'000));
    for (uint32_t host = 0; host < 128; ++host) tree.AddFlow(host, host ^ 1);
    PacketOptions options;
    options.link_control = control;
    PacketNetwork network(tree.wiring(), options, true);
    for (uint32_t flow = 0; flow < 128; ++flow)
      network.Begin(flow, 40'960'000 + 40'960'000 * (flow % 7), Time(flow * 12'345));
    while (network.under_way() > 0) network.Run(Time(int64_t{1} << 60));
    EXPECT_GT(100 * network.SkippedHops(), 85 * network.stats().hops) << Name(control);
  }
}

}  // namespace packet_steady_test
}  // namespace rehearse
