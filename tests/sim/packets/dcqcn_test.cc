// DCQCN and what it is for: its fixed point, and the two harms of pauses that its paper measured
// (Zhu et al., SIGCOMM 2015, section 2.2 and figures 3, 4, 8 and 9). The papers were not at hand;
// figures of the paper's runs are from memory, those asserted follow from who shares what.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/packets/packet_network.h"

namespace rehearse {
namespace dcqcn_test {

constexpr double kRate = 5e9;             // 40 Gb/s
constexpr Time kCable = Time(1'000'000);  // 1 us
constexpr uint64_t kLong = 4'000'000'000;
constexpr double kPacket = 1000;  // bytes

// Vertices 0 .. switches - 1 are switches, the others hosts; every cable has a port each way.
class Wiring {
 public:
  Wiring(uint32_t switches, uint32_t hosts) : switches_(switches) {
    wiring_.is_switch.assign(switches + hosts, false);
    std::fill_n(wiring_.is_switch.begin(), switches, true);
  }
  uint32_t Host(uint32_t i) const { return switches_ + i; }
  // The vertices that it passes.
  void AddFlow(const std::vector<uint32_t>& way) {
    for (size_t i = 1; i < way.size(); ++i) wiring_.hops.push_back(Port(way[i - 1], way[i]));
    wiring_.way_begin.push_back(static_cast<uint32_t>(wiring_.hops.size()));
  }
  uint32_t Port(uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < wiring_.ports.size(); ++i)
      if (wiring_.ports[i].from == from && wiring_.ports[i].to == to) return i;
    wiring_.ports.push_back({kRate, kCable, from, to});
    return static_cast<uint32_t>(wiring_.ports.size() - 1);
  }
  const PacketWiring& wiring() const { return wiring_; }

