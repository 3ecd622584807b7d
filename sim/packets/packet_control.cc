// Senders that learn from acknowledgements: what packets carry for them, and what comes of it.
//
// A packet that has arrived goes back as its own acknowledgement, with the time when it was sent,
// its mark, and what ports wrote into it. So nothing is kept, or carried, where no control asks.
//
// In flight is what was sent and has not come back. What was dropped never does: once it is asked
// for again by going back, or its sender has waited in vain, all is taken to have left the network.
#include <algorithm>

#include "sim/packets/packet_network.h"
#include "sim/packets/packet_numbers.h"

namespace rehearse {

void PacketNetwork::StartControl() {
  controller_ = MakeRateController(options_, wiring_.flows());
  controlled_.resize(flows_.size());
  wakes_at_.resize(ports_.size(), 0);
  const uint32_t whole = options_.mtu + options_.header;
  int64_t longest = 0;
  uint32_t most_hops = 0;
  for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
    const FlowState& state = flows_[flow];
    SenderPath path{ports_[state.first_port].time_per_byte, state.way_back, whole};
    uint32_t vertex = ports_[state.first_port].from;
    const uint32_t end = wiring_.way_begin[flow + 1];
    for (uint32_t i = wiring_.way_begin[flow]; i < end; ++i) {
      uint32_t index = wiring_.hops[i];
      if (index >= ports_.size()) {
        const auto bundle = index - static_cast<uint32_t>(ports_.size());
        index = candidates_[choices_[bundle_base_[bundle] + vertex - bundle_vertex_[bundle]].begin];
      }
      const Port& port = ports_[index];
      vertex = port.to;
      const bool cuts = (options_.cut_through || state.hides_delays) && i + 1 < end;
      path.base_rtt += Duration(port.time_per_byte, cuts ? std::min(whole, kControlBytes) : whole) +
                       Duration(port.passed_time_per_byte, cuts ? kControlBytes : whole);
      if (!state.hides_delays) path.base_rtt += port.delay;
    }
    longest = std::max(longest, path.base_rtt);
    most_hops = std::max(most_hops, end - wiring_.way_begin[flow]);
    controlled_[flow] = {controller_->Begin(flow, path), path, 0, false};
  }
  if (options_.rate_control == RateControl::kHpcc) most_hops_ = most_hops;
  if (options_.rate_control != RateControl::kNscc) return;
  marks_ = true;
  most_marked_ = 1;
  for (Port& port : ports_) {
    const double product = std::min(static_cast<double>(longest) / port.time_per_byte,
                                    static_cast<double>(options_.buffer));
    port.mark_from = static_cast<uint64_t>(options_.nscc.mark_from * product);
    port.mark_all = static_cast<uint64_t>(options_.nscc.mark_all * product);
  }
}

bool PacketNetwork::FitsWindow(uint32_t flow, uint32_t size) const {
  const Controlled& state = controlled_[flow];
  return state.in_flight == 0 || static_cast<double>(state.in_flight + size) <= state.limits.window;
}

// The packet leaves its sender by this port.
void PacketNetwork::Control(uint32_t packet, uint32_t index) {
  if (sent_at_.size() < packets_.size()) {
    sent_at_.resize(packets_.capacity());
    telemetry_.resize(packets_.capacity() * most_hops_);
  }
  sent_at_[packet] = now_;
  const Packet& what = packets_[packet];
  Controlled& state = controlled_[what.flow];
  state.in_flight += what.size;
  if (state.limits.time_per_byte > ports_[index].time_per_byte)
    flows_[what.flow].next_time = now_ + Duration(state.limits.time_per_byte, what.size);
}

void PacketNetwork::WriteTelemetry(uint32_t packet, uint32_t index) {
  const Port& port = ports_[index];
  telemetry_[size_t{packet} * most_hops_ + packets_[packet].hop] = {now_, port.sent, port.queued,
                                                                    index, port.time_per_byte};
}

// The packet has arrived and goes back.
void PacketNetwork::Echo(uint32_t packet) {
  events_.Add(now_ + flows_[packets_[packet].flow].way_back, kEchoed, packet);
}

void PacketNetwork::Learn(uint32_t packet) {
  const Packet& what = packets_[packet];
  const uint32_t flow = what.flow;
  Controlled& state = controlled_[flow];
  // Trimmed, it has lost its size on the way.
  const uint32_t size = !what.trimmed
                            ? what.size
                            : std::min<uint32_t>(options_.mtu + options_.header, state.in_flight);
  state.in_flight -= std::min<uint64_t>(size, state.in_flight);
  Acknowledgement back{now_,        sent_at_[packet], size, state.in_flight,
                       what.marked, what.trimmed,     {}};
  if (most_hops_ > 0 && !what.trimmed) {
    // The sender's own port writes nothing.
    back.hops = std::span(telemetry_).subspan(size_t{packet} * most_hops_ + 1, what.hop);
  }
  const SendingLimits limits = controller_->Acknowledged(flow, back);
  FlowState& sender = flows_[flow];
  // What waits for its time waits for that of the new rate.
  if (sender.next_time > now_ && state.limits.time_per_byte > 0)
    sender.next_time =
        now_ + static_cast<int64_t>(static_cast<double>(sender.next_time - now_) *
                                    limits.time_per_byte / state.limits.time_per_byte);
  state.limits = limits;
  Lose(packet);
  if (sender.listed) Look(sender.first_port);
}

void PacketNetwork::LearnOfTimeout(uint32_t flow) {
  controlled_[flow].limits = controller_->TimedOut(flow, now_);
  controlled_[flow].in_flight = 0;
}

void PacketNetwork::WakeAt(uint32_t port, int64_t time) {
  if (wakes_at_[port] > now_ && wakes_at_[port] <= time) return;
  wakes_at_[port] = time;
  events_.Add(time, kPaced, port);
}

}  // namespace rehearse
