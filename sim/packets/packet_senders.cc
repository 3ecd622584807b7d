// Senders: whose turn it is at a port, and what may go now.
#include <algorithm>

#include "sim/packets/packet_network.h"
#include "sim/packets/packet_numbers.h"
#include "sim/packets/packet_steady.h"
#include "sim/packets/packet_watch.h"

namespace rehearse {

void PacketNetwork::AskAgain(uint32_t flow, uint32_t packet) {
  FlowState& state = flows_[flow];
  if (!state.active) return;
  ++ports_[state.first_port].chances;
  if (controller_ != nullptr) {
    controlled_[flow].has_repeated = true;
    if (options_.recovery == Recovery::kGoBackN) controlled_[flow].in_flight = 0;
  }
  if (options_.recovery == Recovery::kGoBackN) {
    if (packet >= state.next_packet) return;
    stats_.repeated += state.next_packet - packet;
    state.next_packet = packet;
    state.acknowledged = std::max(state.acknowledged, packet);
  } else {
    state.asked_for.push_back(packet);
    ++stats_.repeated;
  }
  if (!state.listed) List(flow);
  Look(state.first_port);
}

void PacketNetwork::List(uint32_t flow) {
  FlowState& state = flows_[flow];
  Port& port = ports_[state.first_port];
  state.listed = true;
  if (port.first_flow == kNone) {
    port.first_flow = state.next = state.previous = flow;
    return;
  }
  FlowState& first = flows_[port.first_flow];
  state.next = port.first_flow;
  state.previous = first.previous;
  flows_[first.previous].next = flow;
  first.previous = flow;
}

void PacketNetwork::Unlist(uint32_t flow) {
  FlowState& state = flows_[flow];
  Port& port = ports_[state.first_port];
  state.listed = false;
  if (state.next == flow) {
    port.first_flow = kNone;
    return;
  }
  flows_[state.next].previous = state.previous;
  flows_[state.previous].next = state.next;
  if (port.first_flow == flow) port.first_flow = state.next;
}

bool PacketNetwork::SendFlow(uint32_t index) {
  Port& port = ports_[index];
  const uint32_t first = port.first_flow;
  uint32_t flow = first;
  int64_t earliest = 0;
  bool is_paced = false;
  do {
    FlowState& state = flows_[flow];
    const uint32_t following = state.next;
    const bool again = !state.asked_for.empty();
    const uint32_t in_flight = state.next_packet - std::min(state.acknowledged, state.next_packet);
    const bool fits = controller_ != nullptr
                          ? FitsWindow(flow, options_.mtu + options_.header)
                          : options_.rate_control != RateControl::kWindow || again ||
                                (uint64_t{in_flight} + 1) * options_.mtu <= options_.window;
    if (fits && state.next_time <= now_) {
      const uint32_t number = again ? state.asked_for.back() : state.next_packet++;
      if (again) state.asked_for.pop_back();
      const uint32_t payload = number + 1 == state.packets ? state.last_size : options_.mtu;
      const uint32_t packet = NewPacket();
      Packet& what = packets_[packet];
      what.flow = flow;
      what.number = number;
      what.message = state.message;
      what.size = payload + options_.header;
      what.spread = number + state.offset;
      state.highest_sent = std::max(state.highest_sent, number + 1);
      port.first_flow = following;
      if (--state.until_look == 0 && steady_ != nullptr) [[unlikely]] {
        steady_->pending.push_back(flow);
        asks_for_look_ = true;
      }
      if (!MayStillSend(state)) Unlist(flow);
      if (options_.rate_control == RateControl::kDcqcn && state.rate < 1) {
        const int64_t spacing = Duration(port.time_per_byte / state.rate, what.size);
        state.next_time = now_ + spacing;
        state.bytes_since += what.size;
        if (state.bytes_since >= options_.dcqcn.byte_counter) {
          state.bytes_since = 0;
          ++state.byte_steps;
          RaiseRate(flow);
        }
      }
      if (controller_ != nullptr) [[unlikely]]
        Control(packet, index);
      ++stats_.packets;
      if (watch_ != nullptr) [[unlikely]]
        watch_->Injected(index, flow, now_);
      Send(index, packet);
      return true;
    }
    if (fits && (!is_paced || state.next_time < earliest)) {
      earliest = state.next_time;
      is_paced = true;
    }
    flow = following;
  } while (flow != first);
  if (is_paced && controller_ != nullptr) {
    WakeAt(index, earliest);
  } else if (is_paced) {
    WaitUntil(index, earliest);
  }
  return false;
}

}  // namespace rehearse