 private:
  const uint32_t switches_;
  PacketWiring wiring_;
};

PacketOptions Of(RateControl control) {
  PacketOptions options;
  options.mtu = static_cast<uint32_t>(kPacket);
  options.rate_control = control;
  return options;
}

// Gb/s of each flow in the second half, when all send without end.
std::vector<double> Rates(const Wiring& wiring, const PacketOptions& options, int64_t end) {
  const PacketWiring& wires = wiring.wiring();
  PacketNetwork network(wires, options);
  std::vector<uint64_t> before(wires.flows());
  const auto sent = [&](uint32_t flow) {
    return network.BytesOf(wires.hops[wires.way_begin[flow]]);
  };
  for (uint32_t flow = 0; flow < wires.flows(); ++flow) network.Begin(flow, kLong, Time());
  network.Run(Time(end / 2));
  for (uint32_t flow = 0; flow < wires.flows(); ++flow) before[flow] = sent(flow);
  network.Run(Time(end));
  std::vector<double> rates;
  for (uint32_t flow = 0; flow < wires.flows(); ++flow)
    rates.push_back(8e3 * static_cast<double>(sent(flow) - before[flow]) /
                    static_cast<double>(end / 2));
  return rates;
}

// The share of packets that is marked where cuts and rises of N flows are in balance: the fluid
// model of the paper, section 5.1, with all derivatives zero. Rates in packets a second.
double MarkedAtRest(double flows, const DcqcnFigures& figures) {
  const auto seconds = [](Time time) { return static_cast<double>(time.picoseconds()) * 1e-12; };
  const double rate = kRate / kPacket / flows;
  const double gap = seconds(figures.notification_gap);
  const double timer = seconds(figures.timer);
  const double bytes = static_cast<double>(figures.byte_counter) / kPacket;
  const double additive = figures.additive_increase / kPacket;
  // Above zero where rates rise.
  const auto change = [&](double marked) {
    const double kept = 1 - marked;
    const double alpha = 1 - std::pow(kept, timer * rate);
    const double cuts = (1 - std::pow(kept, gap * rate)) / gap;
    const double byte_steps = rate * marked / (std::pow(kept, -bytes) - 1);
    const double timer_steps = rate * marked / (std::pow(kept, -timer * rate) - 1);
    const double target = additive *
                          (std::pow(kept, figures.fast_steps * bytes) * byte_steps +
                           std::pow(kept, figures.fast_steps * timer * rate) * timer_steps) /
                          cuts;
    return target / 2 * (byte_steps + timer_steps) - rate * alpha / 2 * cuts;
  };
  double low = 1e-8;
  double high = 0.5;
  for (int i = 0; i < 100; ++i) {
    const double middle = std::sqrt(low * high);
    (change(middle) > 0 ? low : high) = middle;
  }
  return low;
}

// The closed form that follows where few are marked (Zhu et al., ECN or Delay, CoNEXT 2016).
double FewMarkedAtRest(double flows, const DcqcnFigures& figures) {
  const auto seconds = [](Time time) { return static_cast<double>(time.picoseconds()) * 1e-12; };
  const double capacity = kRate / kPacket;
  const double steps = kPacket / static_cast<double>(figures.byte_counter) +
                       flows / (seconds(figures.timer) * capacity);
  return std::cbrt(figures.additive_increase / kPacket * flows * flows /
                   (seconds(figures.notification_gap) * capacity * capacity) * steps * steps);
}

// Rates swing about the fixed point, and so more is marked than where nothing moved.
TEST(DcqcnTest, FlowsMarkAsOftenAsTheFixedPointSays) {
  for (const uint32_t count : {2u, 4u, 8u}) {
    Wiring wiring(1, count + 1);
    for (uint32_t i = 1; i <= count; ++i) wiring.AddFlow({wiring.Host(i), 0, wiring.Host(0)});
    PacketOptions options = Of(RateControl::kDcqcn);
    options.buffer = 4'000'000;
    options.pause_above = 2'000'000;
    options.resume_below = 1'900'000;
    PacketNetwork network(wiring.wiring(), options);
    for (uint32_t flow = 0; flow < count; ++flow) network.Begin(flow, kLong, Time());
    constexpr int64_t kEnd = 600'000'000'000;
    network.Run(Time(kEnd / 3));
    const uint64_t marked = network.stats().marked;
    const uint32_t port = wiring.Port(0, wiring.Host(0));
    const uint64_t sent = network.BytesOf(port);
    network.Run(Time(kEnd));
    const double packets = static_cast<double>(network.BytesOf(port) - sent) / kPacket;
    const double share = static_cast<double>(network.stats().marked - marked) / packets;
    const double expected = MarkedAtRest(count, options.dcqcn);
    EXPECT_GT(share, expected) << count;
    EXPECT_LT(share, 1.5 * expected) << count;
    const double closed = FewMarkedAtRest(count, options.dcqcn);
    EXPECT_NEAR(share, closed, 0.15 * closed) << count;
    RecordProperty("marked_by_" + std::to_string(count),
                   std::to_string(share) + " of " + std::to_string(expected));
    EXPECT_GT(packets * kPacket, 0.95 * kRate * (kEnd * 1e-12) * 2 / 3) << count;
  }
}

// Three senders reach the receiver's switch by one cable, the fourth by its own. Pauses are for
// cables: each gets half, so the fourth sends as much as the three together (figure 3: up to 20 of
// 40 Gb/s). With DCQCN all four get about a quarter (figure 8).
TEST(DcqcnTest, PausesAreUnfairToWhoSharesACableAndDcqcnIsNot) {
  Wiring wiring(2, 5);
  for (uint32_t i = 1; i <= 3; ++i) wiring.AddFlow({wiring.Host(i), 0, 1, wiring.Host(0)});
  wiring.AddFlow({wiring.Host(4), 1, wiring.Host(0)});
  const std::vector<double> paused = Rates(wiring, Of(RateControl::kNone), 40'000'000'000);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_NEAR(paused[i], 40.0 / 6, 0.4);
  EXPECT_NEAR(paused[3], 20, 1);
  PacketOptions options = Of(RateControl::kDcqcn);
  const std::vector<double> controlled = Rates(wiring, options, 600'000'000'000);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_NEAR(controlled[i], 10, 2) << i;
}

// Four senders of one rack send to a receiver in another. Two of them share a cable out of their
// rack with a flow that goes to a third rack, where nobody else sends to. As the four get 10 Gb/s
// each, 20 are left for it; but the cable is paused, and it gets what its neighbours do: 10 (figure
// 4, median). With DCQCN it gets its 20 (figure 9).
TEST(DcqcnTest, AVictimGetsWhatIsLeftOnlyWithDcqcn) {
  // 0: the rack of senders, 1 and 2: above it, 3: the receiver's rack, 4: the victim's.
  Wiring wiring(5, 7);
  const uint32_t receiver = wiring.Host(5);
  for (uint32_t i = 0; i < 4; ++i)
    wiring.AddFlow({wiring.Host(i), 0, i < 2 ? 1u : 2u, 3, receiver});
  wiring.AddFlow({wiring.Host(4), 0, 1, 4, wiring.Host(6)});
  const std::vector<double> paused = Rates(wiring, Of(RateControl::kNone), 40'000'000'000);
  EXPECT_NEAR(paused[4], 10, 1);
  const std::vector<double> controlled = Rates(wiring, Of(RateControl::kDcqcn), 600'000'000'000);
  EXPECT_GT(controlled[4], 17);
  EXPECT_LT(controlled[4], 24);
}

}  // namespace dcqcn_test
}  // namespace rehearse
