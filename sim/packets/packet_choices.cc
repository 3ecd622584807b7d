// Which of several equal ports a packet takes.
#include <cstdint>

#include "sim/packets/packet_network.h"
#include "sim/packets/packet_numbers.h"

namespace rehearse {

uint32_t PacketNetwork::Choose(Packet& packet, uint32_t hop, uint32_t vertex) {
  const uint32_t place = wiring_.way_begin[packet.flow] + hop;
  const uint32_t id = wiring_.hops[place];
  if (id < ports_.size()) return id;
  const uint32_t bundle = id - static_cast<uint32_t>(ports_.size());
  const Choices choices = choices_[bundle_base_[bundle] + vertex - bundle_vertex_[bundle]];
  if (choices.count == 1) return candidates_[choices.begin];
  switch (options_.path_choice) {
    case PathChoice::kHash: {
      const uint64_t hash = Scatter(uint64_t{flows_[packet.flow].hash} << 32 | vertex);
      return candidates_[choices.begin + hash % choices.count];
    }
    case PathChoice::kFlowlet:
      return ChooseFlowlet(packet, hop, vertex, choices);
    case PathChoice::kSpray:
    case PathChoice::kAdaptive: {
      const uint32_t start = packet.spread % choices.count;
      packet.spread /= choices.count;
      if (options_.path_choice == PathChoice::kSpray) return candidates_[choices.begin + start];
      return LeastQueued(choices, start);
    }
  }
  return candidates_[choices.begin];
}

uint32_t PacketNetwork::LeastQueued(Choices choices, uint32_t start) const {
  uint32_t best = kNone;
  uint64_t least = 0;
  for (uint32_t i = 0; i < choices.count; ++i) {
    const uint32_t place = start + i < choices.count ? start + i : start + i - choices.count;
    const uint32_t port = candidates_[choices.begin + place];
    const Port& what = ports_[port];
    // One that was told to stop comes after all others.
    const uint64_t load =
        (uint64_t{what.stopped} << 40) + what.queued + (ports_[what.cable].free_at > now_);
    if (best == kNone || load < least) {
      best = port;
      least = load;
    }
  }
  return best;
}

uint32_t PacketNetwork::ClassOf(uint32_t port) const {
  const uint64_t queued = ports_[port].queued;
  const uint64_t buffer = options_.buffer;
  if (20 * queued < buffer) return 0;
  if (10 * queued < buffer) return 1;
  return 5 * queued < buffer ? 2 : 3;
}

uint32_t PacketNetwork::ChooseFlowlet(const Packet& packet, uint32_t hop, uint32_t vertex,
                                      Choices choices) {
  Flowlet& flowlet = flowlets_[wiring_.way_begin[packet.flow] + hop];
  const bool is_new = flowlet.vertex != vertex;
  const bool looks =
      is_new || (now_ - flowlet.last > options_.flowlet_gap.picoseconds() && (Random() & 1) == 0);
  if (looks) {
    uint32_t least = kNone;
    uint32_t count = 0;
    for (uint32_t i = 0; i < choices.count; ++i) {
      const uint32_t own = ClassOf(candidates_[choices.begin + i]);
      if (own < least) {
        least = own;
        count = 0;
      }
      count += own == least;
    }
    if (is_new || least < ClassOf(flowlet.port)) {
      uint64_t which = Random() % count;
      for (uint32_t i = 0; i < choices.count; ++i) {
        const uint32_t port = candidates_[choices.begin + i];
        if (ClassOf(port) == least && which-- == 0) {
          flowlet.port = port;
          break;
        }
      }
    }
  }
  flowlet.vertex = vertex;
  flowlet.last = now_;
  return flowlet.port;
}

}  // namespace rehearse
