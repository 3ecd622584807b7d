// Ports, their queues and buffers: what leaves when, what waits, what is paused, marked or lost.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/packets/packet_network.h"
#include "sim/packets/packet_numbers.h"
#include "sim/packets/packet_watch.h"

namespace rehearse {

void PacketNetwork::WaitUntil(uint32_t index, int64_t time) {
  ports_[index].waits = true;
  ports_[index].waits_until = time;
  ++ports_[ports_[index].cable].waiting;
  events_.Add(time, kPortFree, index);
}

// Whether the port waits for now, and will send.
bool PacketNetwork::GoesAhead(const Port& port) const {
  return port.waits && port.waits_until <= now_ && !port.stopped && !port.no_credits;
}

// The port waits no more. Of lanes that wait for one cable, the one that has just sent lets the
// others go first, once; or each those that have priority, as long as they have something to send.
bool PacketNetwork::LetsOthersSend(uint32_t index) {
  ports_[index].waits = false;
  Port& cable = ports_[ports_[index].cable];
  if (--cable.waiting == 0) return false;
  if (options_.lanes_are_strict) {
    const Port& own = ports_[index];
    for (uint32_t lane = own.next_lane; lane != index; lane = ports_[lane].next_lane) {
      if (ports_[lane].priority >= own.priority || !GoesAhead(ports_[lane])) continue;
      WaitUntil(index, now_);
      return true;
    }
    return false;
  }
  if (cable.sent_last != index) return false;
  cable.sent_last = kNone;
  WaitUntil(index, now_);
  return true;
}

// Sends the next packet if there is one and it may go now.
void PacketNetwork::Look(uint32_t index) {
  Port& port = ports_[index];
  if (port.waits) return;
  const bool has_queue = port.data.head != kNone || port.headers.head != kNone;
  if (!has_queue && port.first_flow == kNone) return;
  if (now_ < ports_[port.cable].free_at) {
    WaitUntil(index, ports_[port.cable].free_at);
    return;
  }
  if (port.stopped) return;
  if (options_.link_control == LinkControl::kCredits && port.into_switch) {
    const uint32_t wanted =
        port.data.head != kNone ? packets_[port.data.head].size : options_.mtu + options_.header;
    if (port.credits < wanted) {
      if (watch_ != nullptr) {
        watch_->Blame(index, now_);
        watch_->Stops(index, now_);
      }
      port.no_credits = true;
      return;
    }
  }
  if (has_queue) {
    Queue& queue = port.headers.head != kNone ? port.headers : port.data;
    const uint32_t packet = queue.head;
    queue.head = packets_[packet].next;
    if (queue.head == kNone) queue.tail = kNone;
    port.queued -= packets_[packet].size;
    if (inspects_) {
      if (marks_ && wiring_.is_switch[port.from] && !packets_[packet].marked && IsMarked(port)) {
        packets_[packet].marked = true;
        ++stats_.marked;
        if (watch_ != nullptr) watch_->Marked(index, now_);
      }
      if (most_hops_ > 0) [[unlikely]]
        WriteTelemetry(packet, index);
    }
    LeaveIngress(packets_[packet]);
    if (watch_ != nullptr) [[unlikely]] {
      const Packet& what = packets_[packet];
      watch_->Left(index, what.ingress, packet, what.flow, what.size, now_);
    }
    Send(index, packet);
  } else if (!SendFlow(index)) {
    return;
  }
  if (port.data.head != kNone || port.headers.head != kNone || port.first_flow != kNone)
    WaitUntil(index, ports_[port.cable].free_at);
}

// What all packets of a message are later by, so that they stay in their order.
int64_t PacketNetwork::PassedTime(const Port& port, const FlowState& flow, bool cuts) const {
  if (cuts) return Duration(port.passed_time_per_byte, kControlBytes);
  if (flow.packets > 1) return port.passed_time;
  return Duration(port.passed_time_per_byte, flow.last_size + options_.header);
}

// The packet is on the wire from now on.
void PacketNetwork::Send(uint32_t index, uint32_t packet) {
  Port& port = ports_[index];
  Packet& what = packets_[packet];
  const int64_t whole =
      what.size == whole_ ? port.whole_time : Duration(port.time_per_byte, what.size);
  Port& cable = ports_[port.cable];
  cable.free_at = now_ + whole;
  cable.sent_last = index;
  port.sent += what.size;
  if (options_.link_control == LinkControl::kCredits && port.into_switch) port.credits -= what.size;
  what.port = index;
  ++stats_.hops;
  if (watch_ != nullptr) [[unlikely]]
    watch_->Sent(index, what.size, now_);
  const uint32_t hops = wiring_.way_begin[what.flow + 1] - wiring_.way_begin[what.flow];
  int64_t until = whole;
  what.has_tail = true;
  const FlowState& flow = flows_[what.flow];
  const bool hides_delays = flow.hides_delays;
  const bool cuts = options_.cut_through || hides_delays;
  if (cuts && what.hop + 1u < hops) {
    until = std::min(whole, Duration(port.time_per_byte, kControlBytes));
    what.has_tail = until == whole;
  }
  if (port.passed_time > 0) until += PassedTime(port, flow, cuts);
  events_.Add(now_ + until + (hides_delays ? 0 : port.delay), kArrival, packet);
}

uint64_t PacketNetwork::PauseAbove(uint32_t vertex) const {
  if (options_.shared_buffer == 0) return options_.pause_above;
  const uint64_t used = used_[vertex];
  const double left =
      used < options_.shared_buffer ? static_cast<double>(options_.shared_buffer - used) : 0.0;
  return static_cast<uint64_t>(options_.dynamic_threshold * left);
}

// The packet leaves what it waited in.
void PacketNetwork::LeaveIngress(const Packet& packet) {
  if (packet.ingress == kNone) return;
  Port& ingress = ports_[packet.ingress];
  ingress.held -= packet.size;
  used_[ingress.to] -= packet.size;
  if (ingress.told_to_stop) {
    uint64_t below = options_.resume_below;
    if (options_.shared_buffer > 0) {
      const uint64_t above = PauseAbove(ingress.to);
      below = above - std::min(above, uint64_t{options_.pause_above - options_.resume_below});
    }
    if (ingress.held == 0 || ingress.held < below) {
      ingress.told_to_stop = false;
      events_.Add(now_ + ingress.delay, kResume, packet.ingress);
    }
  }
  if (options_.link_control == LinkControl::kCredits && ingress.into_switch)
    events_.Add(now_ + ingress.delay, kCredit, packet.ingress, packet.size);
}

bool PacketNetwork::IsFull(const Port& port, uint32_t size) const {
  if (options_.shared_buffer == 0) return port.queued + uint64_t{size} > options_.buffer;
  const uint64_t used = used_[port.from];
  if (used + size > options_.shared_buffer) return true;
  return static_cast<double>(port.queued) >=
         options_.dynamic_threshold * static_cast<double>(options_.shared_buffer - used);
}

bool PacketNetwork::IsMarked(Port& port) {
  if (port.queued <= port.mark_from) return false;
  ++port.chances;
  if (port.queued >= port.mark_all) return true;
  const double share = static_cast<double>(port.queued - port.mark_from) /
                       static_cast<double>(port.mark_all - port.mark_from);
  return static_cast<double>(Random() >> 11) * 0x1p-53 < share * most_marked_;
}

void PacketNetwork::Arrive(uint32_t packet) {
  Packet& what = packets_[packet];
  const uint32_t brought_by = what.port;
  const Port& last = ports_[brought_by];
  const uint32_t begin = wiring_.way_begin[what.flow];
  const uint32_t hops = wiring_.way_begin[what.flow + 1] - begin;
  if (what.hop + 1u == hops) {
    Deliver(packet);
    return;
  }
  const uint32_t spread = what.spread;
  const uint32_t port = Choose(what, what.hop + 1u, last.to);
  if (!what.has_tail && ports_[port].time_per_byte < last.time_per_byte) {
    // The next cable is faster: it would run out of what has arrived.
    what.has_tail = true;
    what.spread = spread;
    events_.Add(now_ + Duration(last.time_per_byte, what.size) -
                    Duration(last.time_per_byte, kControlBytes),
                kArrival, packet);
    return;
  }
  ++what.hop;
  what.ingress = brought_by;
  Enqueue(packet, port);
}

void PacketNetwork::Enqueue(uint32_t packet, uint32_t index) {
  Packet& what = packets_[packet];
  Port& port = ports_[index];
  Port& ingress = ports_[what.ingress];
  const bool can_lose = may_lose_ && wiring_.is_switch[port.from];
  if (can_lose && !what.trimmed && IsFull(port, what.size)) {
    ++port.chances;
    if (watch_ != nullptr) watch_->Lost(index, now_);
    if (options_.link_control == LinkControl::kDrop) {
      ++stats_.dropped;
      Lose(packet);
      return;
    }
    what.trimmed = true;
    what.size = kControlBytes;
    ++stats_.trimmed;
  }
  what.port = index;
  what.next = kNone;
  Queue& queue = what.trimmed ? port.headers : port.data;
  if (queue.tail == kNone) {
    queue.head = packet;
  } else {
    packets_[queue.tail].next = packet;
  }
  queue.tail = packet;
  port.queued += what.size;
  if (port.queued > port.most_queued) {
    port.most_queued = port.queued;
    if (port.queued > stats_.most_queued) {
      stats_.most_queued = port.queued;
      stats_.most_queued_at = index;
    }
  }
  if (watch_ != nullptr) [[unlikely]]
    watch_->Queued(index, what.ingress, packet, what.size, port.queued, now_);
  ingress.held += what.size;
  ingress.most_held = std::max(ingress.most_held, ingress.held);
  // The constructor has seen to headroom.
  CHECK(options_.link_control != LinkControl::kPfc || !ingress.into_switch ||
        options_.shared_buffer > 0 ||
        ingress.held <= uint64_t{options_.pause_above} + options_.headroom);
  used_[ingress.to] += what.size;
  const bool pauses = options_.link_control == LinkControl::kPfc || !ingress.into_switch;
  if (pauses && !ingress.told_to_stop && ingress.held > PauseAbove(ingress.to)) {
    ingress.told_to_stop = true;
    ++stats_.pauses;
    ++ingress.pauses;
    if (watch_ != nullptr) watch_->Blame(what.ingress, now_);
    events_.Add(now_ + ingress.delay, kPause, what.ingress);
  }
  Look(index);
}

void PacketNetwork::FailStuck() const {
  // From a port that is stopped to one that holds packets that it brought, and so on.
  std::vector<uint32_t> waits_for(ports_.size(), kNone);
  for (uint32_t i = 0; i < ports_.size(); ++i) {
    for (uint32_t packet = ports_[i].data.head; packet != kNone; packet = packets_[packet].next) {
      const uint32_t ingress = packets_[packet].ingress;
      if (ingress != kNone && (ports_[ingress].stopped || ports_[ingress].no_credits) &&
          (ports_[i].stopped || ports_[i].no_credits))
        waits_for[ingress] = i;
    }
  }
  std::vector<std::string> circle;
  for (uint32_t start = 0; start < ports_.size() && circle.empty(); ++start) {
    uint32_t at = waits_for[start];
    for (size_t i = 0; i < ports_.size() && at != kNone && at != start; ++i) at = waits_for[at];
    if (at != start) continue;
    do {
      circle.push_back(wiring_.ports[at].name);
      at = waits_for[at];
    } while (at != start);
  }
  throw Error(fmt::format("the network is deadlocked at {} us with {} messages under way: {}",
                          static_cast<double>(now_) * 1e-6, under_way_,
                          circle.empty() ? "nothing can be sent any more"
                                         : fmt::format("these ports wait for each other: {}",
                                                       fmt::join(circle, ", "))));
}

}  // namespace rehearse
