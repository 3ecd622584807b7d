#include "sim/packets/packet_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint32_t kControlBytes = 64;  // an acknowledgement, a pause, a trimmed header
constexpr double kReferenceRate = 5e9;  // bytes per second: 40 Gb/s, DCQCN's thresholds

// Steele's SplitMix64: spreads all bits.
constexpr uint64_t Scatter(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

int64_t Duration(double time_per_byte, uint32_t bytes) {
  return std::llround(time_per_byte * bytes);
}

}  // namespace

void PacketStats::Subtract(const PacketStats& before) {
  packets -= before.packets;
  hops -= before.hops;
  marked -= before.marked;
  dropped -= before.dropped;
  trimmed -= before.trimmed;
  repeated -= before.repeated;
  reordered -= before.reordered;
  pauses -= before.pauses;
  paused = paused - before.paused;
}

void PacketStats::Add(const PacketStats& other) {
  packets += other.packets;
  hops += other.hops;
  marked += other.marked;
  dropped += other.dropped;
  trimmed += other.trimmed;
  repeated += other.repeated;
  reordered += other.reordered;
  pauses += other.pauses;
  paused += other.paused;
  if (other.most_queued > most_queued) {
    most_queued = other.most_queued;
    most_queued_at = other.most_queued_at;
  }
  if (other.longest_pause > longest_pause) {
    longest_pause = other.longest_pause;
    longest_paused = other.longest_paused;
  }
}

PacketNetwork::PacketNetwork(PacketWiring wiring, const PacketOptions& options)
    : wiring_(std::move(wiring)),
      options_(options),
      may_lose_(options.link_control == LinkControl::kDrop ||
                options.link_control == LinkControl::kTrim),
      acknowledges_(may_lose_ || options.rate_control == RateControl::kWindow),
      used_(wiring_.is_switch.size(), 0) {
  CheckPacketOptions(options);
  ports_.reserve(wiring_.ports.size());
  for (const PacketPort& what : wiring_.ports) {
    Port port;
    port.time_per_byte = kPicosecondsPerSecond / what.bytes_per_second;
    port.delay = what.delay.picoseconds();
    port.from = what.from;
    port.to = what.to;
    port.into_switch = wiring_.is_switch[what.to];
    port.credits = options.buffer;
    const double scale = what.bytes_per_second / kReferenceRate;
    port.mark_from = static_cast<uint64_t>(scale * options.dcqcn.mark_from);
    port.mark_all = static_cast<uint64_t>(scale * options.dcqcn.mark_all);
    if (options.link_control == LinkControl::kPfc && port.into_switch) {
      const uint64_t needed = NeededHeadroom(options, what.bytes_per_second, what.delay);
      if (options.headroom < needed)
        throw Error(fmt::format(
            "network: the headroom of {} B is too small for {}: {} B are on their way when it is "
            "told to stop",
            options.headroom, what.name.empty() ? "a cable" : what.name, needed));
    }
    ports_.push_back(port);
  }
  const auto port_count = static_cast<uint32_t>(ports_.size());
  for (const std::vector<uint32_t>& bundle : wiring_.bundles) {
    CHECK(!bundle.empty());
    uint32_t first = kNone;
    uint32_t last = 0;
    for (const uint32_t port : bundle) {
      first = std::min(first, ports_[port].from);
      last = std::max(last, ports_[port].from);
    }
    bundle_base_.push_back(static_cast<uint32_t>(choices_.size()));
    bundle_vertex_.push_back(first);
    choices_.resize(choices_.size() + last - first + 1);
    std::vector<uint32_t> sorted = bundle;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [this](uint32_t a, uint32_t b) { return ports_[a].from < ports_[b].from; });
    for (const uint32_t port : sorted) {
      Choices& at = choices_[bundle_base_.back() + ports_[port].from - first];
      if (at.count++ == 0) at.begin = static_cast<uint32_t>(candidates_.size());
      candidates_.push_back(port);
    }
  }
  flows_.resize(wiring_.flows());
  for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
    FlowState& state = flows_[flow];
    const uint32_t begin = wiring_.way_begin[flow];
    CHECK_LT(begin, wiring_.way_begin[flow + 1]);
    CHECK_LT(wiring_.hops[begin], port_count);
    state.first_port = wiring_.hops[begin];
    state.hash = static_cast<uint32_t>(Scatter(options.seed * 0x10001 + flow));
    state.offset = static_cast<uint32_t>(Scatter(state.hash));
    state.hides_delays = !wiring_.hides_delays.empty() && wiring_.hides_delays[flow];
    uint32_t vertex = ports_[state.first_port].from;
    for (uint32_t i = begin; i < wiring_.way_begin[flow + 1]; ++i) {
      uint32_t port = wiring_.hops[i];
      if (port >= port_count) {
        const uint32_t bundle = port - port_count;
        const Choices at = choices_[bundle_base_[bundle] + vertex - bundle_vertex_[bundle]];
        CHECK_LT(0u, at.count);
        port = candidates_[at.begin];
      }
      CHECK_EQ(ports_[port].from, vertex);
      vertex = ports_[port].to;
      state.way_back += ports_[port].delay + Duration(ports_[port].time_per_byte, kControlBytes);
    }
  }
  if (options.path_choice == PathChoice::kFlowlet) flowlets_.resize(wiring_.hops.size());
  Forget();
}

