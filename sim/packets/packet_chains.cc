#include "sim/packets/packet_chains.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rehearse {
namespace {

constexpr uint32_t kNone = PacketPort::kNone;
constexpr uint32_t kSeveral = kNone - 1;

// Which port all flows of a port go to next, or come from: one, kNone, or kSeveral.
void Note(uint32_t other, uint32_t* known) {
  if (*known == kNone || *known == other) {
    *known = other;
  } else {
    *known = kSeveral;
  }
}

}  // namespace

PacketWiring WithoutChains(PacketWiring wiring) {
  const auto count = static_cast<uint32_t>(wiring.ports.size());
  std::vector<bool> keeps(count, false);
  for (const PacketPort& port : wiring.ports) {
    if (port.cable_of != kNone) return wiring;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const PacketPort& port = wiring.ports[i];
    // Cables of a torus lead from device to device.
    keeps[i] = port.delay > Time() || wiring.is_switch[port.from] || wiring.is_switch[port.to];
  }
  for (const std::vector<uint32_t>& bundle : wiring.bundles)
    for (const uint32_t port : bundle) keeps[port] = true;

  // Bundles stand for several; so do the ends of ways, which are like none of the ports.
  std::vector<uint32_t> next(count, kNone);
  std::vector<uint32_t> before(count, kNone);
  for (uint32_t flow = 0; flow < wiring.flows(); ++flow) {
    for (uint32_t i = wiring.way_begin[flow]; i < wiring.way_begin[flow + 1]; ++i) {
      const uint32_t port = wiring.hops[i];
      if (port >= count) continue;
      const bool is_first = i == wiring.way_begin[flow];
      const bool is_last = i + 1 == wiring.way_begin[flow + 1];
      Note(is_first || wiring.hops[i - 1] >= count ? kSeveral : wiring.hops[i - 1], &before[port]);
      Note(is_last || wiring.hops[i + 1] >= count ? kSeveral : wiring.hops[i + 1], &next[port]);
    }
  }
  // Who takes a port's place: the one behind it, or the one before it.
  std::vector<uint32_t> instead(count, kNone);
  const auto take = [&](uint32_t port, uint32_t by) {
    PacketPort& stays = wiring.ports[by];
    const PacketPort& goes = wiring.ports[port];
    stays.passed_seconds_per_byte += goes.passed_seconds_per_byte + 1 / goes.bytes_per_second;
    instead[port] = by;
  };
  const auto is_faster = [&](uint32_t port, uint32_t than) {
    return wiring.ports[port].bytes_per_second >= wiring.ports[than].bytes_per_second;
  };
  const auto is_port = [](uint32_t port) { return port < kSeveral; };
  // From the first port of a way towards its first cable, then from the last back to the last one.
  // A port that was taken out stands for the one that took its place.
  bool changes = true;
  while (changes) {
    changes = false;
    for (uint32_t port = 0; port < count; ++port) {
      if (keeps[port] || instead[port] != kNone) continue;
      const uint32_t behind = next[port];
      const uint32_t ahead = before[port];
      if (is_port(behind) && before[behind] == port && is_faster(port, behind)) {
        take(port, behind);
        wiring.ports[behind].from = wiring.ports[port].from;
        before[behind] = ahead;
        if (is_port(ahead) && next[ahead] == port) next[ahead] = behind;
        changes = true;
      } else if (is_port(ahead) && next[ahead] == port && is_faster(port, ahead)) {
        take(port, ahead);
        wiring.ports[ahead].to = wiring.ports[port].to;
        next[ahead] = behind;
        if (is_port(behind) && before[behind] == port) before[behind] = ahead;
        changes = true;
      }
    }
  }

  std::vector<uint32_t> place(count, kNone);
  std::vector<PacketPort> ports;
  for (uint32_t i = 0; i < count; ++i) {
    if (instead[i] != kNone) continue;
    place[i] = static_cast<uint32_t>(ports.size());
    ports.push_back(std::move(wiring.ports[i]));
  }
  std::vector<uint32_t> way_begin = {0};
  std::vector<uint32_t> hops;
  for (uint32_t flow = 0; flow < wiring.flows(); ++flow) {
    for (uint32_t i = wiring.way_begin[flow]; i < wiring.way_begin[flow + 1]; ++i) {
      const uint32_t hop = wiring.hops[i];
      if (hop >= count) {
        hops.push_back(hop - count + static_cast<uint32_t>(ports.size()));
      } else if (place[hop] != kNone) {
        hops.push_back(place[hop]);
      }
    }
    way_begin.push_back(static_cast<uint32_t>(hops.size()));
  }
  for (std::vector<uint32_t>& bundle : wiring.bundles)
    for (uint32_t& port : bundle) port = place[port];
  wiring.ports = std::move(ports);
  wiring.way_begin = std::move(way_begin);
  wiring.hops = std::move(hops);
  return wiring;
}

}  // namespace rehearse
