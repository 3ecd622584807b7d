#include "sim/packets/packet_watch.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/packets/packet_runs.h"
#include "tests/sim/packets/packet_tree.h"

namespace rehearse {
namespace packet_watch_test {

constexpr double kRate = 25e9;
constexpr Time kDelay = Time(500'000);

// Hosts 0 to 3 on the left switch, 4 and 5 on the right one, and a cable of four times the rate
// from left to right. Ports are named by where they lead from and to.
struct TwoSwitches {
  TwoSwitches() {
    wiring.is_switch = {false, false, false, false, false, false, true, true};
    for (uint32_t host = 0; host < 4; ++host) Cable(host, 6, kRate);
    Cable(6, 7, 4 * kRate);
    Cable(7, 4, kRate);
    Cable(7, 5, kRate);
  }
  void Cable(uint32_t from, uint32_t to, double rate) {
    wiring.ports.push_back(
        {rate, kDelay, from, to, std::to_string(from) + "->" + std::to_string(to)});
  }
  // To host 4 or 5.
  void AddFlow(uint32_t from, uint32_t to) {
    for (const uint32_t port : {from, 4u, to + 1}) wiring.hops.push_back(port);
    wiring.way_begin.push_back(static_cast<uint32_t>(wiring.hops.size()));
  }

  PacketWiring wiring;
};

// Three send to host 4, and host 3 sends to host 5.
struct Incast : TwoSwitches {
  Incast() {
    for (uint32_t host = 0; host < 3; ++host) AddFlow(host, 4);
    AddFlow(3, 5);
  }
  std::vector<PacketMessage> messages = {
      {0, 4, 25'000'000}, {1, 4, 25'000'000}, {2, 4, 25'000'000}, {3, 5, 25'000'000}};
};

PacketOptions Of(LinkControl control) {
  PacketOptions options;
  options.link_control = control;
  options.recovery = Recovery::kSelective;
  if (control == LinkControl::kCredits) options.buffer = 256'000;
  return options;
}

const PortHistory& Port(const PacketHistory& history, const std::string& name) {
  const auto found = std::find_if(history.shown.begin(), history.shown.end(),
                                  [&](const PortHistory& port) { return port.name == name; });
  CHECK(found != history.shown.end());
  return *found;
}

// Each of the three gets a third of host 4's port and needs 3 ms for its 1 ms of bytes. The cable
// from left to right stops for two thirds of that time because of the port, the hosts' because of
// the cable. The fourth sender waits behind them, though its receiver is idle.
TEST(PacketWatchTest, AVictimIsToldFromWhoIsHeldOnItsWay) {
  for (const LinkControl control : {LinkControl::kPfc, LinkControl::kCredits}) {
    Incast incast;
    PacketWatch watch(incast.wiring);
    const PacketRun run = PlayPackets(incast.wiring, Of(control), incast.messages, &watch);
    EXPECT_NEAR(run.ends[3], 3000, 60) << Name(control);
    const PacketHistory history = watch.History(Time(int64_t{3000} * 1'000'000));
    ASSERT_FALSE(history.trees.empty()) << Name(control);
    const CongestionTree& tree = history.trees[0];
    // Credits take a moment to come back, while nobody is asked for too much yet.
    for (size_t i = 1; i < history.trees.size(); ++i)
      EXPECT_LT(50 * history.trees[i].stopped.picoseconds(), tree.stopped.picoseconds());
    EXPECT_EQ(tree.root, "7->4");
    EXPECT_EQ(tree.ports, 5u);
    EXPECT_EQ(tree.depth, 2u);
    EXPECT_NEAR(tree.stopped.picoseconds() * 1e-6, 5 * 2000, 500) << Name(control);
    ASSERT_EQ(tree.held.size(), 4u);
    for (const HeldFlow& held : tree.held) {
      EXPECT_EQ(held.goes_there, held.flow != 3) << held.flow;
      EXPECT_NEAR(held.held.picoseconds() * 1e-6, 2000, 100) << held.flow;
    }
  }
}

// Whoever drops holds nobody up; a queue that may be long enough does not either.
TEST(PacketWatchTest, WithoutPausesNobodyIsHeldUp) {
  Incast incast;
  for (const LinkControl control : {LinkControl::kDrop, LinkControl::kTrim}) {
    PacketOptions options = Of(control);
    if (control == LinkControl::kDrop) {
      options.rate_control = RateControl::kWindow;
      options.window = 300'000;
    }
    PacketWatch watch(incast.wiring);
    const PacketRun run = PlayPackets(incast.wiring, options, incast.messages, &watch);
    const PacketHistory history = watch.History(Time(int64_t{3000} * 1'000'000));
    EXPECT_TRUE(history.trees.empty()) << Name(control);
    EXPECT_NEAR(run.ends[3], 1000, 20) << Name(control);
    EXPECT_EQ(Port(history, "7->4").all.lost, run.stats.dropped + run.stats.trimmed);
  }
}

// On a lane of its own the fourth sender meets no pause: its milliseconds are those of its bytes.
TEST(PacketWatchTest, ALaneOfItsOwnIsNotHeldUp) {
  for (const LinkControl control : {LinkControl::kPfc, LinkControl::kCredits}) {
    Incast incast;
    const auto ports = static_cast<uint32_t>(incast.wiring.ports.size());
    for (uint32_t port = 0; port < ports; ++port) {
      PacketPort lane = incast.wiring.ports[port];
      lane.cable_of = port;
      lane.name += " (stages)";
      incast.wiring.ports.push_back(lane);
    }
    for (uint32_t i = incast.wiring.way_begin[3]; i < incast.wiring.way_begin[4]; ++i)
      incast.wiring.hops[i] += ports;
    PacketWatch watch(incast.wiring);
    const PacketRun run = PlayPackets(incast.wiring, Of(control), incast.messages, &watch);
    EXPECT_NEAR(run.ends[3], 1000, 20) << Name(control);
    for (uint32_t sender = 0; sender < 3; ++sender) EXPECT_NEAR(run.ends[sender], 3000, 60);
    for (const CongestionTree& tree : watch.History(Time(int64_t{3000} * 1'000'000)).trees)
      for (const HeldFlow& held : tree.held)
        EXPECT_TRUE(held.flow != 3 || held.held < Time(10'000'000)) << Name(control);
  }
}

// What the intervals of a port add up to is what the network has counted, however often they were
// halved; and the watch changes nothing.
TEST(PacketWatchTest, IntervalsAddUpAndNothingIsChanged) {
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    TwoSwitches two;
    std::vector<PacketMessage> messages;
    for (uint32_t flow = 0; flow < 8; ++flow) {
      const uint32_t from = random() % 4;
      two.AddFlow(from, 4 + random() % 2);
      messages.push_back({from, 4, 1 + random() % 3'000'000,
                          flow > 2 && random() % 2 == 0 ? flow - 1 : PacketMessage::kNone});
    }
    PacketOptions options = Of(static_cast<LinkControl>(i % 4));
    if (options.link_control == LinkControl::kPfc && i % 8 == 0)
      options.rate_control = RateControl::kDcqcn;
    PacketWatch watch(two.wiring);
    const PacketRun run = PlayPackets(two.wiring, options, messages, &watch);
    EXPECT_EQ(PlayPackets(two.wiring, options, messages).ends, run.ends);
    const double last = *std::max_element(run.ends.begin(), run.ends.end());
    const PacketHistory history = watch.History(Time(static_cast<int64_t>(last * 1e6)));
    EXPECT_LE(history.shown.front().intervals.size(), PacketWatch::kIntervals);
    EXPECT_GE(history.interval.picoseconds() * PacketWatch::kIntervals,
              static_cast<int64_t>(last * 1e6));
    uint64_t sent = 0;
    uint64_t marked = 0;
    uint64_t lost = 0;
    uint64_t most = 0;
    Time stopped;
    for (const PortHistory& port : history.shown) {
      PortInterval all;
      for (const PortInterval& interval : port.intervals) {
        all.sent += interval.sent;
        all.stopped += interval.stopped;
        all.most_queued = std::max(all.most_queued, interval.most_queued);
        EXPECT_LE(interval.stopped, history.interval);
      }
      EXPECT_EQ(all.sent, port.all.sent);
      EXPECT_EQ(all.stopped, port.all.stopped);
      EXPECT_EQ(all.most_queued, port.all.most_queued);
      sent += port.all.sent;
      marked += port.all.marked;
      lost += port.all.lost;
      most = std::max<uint64_t>(most, port.all.most_queued);
      if (options.link_control != LinkControl::kCredits) stopped += port.all.stopped;
    }
    EXPECT_EQ(marked, run.stats.marked);
    EXPECT_EQ(lost, run.stats.dropped + run.stats.trimmed);
    EXPECT_EQ(most, run.stats.most_queued);
    if (options.link_control != LinkControl::kCredits) {
      EXPECT_EQ(stopped, run.stats.paused);
    }
    EXPECT_GT(sent, 0u);
  }
}

// Across three tiers: the tree of pauses reaches the senders, and each of them sends over the root.
TEST(PacketWatchTest, ATreeReachesTheSenders) {
  PacketTree tree(4, kRate, kDelay);
  std::vector<PacketMessage> messages;
  for (uint32_t i = 0; i < 6; ++i) {
    tree.AddFlow(15 - i, 0);
    messages.push_back({15 - i, 0, 10'000'000});
  }
  PacketWatch watch(tree.wiring());
  PlayPackets(tree.wiring(), Of(LinkControl::kPfc), messages, &watch);
  const PacketHistory history = watch.History(Time(int64_t{2500} * 1'000'000));
  ASSERT_FALSE(history.trees.empty());
  EXPECT_GE(history.trees[0].depth, 4u);
  for (const HeldFlow& held : history.trees[0].held) EXPECT_TRUE(held.goes_there);
}

}  // namespace packet_watch_test
}  // namespace rehearse
