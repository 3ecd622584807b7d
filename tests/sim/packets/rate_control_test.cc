// HPCC, Swift, TIMELY and NSCC against what their papers say of one bottleneck. Queues are measured
// from outside: by small messages that wait in them.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/packets/rate_controller.h"
#include "tests/sim/packets/packet_runs.h"
#include "tests/sim/packets/packet_tree.h"

namespace rehearse {
namespace rate_control_test {

constexpr double kRate = 50e9;            // 400 Gb/s
constexpr Time kCable = Time(1'000'000);  // 1 us
constexpr RateControl kControls[] = {RateControl::kHpcc, RateControl::kSwift, RateControl::kTimely,
                                     RateControl::kNscc};
// Six cables both ways, a packet of 80 ns at six ports, and 1.28 ns of the acknowledgement at six.
constexpr double kRoundTrip = 12 + 6 * 0.08 + 6 * 0.00128;  // us

// Pauses begin late, so that the controls do the work.
PacketOptions Of(RateControl control) {
  PacketOptions options;
  options.mtu = 4000;
  options.buffer = 20'000'000;
  options.pause_above = 16'000'000;
  options.resume_below = 15'900'000;
  options.rate_control = control;
  options.recovery = Recovery::kSelective;
  return options;
}

struct Bottleneck {
  double utilisation = 0;  // of the port to the receiver, in the second half
  double queue = 0;        // us, mean of what probes waited then
  double jain = 0;         // of what flows brought by then
  PacketStats stats;
};

// k senders in other pods send to one receiver without end.
Bottleneck Share(uint32_t k, const PacketOptions& options) {
  const int64_t kEnd =
      options.rate_control == RateControl::kTimely ? 60'000'000'000 : 8'000'000'000;
  constexpr int64_t kProbeGap = 20'000'000;
  constexpr uint64_t kLong = 5'000'000'000;
  PacketTree tree(8, kRate, kCable);
  for (uint32_t i = 0; i < k; ++i) tree.AddFlow(127 - 4 * i, 0);
  const uint32_t probe = tree.AddFlow(60, 0);
  PacketNetwork network(tree.wiring(), options);
  for (uint32_t i = 0; i < k; ++i) network.Begin(i, kLong, Time());
  while (network.Run(Time(kEnd / 2))) {
  }
  const auto sent = [&](uint32_t i) { return network.BytesOf(2 * (127 - 4 * i)); };
  std::vector<uint64_t> before(k);
  for (uint32_t i = 0; i < k; ++i) before[i] = sent(i);
  const uint64_t received = network.BytesOf(1);
  Bottleneck result;
  uint32_t probes = 0;
  for (int64_t start = kEnd / 2; start < kEnd; start += kProbeGap) {
    network.Begin(probe, 64, Time(start));
    while (network.Run(Time(start + kProbeGap))) {
      // Six cables, and 64 B at six ports.
      constexpr double kAlone = 6 + 6 * 0.00128;
      result.queue += static_cast<double>(network.now().picoseconds() - start) * 1e-6 - kAlone;
      ++probes;
    }
    if (network.under_way() > k) ADD_FAILURE() << "a probe waits for more than 14 us";
  }
  result.queue /= probes;
  double sum = 0;
  double squares = 0;
  for (uint32_t i = 0; i < k; ++i) {
    const auto own = static_cast<double>(sent(i) - before[i]);
    sum += own;
    squares += own * own;
  }
  const double seconds = static_cast<double>(kEnd) * 0.5e-12;
  result.utilisation = static_cast<double>(network.BytesOf(1) - received) / (kRate * seconds);
  result.jain = sum * sum / (k * squares);
  result.stats = network.stats();
  return result;
}

TEST(RateControlTest, HpccUsesWhatItAimsAtAndKeepsNextToNoQueue) {
  for (const uint32_t k : {1u, 2u, 4u, 8u}) {
    const Bottleneck shared = Share(k, Of(RateControl::kHpcc));
    EXPECT_NEAR(shared.utilisation, 0.95, 0.005) << k;
    EXPECT_LT(shared.queue, 3 * 0.08) << k;  // three packets
    EXPECT_GT(shared.jain, 0.99) << k;
  }
  PacketOptions options = Of(RateControl::kHpcc);
  options.hpcc.utilisation = 0.8;
  EXPECT_NEAR(Share(4, options).utilisation, 0.8, 0.01);
}

// The queue is the target, half a round trip, and what scaling adds for windows below 100 packets:
// of w packets 5 · target · (1/sqrt(w) - 1/sqrt(100)) / (1/sqrt(0.1) - 1/sqrt(100)).
TEST(RateControlTest, SwiftKeepsItsTargetDelay) {
  for (const double target : {0.0, 3.0}) {
    for (const uint32_t k : {2u, 4u, 8u}) {
      PacketOptions options = Of(RateControl::kSwift);
      options.swift.target_delay = Time(static_cast<int64_t>(target * 1e6));
      const Bottleneck shared = Share(k, options);
      const double base = target > 0 ? target : kRoundTrip / 2;
      const double window = (kRoundTrip + shared.queue) / 0.08 / k;
      const double scaled = 5 * base * (1 / std::sqrt(window) - 0.1) / (1 / std::sqrt(0.1) - 0.1);
      const double expected = base + std::max(scaled, 0.0);
      // An overshoot of a packet of each sender, and the steps down after it.
      EXPECT_NEAR(shared.queue, expected, 0.05 * expected + k * 0.08) << k;
      EXPECT_GT(shared.utilisation, 0.999) << k;
      EXPECT_GT(shared.jain, 0.99) << k;
      EXPECT_EQ(shared.stats.pauses, 0u) << k;
    }
  }
}

// 96 senders, and a round trip that holds 26 packets: each may have less than one under way.
TEST(RateControlTest, SwiftSharesAPortThatHasNoPacketForEachSender) {
  constexpr Time kShort = Time(100'000);
  std::vector<PacketMessage> messages;
  for (uint32_t i = 0; i < 96; ++i) messages.push_back({127 - i, 0, 4'000'000});
  PacketOptions options = Of(RateControl::kSwift);
  const PacketRun run = PlayPackets(8, kRate, kShort, options, messages);
  const double last = *std::max_element(run.ends.begin(), run.ends.end());
  EXPECT_NEAR(last, 96 * 80.0, 0.05 * 96 * 80);
  EXPECT_EQ(run.stats.pauses, 0u);
  EXPECT_EQ(run.stats.packets, 96u * 1000);
}

// Between the thresholds: the round trip and 1.31 us (64 KiB), and 13.1 us.
TEST(RateControlTest, TimelyKeepsTheRoundTripBetweenItsThresholds) {
  for (const uint32_t k : {2u, 4u, 8u}) {
    const Bottleneck shared = Share(k, Of(RateControl::kTimely));
    EXPECT_GT(shared.queue, 0.5 * 1.31) << k;
    EXPECT_LT(shared.queue, 13.1) << k;
    EXPECT_GT(shared.utilisation, 0.99) << k;
    EXPECT_GT(shared.jain, 0.99) << k;
  }
}

// The target is a round trip.
TEST(RateControlTest, NsccKeepsItsTargetDelay) {
  for (const uint32_t k : {2u, 4u, 8u}) {
    const Bottleneck shared = Share(k, Of(RateControl::kNscc));
    EXPECT_NEAR(shared.queue, kRoundTrip, 0.05 * kRoundTrip) << k;
    EXPECT_GT(shared.utilisation, 0.999) << k;
    EXPECT_GT(shared.jain, 0.99) << k;
  }
}

// What has nobody beside it is not slowed down, except by HPCC to what it aims at.
TEST(RateControlTest, AMessageAloneIsNotSlowedDown) {
  constexpr uint64_t kBytes = 40'000'000;
  const double without =
      PlayPackets(8, kRate, kCable, Of(RateControl::kNone), {{127, 0, kBytes}}).ends[0];
  for (const RateControl control : kControls) {
    const double with = PlayPackets(8, kRate, kCable, Of(control), {{127, 0, kBytes}}).ends[0];
    const double expected = control == RateControl::kHpcc ? without / 0.95 : without;
    EXPECT_NEAR(with, expected, 0.01 * expected) << Name(control);
    if (control != RateControl::kHpcc) {
      EXPECT_NEAR(with, without, 1e-3 * without) << Name(control);
    }
  }
}

// 1 MB from each of k senders, whatever keeps the queue from overflowing: all arrives, once.
TEST(RateControlTest, AnIncastArrivesUnderEachControl) {
  for (const RateControl control : kControls) {
    for (const LinkControl link : {LinkControl::kPfc, LinkControl::kDrop, LinkControl::kTrim}) {
      for (const Recovery recovery : {Recovery::kGoBackN, Recovery::kSelective}) {
        if (link == LinkControl::kTrim && recovery == Recovery::kGoBackN) continue;
        for (const uint32_t k : {2u, 8u, 32u}) {
          PacketOptions options = Of(control);
          options.link_control = link;
          options.recovery = recovery;
          options.buffer = 400'000;
          options.pause_above = 300'000;
          options.resume_below = 280'000;
          std::vector<PacketMessage> messages;
          for (uint32_t i = 0; i < k; ++i) messages.push_back({127 - i, 0, 1'000'000});
          const PacketRun run = PlayPackets(8, kRate, kCable, options, messages);
          const std::string which = std::string(Name(control)) + " " + Name(link) + " " +
                                    Name(recovery) + " " + std::to_string(k);
          EXPECT_GE(*std::min_element(run.ends.begin(), run.ends.end()), 20.0) << which;
          EXPECT_GE(*std::max_element(run.ends.begin(), run.ends.end()), 20.0 * k) << which;
          // What was sent is what was wanted, and what was asked for again and not yet under way.
          EXPECT_GE(run.stats.packets, 250u * k) << which;
          EXPECT_LE(run.stats.packets, 250u * k + run.stats.repeated) << which;
          if (link == LinkControl::kPfc) {
            EXPECT_EQ(run.stats.packets, 250u * k) << which;
            EXPECT_EQ(run.stats.dropped + run.stats.trimmed, 0u) << which;
          }
        }
      }
    }
  }
}

// Trimmed packets are asked for at once: an incast of 32 that finds a queue of 400 kB loses
// thousands of payloads, and yet ends within a tenth of what its bytes take.
TEST(RateControlTest, NsccRecoversFromTrimmedPackets) {
  PacketOptions options = Of(RateControl::kNscc);
  options.link_control = LinkControl::kTrim;
  options.buffer = 400'000;
  std::vector<PacketMessage> messages;
  for (uint32_t i = 0; i < 32; ++i) messages.push_back({127 - i, 0, 10'000'000});
  const PacketRun run = PlayPackets(8, kRate, kCable, options, messages);
  EXPECT_GT(run.stats.trimmed, 1000u);
  EXPECT_EQ(run.stats.dropped, 0u);
  EXPECT_EQ(run.stats.packets, 32u * 2500 + run.stats.trimmed);
  EXPECT_NEAR(*std::max_element(run.ends.begin(), run.ends.end()), 32 * 200, 0.1 * 32 * 200);
}

// Two rings of four, both with two members on each of two leaves, whose hashed ways collide between
// them: 6 steps of 2 MB, each after the one that came in.
std::vector<PacketMessage> TwoRings() {
  constexpr uint32_t kMembers = 4;
  constexpr uint32_t kSteps = 6;
  std::vector<PacketMessage> messages;
  for (uint32_t ring = 0; ring < 2; ++ring) {
    const uint32_t first = 2 * ring;
    const uint32_t members[kMembers] = {first, 64 + first, first + 1, 65 + first};
    for (uint32_t step = 0; step < kSteps; ++step) {
      for (uint32_t i = 0; i < kMembers; ++i) {
        const auto base = static_cast<uint32_t>(messages.size()) - i;
        const uint32_t after =
            step == 0 ? PacketMessage::kNone : base - kMembers + (i + kMembers - 1) % kMembers;
        messages.push_back({members[i], members[(i + 1) % kMembers], 2'000'000, after});
      }
    }
  }
  return messages;
}

// The table of sim/packets/README.md.
TEST(RateControlTest, WhatEachControlDoesIsShown) {
  std::vector<PacketMessage> incast;
  for (uint32_t i = 0; i < 8; ++i) incast.push_back({127 - 4 * i, 0, 10'000'000});
  const auto show = [](const char* what, const std::vector<PacketMessage>& messages,
                       const PacketOptions& options, double wire) {
    const PacketRun run = PlayPackets(8, kRate, kCable, options, messages);
    const double last = *std::max_element(run.ends.begin(), run.ends.end());
    EXPECT_GE(last, wire);
    EXPECT_EQ(run.stats.dropped, 0u);
    printf("| %s | %s, %s | %.0f | %.0f | %llu | %.0f | %llu | %llu |\n", what,
           Name(options.rate_control), Name(options.link_control), last,
           static_cast<double>(run.stats.most_queued) * 1e-3,
           static_cast<unsigned long long>(run.stats.pauses),
           ToSeconds(run.stats.paused).value() * 1e6,
           static_cast<unsigned long long>(run.stats.marked),
           static_cast<unsigned long long>(run.stats.trimmed));
  };
  for (const bool is_incast : {true, false}) {
    for (const RateControl control :
         {RateControl::kNone, RateControl::kDcqcn, RateControl::kWindow, RateControl::kHpcc,
          RateControl::kSwift, RateControl::kTimely, RateControl::kNscc}) {
      for (const LinkControl link : {LinkControl::kPfc, LinkControl::kTrim}) {
        if (link == LinkControl::kTrim && control != RateControl::kNscc) continue;
        PacketOptions options;
        options.mtu = 4000;
        options.rate_control = control;
        options.link_control = link;
        options.recovery = Recovery::kSelective;
        options.window = 625'000;  // what a port sends in a round trip
        if (is_incast) {
          show("incast of 8", incast, options, 8 * 200);
        } else {
          show("two rings", TwoRings(), options, 6 * 40);
        }
      }
    }
  }
}

TEST(RateControlTest, EqualRunsAreEqual) {
  for (const RateControl control : kControls) {
    PacketOptions options = Of(control);
    options.link_control = LinkControl::kTrim;
    options.buffer = 400'000;
    std::vector<PacketMessage> messages;
    for (uint32_t i = 0; i < 64; ++i) messages.push_back({i, (i * 37 + 5) % 128, 1'000'000});
    const PacketRun first = PlayPackets(8, kRate, kCable, options, messages);
    const PacketRun second = PlayPackets(8, kRate, kCable, options, messages);
    EXPECT_EQ(first.ends, second.ends) << Name(control);
    EXPECT_EQ(first.stats.hops, second.stats.hops) << Name(control);
  }
}

TEST(RateControlTest, AControlThatANetworkCannotHaveIsRefused) {
  const auto message = [](const PacketOptions& options) {
    try {
      CheckPacketOptions(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const RateControl control : kControls) {
    PacketOptions options = Of(control);
    EXPECT_EQ(message(options), "") << Name(control);
    options.link_control = LinkControl::kCredits;
    EXPECT_EQ(message(options),
              std::string("network: ") + Name(control) +
                  " is a control of Ethernet; with credits, choose none or window");
  }
  PacketOptions sprayed = Of(RateControl::kHpcc);
  sprayed.path_choice = PathChoice::kSpray;
  EXPECT_EQ(message(sprayed),
            "network: hpcc compares what one way told before, and spray takes many; choose swift, "
            "timely or nscc");
  PacketOptions low = Of(RateControl::kTimely);
  low.timely.rtt_low = Time(50'000'000);
  low.timely.rtt_high = Time(40'000'000);
  EXPECT_EQ(message(low), "network: timely's rtt_high of 40 us is below its rtt_low of 50 us");
}

}  // namespace rate_control_test
}  // namespace rehearse
