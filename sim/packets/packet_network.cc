#include "sim/packets/packet_network.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/packets/packet_numbers.h"
#include "sim/packets/packet_steady.h"
#include "sim/packets/packet_watch.h"

namespace rehearse {

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

PacketNetwork::PacketNetwork(PacketWiring wiring, const PacketOptions& options,
                             bool skips_steady_states)
    : wiring_(std::move(wiring)),
      options_(options),
      whole_(options.mtu + options.header),
      may_lose_(options.link_control == LinkControl::kDrop ||
                options.link_control == LinkControl::kTrim),
      acknowledges_((may_lose_ && !LearnsFromAcknowledgements(options.rate_control)) ||
                    options.rate_control == RateControl::kWindow),
      used_(wiring_.is_switch.size(), 0) {
  CheckPacketOptions(options);
  ports_.reserve(wiring_.ports.size());
  for (const PacketPort& what : wiring_.ports) {
    Port port;
    port.time_per_byte = kPicosecondsPerSecond / what.bytes_per_second;
    port.delay = what.delay.picoseconds();
    port.passed_time_per_byte = kPicosecondsPerSecond * what.passed_seconds_per_byte;
    port.whole_time = Duration(port.time_per_byte, whole_);
    port.passed_time = Duration(port.passed_time_per_byte, whole_);
    port.from = what.from;
    port.to = what.to;
    port.into_switch = wiring_.is_switch[what.to];
    port.cable =
        what.cable_of == PacketPort::kNone ? static_cast<uint32_t>(ports_.size()) : what.cable_of;
    CHECK_LE(port.cable, ports_.size());
    port.priority = what.priority;
    if (port.cable < ports_.size()) {
      Port& cable = ports_[port.cable];
      port.next_lane = cable.next_lane == kNone ? port.cable : cable.next_lane;
      cable.next_lane = static_cast<uint32_t>(ports_.size());
    }
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
      state.way_back += ports_[port].delay + Duration(ports_[port].time_per_byte, kControlBytes) +
                        Duration(ports_[port].passed_time_per_byte, kControlBytes);
    }
  }
  if (options.path_choice == PathChoice::kFlowlet) flowlets_.resize(wiring_.hops.size());
  marks_ = options.rate_control == RateControl::kDcqcn;
  most_marked_ = options.dcqcn.most_marked;
  if (LearnsFromAcknowledgements(options.rate_control)) StartControl();
  inspects_ = marks_ || most_hops_ > 0;
  if (skips_steady_states) StartSteadyStates();
  Forget();
}

PacketNetwork::~PacketNetwork() = default;

uint64_t PacketNetwork::SkippedHops() const {
  return steady_ == nullptr ? 0 : steady_->skipped_hops;
}

void PacketNetwork::Forget() {
  random_ = options_.seed;
  if (steady_ != nullptr) steady_->repeated_at_rest = stats_.repeated;
  for (const uint32_t flow : to_forget_) {
    FlowState& state = flows_[flow];
    state.begun = state.notified = false;
    state.raised = true;
    state.next_time = 0;
    state.rate = state.target = state.alpha = 1;
    state.bytes_since = 0;
    state.timer_steps = state.byte_steps = 0;
    state.last_notice = kLongAgo;
    if (controller_ != nullptr)
      controlled_[flow] = {controller_->Begin(flow, controlled_[flow].path), controlled_[flow].path,
                           0};
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
  if (steady_ != nullptr) BeginSteady(flow);
  if (!state.begun) to_forget_.push_back(flow);
  state.begun = true;
  state.active = true;
  ++state.message;
  if (controller_ != nullptr && controlled_[flow].has_repeated) {
    // What was lost again, once its repetition had arrived, is in flight no more.
    controlled_[flow].has_repeated = false;
    controlled_[flow].in_flight = 0;
  }
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
    if (next != now_) {
      if (!arrived_.empty()) break;
      if (asks_for_look_) [[unlikely]] {
        asks_for_look_ = false;
        LookForSteadyStates();
        continue;  // what was next may be parked
      }
    }
    now_ = next;
    if (steady_ != nullptr) ++steady_->handled;
    Handle(events_.Take());
  }
  if (events_.IsEmpty() && under_way_ > 0) FailStuck();
  std::sort(arrived_.begin(), arrived_.end());
  return !arrived_.empty();
}

// Of several that stood still equally long, the first port is named.
void PacketNetwork::NotePaused(uint32_t port) {
  const Time paused(ports_[port].paused_for);
  if (paused < stats_.longest_pause) return;
  if (paused == stats_.longest_pause && port > stats_.longest_paused) return;
  stats_.longest_pause = paused;
  stats_.longest_paused = port;
}

void PacketNetwork::Handle(const PacketEvent& event) {
  switch (static_cast<Kind>(event.kind & kKindMask)) {
    case kArrival:
      Arrive(event.a);
      break;
    case kPortFree:
      if (!LetsOthersSend(event.a)) Look(event.a);
      break;
    case kPause: {
      Port& port = ports_[event.a];
      if (!port.stopped) port.stopped_at = now_;
      if (watch_ != nullptr) watch_->Stops(event.a, now_);
      port.stopped = true;
      break;
    }
    case kResume: {
      Port& port = ports_[event.a];
      if (port.stopped) {
        port.paused_for += now_ - port.stopped_at;
        stats_.paused += Time(now_ - port.stopped_at);
        NotePaused(event.a);
      }
      port.stopped = false;
      if (watch_ != nullptr) watch_->Goes(event.a, now_);
      Look(event.a);
      break;
    }
    case kCredit: {
      Port& port = ports_[event.a];
      port.credits += event.b;
      if (port.no_credits) {
        port.no_credits = false;
        if (watch_ != nullptr) watch_->Goes(event.a, now_);
        Look(event.a);
      }
      break;
    }
    case kAcknowledged: {
      if (!IsOfMessage(event)) break;
      FlowState& flow = flows_[event.a];
      flow.acknowledged = std::max(flow.acknowledged, event.b);
      if (options_.rate_control == RateControl::kWindow && flow.listed) Look(flow.first_port);
      break;
    }
    case kAskedAgain:
      if (IsOfMessage(event)) AskAgain(event.a, event.b);
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
      if (steady_ != nullptr && steady_->parked_of[flow.first_port] != kNone)
        Unpark(steady_->parked_of[flow.first_port], now_);
      if (flow.expected == flow.retry_mark && flow.highest_sent > 0) {
        if (controller_ != nullptr) LearnOfTimeout(event.a);
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
    case kEchoed:
      Learn(event.a);
      break;
    case kPaced:
      wakes_at_[event.a] = 0;
      Look(event.a);
      break;
    case kUnpark: {
      const SteadyStates::Parked& parked = steady_->parked[event.a];
      if (parked.most > 0 && parked.number == event.b) Unpark(event.a, now_);
      break;
    }
  }
}

}  // namespace rehearse
