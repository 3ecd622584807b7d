#include "sim/packets/packet_network.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/sim/packets/packet_runs.h"
#include "tests/sim/packets/packet_tree.h"

namespace rehearse {
namespace packet_network_test {

constexpr double kRate = 50e9;            // 400 Gb/s
constexpr Time kCable = Time(1'000'000);  // 1 us
constexpr uint64_t kMegabyte = 1'000'000;

PacketOptions Lossless() {
  PacketOptions options;
  options.mtu = 4000;
  return options;
}

double Last(const PacketRun& run) { return *std::max_element(run.ends.begin(), run.ends.end()); }

std::vector<PacketMessage> Incast(uint32_t senders, uint64_t bytes) {
  std::vector<PacketMessage> messages;
  for (uint32_t i = 0; i < senders; ++i) messages.push_back({127 - i, 0, bytes});
  return messages;
}

// Lanes of a cable send in turns: three flows on one lane have together what a fourth has on its
// own, whichever began first, and the cable is never idle.
// Three hosts send on one lane of the last cable, the fourth on another.
PacketWiring TwoLanes() {
  PacketWiring wiring;
  wiring.is_switch = {false, false, false, false, true, false};
  for (uint32_t host = 0; host < 4; ++host) wiring.ports.push_back({kRate, kCable, host, 4});
  wiring.ports.push_back({kRate, kCable, 4, 5, "one lane", PacketPort::kNone, 1});
  wiring.ports.push_back({kRate, kCable, 4, 5, "second lane", 4, 0});
  for (uint32_t host = 0; host < 4; ++host) {
    wiring.hops.insert(wiring.hops.end(), {host, host < 3 ? 4u : 5u});
    wiring.way_begin.push_back(static_cast<uint32_t>(wiring.hops.size()));
  }
  return wiring;
}

// Each host sends 3 MB.
PacketRun PlayOnLanes(const PacketWiring& wiring, LinkControl control, bool is_strict) {
  std::vector<PacketMessage> messages;
  for (uint32_t host = 0; host < 4; ++host) messages.push_back({host, 5, 3 * kMegabyte});
  PacketOptions options = Lossless();
  options.link_control = control;
  options.recovery = Recovery::kSelective;
  options.lanes_are_strict = is_strict;
  return PlayPackets(wiring, options, messages);
}

TEST(PacketNetworkTest, LanesShareACableEqually) {
  for (const LinkControl control : {LinkControl::kPfc, LinkControl::kCredits}) {
    const PacketRun run = PlayOnLanes(TwoLanes(), control, false);
    // 3 MB at half of 50 GB/s; then 9 MB less the 3 MB that went meanwhile, at all of it.
    EXPECT_NEAR(run.ends[3], 120, 5) << Name(control);
    EXPECT_NEAR(Last(run), 240, 5) << Name(control);
  }
}

TEST(PacketNetworkTest, ALaneWithPriorityGoesFirst) {
  for (const LinkControl control : {LinkControl::kPfc, LinkControl::kCredits}) {
    PacketWiring wiring = TwoLanes();
    const PacketRun run = PlayOnLanes(wiring, control, true);
    // 3 MB at 50 GB/s, as if the others were not there; the others have what is left.
    EXPECT_NEAR(run.ends[3], 62, 1) << Name(control);
    EXPECT_NEAR(Last(run), 242, 3) << Name(control);
    std::swap(wiring.ports[4].priority, wiring.ports[5].priority);
    EXPECT_NEAR(PlayOnLanes(wiring, control, true).ends[3], 242, 3) << Name(control);
  }
}

// 1 MB at 50 GB/s are 20 us; the first packet of 80 ns is stored and forwarded at 5 switches, and
// there are 6 cables of 1 us.
TEST(PacketNetworkTest, AMessageAloneTakesItsBytesCablesAndSwitches) {
  const PacketRun run = PlayPackets(8, kRate, kCable, Lossless(), {{0, 127, kMegabyte}});
  EXPECT_NEAR(run.ends[0], 20 + 5 * 0.08 + 6, 1e-9);
}

// Cut through, a switch sends on after 64 B, 1.28 ns.
TEST(PacketNetworkTest, SwitchesThatCutThroughWaitForHeadersOnly) {
  PacketOptions options = Lossless();
  options.cut_through = true;
  const PacketRun run = PlayPackets(8, kRate, kCable, options, {{0, 127, kMegabyte}});
  EXPECT_NEAR(run.ends[0], 20 + 5 * 0.00128 + 6, 1e-4);
}

// All bytes of k senders leave by one port: k · 20 us, and nothing is lost, whatever is paused.
TEST(PacketNetworkTest, IncastTakesTheBytesOfAllSendersAndLosesNothing) {
  for (const uint32_t k : {2u, 4u, 8u, 16u, 32u}) {
    const PacketRun run = PlayPackets(8, kRate, kCable, Lossless(), Incast(k, kMegabyte));
    EXPECT_GE(Last(run), 20.0 * k);
    EXPECT_LE(Last(run), 20.0 * k * 1.02 + 7) << k;
    EXPECT_EQ(run.stats.dropped, 0u);
    EXPECT_EQ(run.stats.packets, uint64_t{k} * 250);
  }
}

// Two that share a bottleneck get half each, so both end after 40 us; a third elsewhere is alone.
TEST(PacketNetworkTest, FlowsShareABottleneckFairly) {
  const PacketRun run = PlayPackets(8, kRate, kCable, Lossless(),
                                    {{1, 0, kMegabyte}, {2, 0, kMegabyte}, {64, 65, kMegabyte}});
  EXPECT_NEAR(run.ends[0], 40, 0.05 * 40 + 3);
  EXPECT_NEAR(run.ends[1], 40, 0.05 * 40 + 3);
  EXPECT_NEAR(run.ends[2], 20 + 2 + 0.08, 1e-9);
}

// A port with arrivals at random and equal packets: the mean time in the queue is
// ρ/(2(1 - ρ)) · s beyond s itself (Pollaczek and Khinchine), where s is a packet's time.
TEST(PacketNetworkTest, AQueueWithRandomArrivalsWaitsAsLongAsTheFormulaSays) {
  constexpr double kLoad = 0.7;
  constexpr uint32_t kSenders = 512;
  constexpr double kPacketTime = 0.08;  // us
  PacketWiring wiring;
  wiring.is_switch = {true, false};  // the switch, the receiver
  wiring.ports.push_back({kRate, Time(), 0, 1, "out"});
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> when(
      0, static_cast<int64_t>(64 * kSenders * kPacketTime / kLoad * 1e6));
  std::vector<std::pair<int64_t, uint32_t>> starts;
  for (uint32_t sender = 0; sender < 64 * kSenders; ++sender) {
    // Each has a port of its own without end.
    wiring.is_switch.push_back(false);
    wiring.ports.push_back({1e15, Time(), sender + 2, 0, "in"});
    wiring.hops.push_back(sender + 1);
    wiring.hops.push_back(0);
    wiring.way_begin.push_back(static_cast<uint32_t>(wiring.hops.size()));
    starts.emplace_back(when(random), sender);
  }
  std::sort(starts.begin(), starts.end());
  PacketOptions options = Lossless();
  options.link_control = LinkControl::kDrop;
  options.buffer = 1'000'000'000;
  options.recovery = Recovery::kSelective;
  PacketNetwork network(wiring, options);
  std::vector<int64_t> begun(wiring.flows());
  double waited = 0;
  uint32_t arrived = 0;
  const auto run = [&](Time until) {
    while (network.Run(until)) {
      for (const uint32_t flow : network.arrived()) {
        waited += static_cast<double>(network.now().picoseconds() - begun[flow]) * 1e-6;
        ++arrived;
      }
    }
  };
  for (const auto& [time, flow] : starts) {
    run(Time(time));
    begun[flow] = time;
    network.Begin(flow, 4000, Time(time));
  }
  run(Time(starts.back().first) + Time(1'000'000'000));
  ASSERT_EQ(arrived, starts.size());
  const double queue = waited / arrived - kPacketTime;
  EXPECT_NEAR(queue, kLoad / (2 * (1 - kLoad)) * kPacketTime, 0.05 * 0.0933);
}

// What is on its way when a port is told to stop, 2 · 50 kB and two packets, fits into the
// headroom; nearly all of it is needed, and with less the network is refused.
TEST(PacketNetworkTest, TheHeadroomIsWhatPausesNeed) {
  PacketOptions options = Lossless();
  options.pause_above = 100'000;
  options.resume_below = 80'000;
  options.headroom = static_cast<uint32_t>(NeededHeadroom(options, kRate, kCable));
  EXPECT_EQ(options.headroom, 108'000u);
  const PacketRun run = PlayPackets(8, kRate, kCable, options, Incast(16, kMegabyte));
  EXPECT_GT(run.most_held, 100'000u + 95'000u);
  EXPECT_LE(run.most_held, 100'000u + 108'000u);
  EXPECT_EQ(run.stats.dropped, 0u);
  --options.headroom;
  EXPECT_THROW(PlayPackets(8, kRate, kCable, options, Incast(2, kMegabyte)), Error);
}

TEST(PacketNetworkTest, WithCreditsNoBufferHoldsMoreThanItHas) {
  PacketOptions options = Lossless();
  options.link_control = LinkControl::kCredits;
  options.buffer = 120'000;
  const PacketRun run = PlayPackets(8, kRate, kCable, options, Incast(16, kMegabyte));
  EXPECT_LE(run.most_held, 120'000u);
  EXPECT_EQ(run.stats.dropped, 0u);
  EXPECT_EQ(run.stats.packets, 16u * 250);
  EXPECT_LE(Last(run), 320 * 1.02 + 7);
}

// A buffer of half of what a cable holds both ways halves the rate: 60 kB of 108 kB.
TEST(PacketNetworkTest, CreditsOfLessThanACableHoldsSlowItDown) {
  PacketOptions options = Lossless();
  options.link_control = LinkControl::kCredits;
  options.buffer = 60'000;
  const PacketRun run = PlayPackets(8, kRate, kCable, options, {{0, 1, kMegabyte}});
  // Credits come back 2 us after a packet has begun to leave, which is 80 ns after it was sent.
  EXPECT_NEAR(run.ends[0], kMegabyte / 60'000.0 * 2.08, 1.5);
}

TEST(PacketNetworkTest, WhatIsLostIsSentAgain) {
  for (const LinkControl control : {LinkControl::kDrop, LinkControl::kTrim}) {
    for (const Recovery recovery : {Recovery::kGoBackN, Recovery::kSelective}) {
      if (control == LinkControl::kTrim && recovery == Recovery::kGoBackN) continue;
      PacketOptions options = Lossless();
      options.link_control = control;
      options.recovery = recovery;
      options.buffer = 100'000;
      options.rate_control = RateControl::kWindow;
      options.window = 200'000;
      const PacketRun run = PlayPackets(8, kRate, kCable, options, Incast(8, kMegabyte));
      EXPECT_GT(run.stats.dropped + run.stats.trimmed, 0u);
      EXPECT_GE(run.stats.packets, 8u * 250);
      EXPECT_GE(Last(run), 160.0);
    }
  }
}

// Sprayed, every packet finds an idle cable on a tree of full bisection: a permutation takes little
// more than one message alone, and hashed flows collide.
TEST(PacketNetworkTest, SprayedPermutationsDoNotCollideAndHashedOnesDo) {
  std::vector<uint32_t> to(128);
  std::iota(to.begin(), to.end(), 0u);
  std::rotate(to.begin(), to.begin() + 48, to.end());
  std::vector<PacketMessage> messages;
  for (uint32_t i = 0; i < 128; ++i) messages.push_back({i, to[i], 2 * kMegabyte});
  PacketOptions options = Lossless();
  const double hashed = Last(PlayPackets(8, kRate, kCable, options, messages));
  options.recovery = Recovery::kSelective;
  options.path_choice = PathChoice::kAdaptive;
  const double adaptive = Last(PlayPackets(8, kRate, kCable, options, messages));
  options.path_choice = PathChoice::kSpray;
  const double oblivious = Last(PlayPackets(8, kRate, kCable, options, messages));
  const double alone = 40 + 0.4 + 6;
  EXPECT_GT(hashed, 2 * alone);
  EXPECT_LT(adaptive, 1.15 * alone);
  EXPECT_LT(oblivious, 1.5 * alone);
}

// Under DCQCN the senders of an incast cut their rates, and few pauses are needed.
TEST(PacketNetworkTest, DcqcnReplacesPausesByMarks) {
  PacketOptions options = Lossless();
  options.pause_above = 800'000;
  options.resume_below = 780'000;
  const PacketRun without = PlayPackets(8, kRate, kCable, options, Incast(4, 40 * kMegabyte));
  options.rate_control = RateControl::kDcqcn;
  const PacketRun with = PlayPackets(8, kRate, kCable, options, Incast(4, 40 * kMegabyte));
  EXPECT_GT(with.stats.marked, 0u);
  EXPECT_LT(10 * with.stats.pauses, without.stats.pauses);
  // The first cuts are by half, and it takes milliseconds until they are made good.
  EXPECT_LE(Last(with), 1.7 * Last(without));
}

TEST(PacketNetworkTest, EqualRunsAreEqual) {
  for (const PathChoice choice : {PathChoice::kHash, PathChoice::kFlowlet}) {
    PacketOptions options = Lossless();
    options.path_choice = choice;
    options.rate_control = RateControl::kDcqcn;
    std::vector<PacketMessage> messages = Incast(16, kMegabyte);
    for (uint32_t i = 0; i < 64; ++i) messages.push_back({i, i + 64, 2 * kMegabyte});
    const PacketRun first = PlayPackets(8, kRate, kCable, options, messages);
    const PacketRun second = PlayPackets(8, kRate, kCable, options, messages);
    EXPECT_EQ(first.ends, second.ends);
    EXPECT_EQ(first.stats.hops, second.stats.hops);
  }
}

// Three switches in a circle, each flow two cables along it: with buffers of credits that fill,
// all wait for each other.
TEST(PacketNetworkTest, ADeadlockIsNamed) {
  PacketWiring wiring;
  wiring.is_switch = {true, true, true, false, false, false};
  const auto cable = [&](uint32_t from, uint32_t to, const char* name) {
    wiring.ports.push_back({kRate, kCable, from, to, name});
    return static_cast<uint32_t>(wiring.ports.size() - 1);
  };
  std::vector<uint32_t> in;
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < 3; ++i) {
    in.push_back(cable(3 + i, i, "in"));
    out.push_back(cable(i, 3 + i, "out"));
  }
  const uint32_t circle[] = {cable(0, 1, "a->b"), cable(1, 2, "b->c"), cable(2, 0, "c->a")};
  for (uint32_t i = 0; i < 3; ++i) {
    for (const uint32_t hop : {in[i], circle[i], circle[(i + 1) % 3], out[(i + 2) % 3]})
      wiring.hops.push_back(hop);
    wiring.way_begin.push_back(static_cast<uint32_t>(wiring.hops.size()));
  }
  PacketOptions options = Lossless();
  options.link_control = LinkControl::kCredits;
  options.buffer = 8000;
  PacketNetwork network(wiring, options);
  for (uint32_t flow = 0; flow < 3; ++flow) network.Begin(flow, kMegabyte, Time());
  try {
    while (network.Run(Time(1'000'000'000'000))) {
    }
    FAIL() << "no deadlock";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("wait for each other"), std::string::npos) << what;
    for (const char* name : {"a->b", "b->c", "c->a"})
      EXPECT_NE(what.find(name), std::string::npos) << what;
  }
}

TEST(PacketNetworkTest, WhatNoNetworkCanBeIsRefused) {
  const auto message = [](void (*change)(PacketOptions*)) {
    PacketOptions options;
    change(&options);
    try {
      CheckPacketOptions(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([](PacketOptions* o) { o->buffer = 4095; }),
            "network: the buffer of 4095 B does not hold a packet of 4096 B");
  EXPECT_EQ(message([](PacketOptions* o) { o->headroom = 0; }),
            "network: pfc needs headroom, for what is on its way when a port is told to stop; "
            "found none");
  EXPECT_EQ(message([](PacketOptions* o) { o->resume_below = 300'000; }),
            "network: pfc resumes below 300000 B, which is above the 200000 B that pause");
  EXPECT_EQ(message([](PacketOptions* o) { o->path_choice = PathChoice::kSpray; }),
            "network: spray brings packets out of order, which go-back-n does not bear; choose "
            "selective");
  EXPECT_EQ(message([](PacketOptions* o) {
              o->link_control = LinkControl::kCredits;
              o->rate_control = RateControl::kDcqcn;
            }),
            "network: dcqcn is a control of RoCE; with credits, choose none or window");
  EXPECT_EQ(message([](PacketOptions*) {}), "");
}

}  // namespace packet_network_test
}  // namespace rehearse