void PacketNetwork::Forget() {
  random_ = options_.seed;
  for (const uint32_t flow : to_forget_) {
    FlowState& state = flows_[flow];
    state.begun = state.notified = false;
    state.raised = true;
    state.next_time = 0;
    state.rate = state.target = state.alpha = 1;
    state.bytes_since = 0;
    state.timer_steps = state.byte_steps = 0;
    state.last_notice = kLongAgo;
    if (flowlets_.empty()) continue;
    std::fill(flowlets_.begin() + wiring_.way_begin[flow],
              flowlets_.begin() + wiring_.way_begin[flow + 1], Flowlet());
  }
  to_forget_.clear();
}

uint64_t PacketNetwork::Random() { return Scatter(random_++); }

uint32_t PacketNetwork::NewPacket() {
  if (free_packet_ == kNone) {
    packets_.emplace_back();
    return static_cast<uint32_t>(packets_.size() - 1);
  }
  const uint32_t packet = free_packet_;
  free_packet_ = packets_[packet].next;
  packets_[packet] = Packet();
  return packet;
}

void PacketNetwork::Lose(uint32_t packet) {
  packets_[packet].next = free_packet_;
  free_packet_ = packet;
}

void PacketNetwork::Begin(uint32_t flow, uint64_t bytes, Time now) {
  FlowState& state = flows_[flow];
  CHECK(!state.active && bytes > 0 && now.picoseconds() >= now_);
  if (IsAtRest()) Forget();
  now_ = now.picoseconds();
  if (!state.begun) to_forget_.push_back(flow);
  state.begun = true;
  state.active = true;
  ++state.message;
  const uint64_t packets = (bytes + options_.mtu - 1) / options_.mtu;
  CHECK_LT(packets, uint64_t{kNone});
  state.packets = static_cast<uint32_t>(packets);
  state.last_size = static_cast<uint32_t>(bytes - (packets - 1) * options_.mtu);
  state.next_packet = state.acknowledged = state.highest_sent = state.highest_seen = 0;
  state.expected = state.retry_mark = 0;
  state.asked = false;
  state.asked_for.clear();
  if (may_lose_ && options_.recovery == Recovery::kSelective)
    state.received.assign((packets + 63) / 64, 0);
  state.next_time = std::max(state.next_time, now_);
  ++under_way_;
  if (may_lose_) events_.Add(now_ + options_.timeout.picoseconds(), kTimeout, flow, state.message);
  List(flow);
  Look(state.first_port);
}

bool PacketNetwork::Run(Time until) {
  arrived_.clear();
  while (events_.HasBy(until.picoseconds())) {
    const int64_t next = events_.NextTime();
    if (!arrived_.empty() && next != now_) return true;
    now_ = next;
    Handle(events_.Take());
  }
  if (events_.IsEmpty() && under_way_ > 0) FailStuck();
  return !arrived_.empty();
}

