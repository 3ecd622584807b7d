#include "sim/packets/packet_chains.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/packets/packet_runs.h"

namespace rehearse {
namespace packet_chains_test {

constexpr double kRate = 50e9;
constexpr Time kCable = Time(1'000'000);
constexpr uint32_t kHosts = 6;

// Hosts on one switch, vertex 0. In each a device, a switch of PCIe and a NIC, with `inside` as
// their rate; ports there and back.
class Star {
 public:
  explicit Star(double inside) {
    wiring_.is_switch.assign(1 + 3 * kHosts, false);
    wiring_.is_switch[0] = true;
    for (uint32_t host = 0; host < kHosts; ++host) {
      const uint32_t device = 1 + 3 * host;
      for (const auto& [from, to] : {std::pair(device, device + 1), {device + 1, device + 2}}) {
        wiring_.ports.push_back({inside, Time(), from, to});
        wiring_.ports.push_back({inside, Time(), to, from});
      }
      wiring_.ports.push_back({kRate, kCable, device + 2, 0});
      wiring_.ports.push_back({kRate, kCable, 0, device + 2});
    }
  }
  void AddFlow(uint32_t from, uint32_t to) {
    for (const uint32_t port : {0u, 2u, 4u}) wiring_.hops.push_back(6 * from + port);
    for (const uint32_t port : {5u, 3u, 1u}) wiring_.hops.push_back(6 * to + port);
    wiring_.way_begin.push_back(static_cast<uint32_t>(wiring_.hops.size()));
  }
  const PacketWiring& wiring() const { return wiring_; }

 private:
  PacketWiring wiring_;
};

TEST(PacketChainsTest, WhatCannotHoldAnybodyUpIsTakenOut) {
  Star fast(60e9);
  Star slow(40e9);
  for (uint32_t host = 0; host < kHosts; ++host) {
    fast.AddFlow(host, (host + 1) % kHosts);
    slow.AddFlow(host, (host + 1) % kHosts);
  }
  // The cable's ports are left of each host, both ways.
  const PacketWiring of_fast = WithoutChains(fast.wiring());
  EXPECT_EQ(of_fast.ports.size(), 2 * kHosts);
  EXPECT_EQ(of_fast.hops.size(), 2 * kHosts);
  // A slower port of the machine stays beside each, one for two that are equal.
  const PacketWiring of_slow = WithoutChains(slow.wiring());
  EXPECT_EQ(of_slow.ports.size(), 4 * kHosts);
  // A device with two NICs: its ways part behind the switch of PCIe, and so that port stays.
  PacketWiring parts = fast.wiring();
  const auto second = static_cast<uint32_t>(parts.ports.size());
  const auto nic = static_cast<uint32_t>(parts.is_switch.size());
  parts.is_switch.push_back(false);
  parts.ports.push_back({60e9, Time(), 2, nic});
  parts.ports.push_back({kRate, kCable, nic, 0});
  parts.hops.insert(parts.hops.end(), {0, second, second + 1, 6 * 3 + 5, 6 * 3 + 3, 6 * 3 + 1});
  parts.way_begin.push_back(static_cast<uint32_t>(parts.hops.size()));
  EXPECT_EQ(WithoutChains(parts).ports.size(), 2 * kHosts + 2);
}

TEST(PacketChainsTest, MessagesTakeAsLongAsWithThem) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    Star star(seed % 4 == 0 ? 40e9 : seed % 4 == 1 ? kRate : 63e9);
    std::vector<PacketMessage> messages;
    const uint64_t flows = 1 + random() % 8;
    for (uint64_t i = 0; i < flows; ++i) {
      const auto from = static_cast<uint32_t>(random() % kHosts);
      const auto to = (from + 1 + static_cast<uint32_t>(random() % (kHosts - 1))) % kHosts;
      star.AddFlow(from, to);
      const uint32_t after =
          i > 0 && random() % 3 == 0 ? static_cast<uint32_t>(random() % i) : PacketMessage::kNone;
      messages.push_back({from, to, 1 + random() % 2'000'000, after});
    }
    PacketOptions options;
    options.link_control = LinkControl::kCredits;  // so that only hosts pause
    options.cut_through = seed % 5 == 0;
    // A NIC with its port of PCIe fetches as much ahead, which stands before what begins later.
    options.pause_above = 12'000;
    options.resume_below = 8'000;
    const PacketRun with = PlayPackets(star.wiring(), options, messages);
    const PacketRun without = PlayPackets(WithoutChains(star.wiring()), options, messages);
    EXPECT_LT(without.stats.hops, with.stats.hops);
    // Senders of a device take turns by packet either way; which comes first may differ, and so
    // which of two that end together is the last.
    for (size_t i = 0; i < messages.size(); ++i)
      EXPECT_NEAR(without.ends[i], with.ends[i], 0.02 * with.ends[i] + 0.5) << seed << " " << i;
  }
}

}  // namespace packet_chains_test
}  // namespace rehearse
