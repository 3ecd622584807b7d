// Receivers: what has arrived, what is missing, and what goes back.
#include <algorithm>

#include "sim/packets/packet_network.h"

namespace rehearse {

void PacketNetwork::Deliver(uint32_t packet) {
  const Packet what = packets_[packet];
  if (controller_ != nullptr) [[unlikely]]
    Echo(packet);
  else
    Lose(packet);
  FlowState& flow = flows_[what.flow];
  if (!flow.active || flow.message != what.message) return;  // repeated in vain
  if (what.marked && controller_ == nullptr &&
      now_ - flow.last_notice >= options_.dcqcn.notification_gap.picoseconds()) {
    flow.last_notice = now_;
    events_.Add(now_ + flow.way_back, kNotified, what.flow);
  }
  if (what.trimmed) {
    events_.Add(now_ + flow.way_back, OfMessage(kAskedAgain, what.flow), what.flow, what.number);
    return;
  }
  if (what.number < flow.highest_seen) {
    ++stats_.reordered;
    ++flow.reordered;
  }
  flow.highest_seen = std::max(flow.highest_seen, what.number + 1);
  if (options_.recovery == Recovery::kGoBackN) {
    if (what.number > flow.expected) {
      if (!flow.asked || options_.ask_each_time)
        events_.Add(now_ + flow.way_back, OfMessage(kAskedAgain, what.flow), what.flow,
                    flow.expected);
      flow.asked = true;
      return;
    }
    if (what.number == flow.expected) {
      ++flow.expected;
      flow.asked = false;
    }
  } else {
    if (may_lose_) {
      uint64_t& word = flow.received[what.number / 64];
      const uint64_t bit = uint64_t{1} << (what.number % 64);
      if ((word & bit) != 0) return;
      word |= bit;
    }
    ++flow.expected;
  }
  if (acknowledges_)
    events_.Add(now_ + flow.way_back, OfMessage(kAcknowledged, what.flow), what.flow,
                flow.expected);
  if (flow.expected == flow.packets) Complete(what.flow);
}

void PacketNetwork::Complete(uint32_t flow) {
  FlowState& state = flows_[flow];
  if (state.listed) Unlist(flow);
  state.active = false;
  if (steady_ != nullptr) EndSteady(flow);
  --under_way_;
  arrived_.push_back(flow);
}

}  // namespace rehearse