void PacketNetwork::Handle(const PacketEvent& event) {
  switch (static_cast<Kind>(event.kind)) {
    case kArrival:
      Arrive(event.a);
      break;
    case kPortFree:
      ports_[event.a].waits = false;
      Look(event.a);
      break;
    case kPause: {
      Port& port = ports_[event.a];
      if (!port.stopped) port.stopped_at = now_;
      port.stopped = true;
      break;
    }
    case kResume: {
      Port& port = ports_[event.a];
      if (port.stopped) {
        port.paused_for += now_ - port.stopped_at;
        stats_.paused += Time(now_ - port.stopped_at);
        if (Time(port.paused_for) > stats_.longest_pause) {
          stats_.longest_pause = Time(port.paused_for);
          stats_.longest_paused = event.a;
        }
      }
      port.stopped = false;
      Look(event.a);
      break;
    }
    case kCredit: {
      Port& port = ports_[event.a];
      port.credits += event.b;
      if (port.no_credits) {
        port.no_credits = false;
        Look(event.a);
      }
      break;
    }
    case kAcknowledged: {
      FlowState& flow = flows_[event.a];
      flow.acknowledged = std::max(flow.acknowledged, event.b);
      if (options_.rate_control == RateControl::kWindow && flow.listed) Look(flow.first_port);
      break;
    }
    case kAskedAgain:
      AskAgain(event.a, event.b);
      break;
    case kNotified:
      CutRate(event.a);
      break;
    case kRateTimer:
      if (flows_[event.a].epoch == event.b) RateTimer(event.a);
      break;
    case kTimeout: {
      FlowState& flow = flows_[event.a];
      if (!flow.active || flow.message != event.b) break;
      if (flow.expected == flow.retry_mark && flow.highest_sent > 0) {
        if (options_.recovery == Recovery::kGoBackN) {
          AskAgain(event.a, flow.expected);
        } else {
          for (uint32_t packet = 0; packet < flow.highest_sent; ++packet)
            if ((flow.received[packet / 64] >> (packet % 64) & 1) == 0) AskAgain(event.a, packet);
        }
      }
      flow.retry_mark = flow.expected;
      events_.Add(now_ + options_.timeout.picoseconds(), kTimeout, event.a, event.b);
      break;
    }
  }
}

void PacketNetwork::AskAgain(uint32_t flow, uint32_t packet) {
  FlowState& state = flows_[flow];
  if (!state.active) return;
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

// Sends the next packet if there is one and it may go now.
void PacketNetwork::Look(uint32_t index) {
  Port& port = ports_[index];
  if (port.waits) return;
  const bool has_queue = port.data.head != kNone || port.headers.head != kNone;
  if (!has_queue && port.first_flow == kNone) return;
  if (now_ < port.free_at) {
    port.waits = true;
    events_.Add(port.free_at, kPortFree, index);
    return;
  }
  if (port.stopped) return;
  if (options_.link_control == LinkControl::kCredits && port.into_switch) {
    const uint32_t wanted =
        port.data.head != kNone ? packets_[port.data.head].size : options_.mtu + options_.header;
    if (port.credits < wanted) {
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
    if (options_.rate_control == RateControl::kDcqcn && wiring_.is_switch[port.from] &&
        !packets_[packet].marked && IsMarked(port)) {
      packets_[packet].marked = true;
      ++stats_.marked;
    }
    LeaveIngress(packets_[packet]);
    Send(index, packet);
  } else if (!SendFlow(index)) {
    return;
  }
  if (port.data.head != kNone || port.headers.head != kNone || port.first_flow != kNone) {
    port.waits = true;
    events_.Add(port.free_at, kPortFree, index);
  }
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
    const bool fits = options_.rate_control != RateControl::kWindow || again ||
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
      ++stats_.packets;
      Send(index, packet);
      return true;
    }
    if (fits && (!is_paced || state.next_time < earliest)) {
      earliest = state.next_time;
      is_paced = true;
    }
    flow = following;
  } while (flow != first);
  if (is_paced) {
    port.waits = true;
    events_.Add(earliest, kPortFree, index);
  }
  return false;
}

// The packet is on the wire from now on.
void PacketNetwork::Send(uint32_t index, uint32_t packet) {
  Port& port = ports_[index];
  Packet& what = packets_[packet];
  const int64_t whole = Duration(port.time_per_byte, what.size);
  port.free_at = now_ + whole;
  port.sent += what.size;
  if (options_.link_control == LinkControl::kCredits && port.into_switch) port.credits -= what.size;
  what.port = index;
  ++stats_.hops;
  const uint32_t hops = wiring_.way_begin[what.flow + 1] - wiring_.way_begin[what.flow];
  int64_t until = whole;
  what.has_tail = true;
  const bool hides_delays = flows_[what.flow].hides_delays;
  if ((options_.cut_through || hides_delays) && what.hop + 1u < hops) {
    until = std::min(whole, Duration(port.time_per_byte, kControlBytes));
    what.has_tail = until == whole;
  }
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

bool PacketNetwork::IsMarked(const Port& port) {
  if (port.queued <= port.mark_from) return false;
  if (port.queued >= port.mark_all) return true;
  const double share = static_cast<double>(port.queued - port.mark_from) /
                       static_cast<double>(port.mark_all - port.mark_from);
  return static_cast<double>(Random() >> 11) * 0x1p-53 < share * options_.dcqcn.most_marked;
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
    events_.Add(now_ + ingress.delay, kPause, what.ingress);
  }
  Look(index);
}

void PacketNetwork::Deliver(uint32_t packet) {
  const Packet what = packets_[packet];
  Lose(packet);
  FlowState& flow = flows_[what.flow];
  if (!flow.active || flow.message != what.message) return;  // repeated in vain
  if (what.marked && now_ - flow.last_notice >= options_.dcqcn.notification_gap.picoseconds()) {
    flow.last_notice = now_;
    events_.Add(now_ + flow.way_back, kNotified, what.flow);
  }
  if (what.trimmed) {
    events_.Add(now_ + flow.way_back, kAskedAgain, what.flow, what.number);
    return;
  }
  if (what.number < flow.highest_seen) ++stats_.reordered;
  flow.highest_seen = std::max(flow.highest_seen, what.number + 1);
  if (options_.recovery == Recovery::kGoBackN) {
    if (what.number > flow.expected) {
      if (!flow.asked || options_.ask_each_time)
        events_.Add(now_ + flow.way_back, kAskedAgain, what.flow, flow.expected);
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
  if (acknowledges_) events_.Add(now_ + flow.way_back, kAcknowledged, what.flow, flow.expected);
  if (flow.expected == flow.packets) Complete(what.flow);
}

void PacketNetwork::Complete(uint32_t flow) {
  FlowState& state = flows_[flow];
  if (state.listed) Unlist(flow);
  state.active = false;
  --under_way_;
  arrived_.push_back(flow);
}

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
    const uint64_t load = (uint64_t{what.stopped} << 40) + what.queued + (what.free_at > now_);
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

// DCQCN. A notification cuts the rate; a timer and a byte counter raise it: first halfway back
// to where it was, then further.
void PacketNetwork::CutRate(uint32_t flow) {
  FlowState& state = flows_[flow];
  const DcqcnFigures& figures = options_.dcqcn;
  const double line = kPicosecondsPerSecond / ports_[state.first_port].time_per_byte;
  // Cuts in a row have one target: the rate before the first.
  if (state.raised) state.target = state.rate;
  state.raised = false;
  state.rate = std::max(state.rate * (1 - state.alpha / 2), figures.least_rate / line);
  state.alpha = (1 - figures.gain) * state.alpha + figures.gain;
  state.notified = true;
  state.timer_steps = state.byte_steps = 0;
  state.bytes_since = 0;
  StartRateTimer(flow);
}

void PacketNetwork::StartRateTimer(uint32_t flow) {
  events_.Add(now_ + options_.dcqcn.timer.picoseconds(), kRateTimer, flow, ++flows_[flow].epoch);
}

void PacketNetwork::RateTimer(uint32_t flow) {
  FlowState& state = flows_[flow];
  if (!state.notified) state.alpha *= 1 - options_.dcqcn.gain;
  state.notified = false;
  ++state.timer_steps;
  RaiseRate(flow);
  if (state.rate < 1) StartRateTimer(flow);
}

void PacketNetwork::RaiseRate(uint32_t flow) {
  FlowState& state = flows_[flow];
  const DcqcnFigures& figures = options_.dcqcn;
  const uint32_t most = std::max(state.timer_steps, state.byte_steps);
  const uint32_t least = std::min(state.timer_steps, state.byte_steps);
  if (least > figures.fast_steps) {
    state.target += figures.hyper_increase / kReferenceRate;
  } else if (most > figures.fast_steps) {
    state.target += figures.additive_increase / kReferenceRate;
  }
  state.target = std::min(state.target, 1.0);
  state.rate = (state.target + state.rate) / 2;
  state.raised = true;
  constexpr double kAsGoodAsLine = 0.999;
  if (state.rate < kAsGoodAsLine) return;
  state.rate = 1;
  ++state.epoch;
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
