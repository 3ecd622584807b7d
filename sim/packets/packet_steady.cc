#include "sim/packets/packet_steady.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "sim/base/error.h"
#include "sim/packets/packet_network.h"
#include "sim/packets/packet_numbers.h"

namespace rehearse {
namespace {

constexpr int64_t kEndOfQueue = std::numeric_limits<int64_t>::min();
constexpr uint64_t kMayWrap = uint64_t{1} << 32;

int64_t Apart(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b); }

}  // namespace

void PacketNetwork::StartSteadyStates() {
  if (controller_ != nullptr || options_.shared_buffer > 0 ||
      options_.path_choice == PathChoice::kFlowlet)
    return;
  steady_ = std::make_unique<SteadyStates>();
  SteadyStates& steady = *steady_;
  const auto port_count = static_cast<uint32_t>(ports_.size());
  steady.base.resize(port_count);
  for (uint32_t i = 0; i < port_count; ++i) steady.base[i] = ports_[i].cable;
  steady.parent = steady.base;
  for (const std::vector<uint32_t>& bundle : wiring_.bundles)
    for (const uint32_t port : bundle) steady.parent[steady.Root(port)] = steady.Root(bundle[0]);
  for (uint32_t i = 0; i < port_count; ++i) steady.base[i] = steady.Root(i);
  steady.parked_of.assign(port_count, kNone);
  steady.place_in_active.assign(flows_.size(), kNone);
  steady.has_snapshot.assign(flows_.size(), 0);
  if (options_.path_choice == PathChoice::kHash) return;
  steady.rest.assign(wiring_.hops.size(), 1);
  for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
    uint64_t product = 1;
    for (uint32_t i = wiring_.way_begin[flow + 1]; i-- > wiring_.way_begin[flow];) {
      steady.rest[i] = product < kMayWrap ? static_cast<uint32_t>(product) : 0;
      if (wiring_.hops[i] < port_count) continue;
      const uint32_t bundle = wiring_.hops[i] - port_count;
      const uint32_t begin = bundle_base_[bundle];
      const uint32_t end = bundle + 1 < bundle_base_.size()
                               ? bundle_base_[bundle + 1]
                               : static_cast<uint32_t>(choices_.size());
      uint32_t count = 0;
      for (uint32_t at = begin; at < end; ++at) {
        if (choices_[at].count == 0) continue;
        if (count != 0 && choices_[at].count != count) product = 0;
        count = choices_[at].count;
      }
      product = std::min(product * count, kMayWrap);
    }
  }
}

void PacketNetwork::BeginSteady(uint32_t flow) {
  SteadyStates& steady = *steady_;
  if (steady.parked_count > 0) {
    const auto unpark = [&](uint32_t port) {
      if (steady.parked_of[port] != kNone) Unpark(steady.parked_of[port], now_);
    };
    for (uint32_t i = wiring_.way_begin[flow]; i < wiring_.way_begin[flow + 1]; ++i) {
      const uint32_t hop = wiring_.hops[i];
      if (hop < ports_.size()) {
        unpark(hop);
      } else {
        for (const uint32_t port : wiring_.bundles[hop - ports_.size()]) unpark(port);
      }
    }
  }
  steady.place_in_active[flow] = static_cast<uint32_t>(steady.active.size());
  steady.active.push_back(flow);
  flows_[flow].until_look = SteadyStates::kFirstLook;
}

void PacketNetwork::EndSteady(uint32_t flow) {
  SteadyStates& steady = *steady_;
  const uint32_t place = steady.place_in_active[flow];
  const uint32_t last = steady.active.back();
  steady.active[place] = last;
  steady.place_in_active[last] = place;
  steady.active.pop_back();
  steady.place_in_active[flow] = kNone;
  steady.ForgetSnapshot(flow);
}

// Of what an event is about.
uint32_t PacketNetwork::PortOf(const PacketEvent& event) const {
  switch (static_cast<Kind>(event.kind & kKindMask)) {
    case kArrival:
      return packets_[event.a].port;
    case kPortFree:
    case kPause:
    case kResume:
    case kCredit:
    case kPaced:
      return event.a;
    case kAcknowledged:
    case kAskedAgain:
    case kNotified:
    case kRateTimer:
    case kTimeout:
      return flows_[event.a].first_port;
    case kEchoed:
    case kUnpark:
      break;
  }
  return kNone;
}

void PacketNetwork::AppendPacket(uint32_t packet, std::vector<int64_t>* state) const {
  const Packet& what = packets_[packet];
  const FlowState& flow = flows_[what.flow];
  int64_t spread = 0;
  if (!steady_->rest.empty()) {
    const uint32_t ways = steady_->rest[wiring_.way_begin[what.flow] + what.hop];
    spread = ways == 0 ? what.spread : what.spread % ways;
  }
  state->insert(state->end(),
                {int64_t{what.flow} << 32 | what.port, Apart(what.number, flow.next_packet), spread,
                 int64_t{what.ingress} << 32 | what.size,
                 int64_t{what.message} << 32 | what.hop << 8 | (what.marked ? 1 : 0) |
                     (what.trimmed ? 2 : 0) | (what.has_tail ? 4 : 0)});
}

// False if chance is at work.
bool PacketNetwork::AppendFlow(uint32_t index, std::vector<int64_t>* state) const {
  const FlowState& flow = flows_[index];
  if (!flow.asked_for.empty() || flow.asked || flow.rate < 1) return false;
  const uint32_t next = flow.next_packet;
  int64_t spread = 0;
  if (!steady_->rest.empty()) {
    const uint32_t ways = steady_->rest[wiring_.way_begin[index]];
    if (ways == 0) return false;
    spread = (next + flow.offset) % ways;
  }
  state->insert(
      state->end(),
      {index, flow.message, spread, acknowledges_ ? Apart(flow.acknowledged, next) : 0,
       Apart(flow.highest_sent, next), Apart(flow.highest_seen, next), Apart(flow.expected, next),
       flow.listed ? int64_t{flow.next} : -1, flow.listed ? int64_t{flow.previous} : -1,
       std::max(flow.next_time - now_, int64_t{0})});
  if (flow.received.empty()) return true;
  // What has come behind the first that has not.
  uint32_t low = 0;
  while (low < flow.packets && (flow.received[low / 64] >> (low % 64) & 1) != 0)
    low = low % 64 == 0 && flow.received[low / 64] == ~uint64_t{0} ? low + 64 : low + 1;
  state->push_back(Apart(low, next));
  for (uint32_t packet = low; packet < flow.highest_seen; ++packet)
    if ((flow.received[packet / 64] >> (packet % 64) & 1) != 0)
      state->push_back(Apart(packet, next));
  state->push_back(kEndOfQueue);
  return true;
}

void PacketNetwork::AppendPort(uint32_t index, std::vector<int64_t>* state) const {
  const Port& port = ports_[index];
  const int64_t busy = std::max(port.free_at - now_, int64_t{0});
  const int64_t flags = (port.waits ? 1 : 0) | (port.stopped ? 2 : 0) |
                        (port.told_to_stop ? 4 : 0) | (port.no_credits ? 8 : 0);
  const bool is_idle = busy == 0 && flags == 0 && port.queued == 0 && port.held == 0 &&
                       port.first_flow == kNone && port.waiting == 0 &&
                       port.credits == options_.buffer;
  if (is_idle) return;
  state->insert(state->end(), {index, busy, flags, int64_t{port.queued} << 32 | port.held,
                               port.credits, int64_t{port.first_flow} << 32 | port.waiting,
                               port.sent_last, port.stopped ? port.stopped_at - now_ : 0});
  for (const Queue& queue : {port.data, port.headers}) {
    for (uint32_t packet = queue.head; packet != kNone; packet = packets_[packet].next)
      AppendPacket(packet, state);
    state->push_back(kEndOfQueue);
  }
}

// False if it is of a kind that chance brings.
bool PacketNetwork::AppendEvent(const PacketEvent& event, std::vector<int64_t>* state) const {
  const auto kind = static_cast<Kind>(event.kind & kKindMask);
  state->insert(state->end(), {event.time - now_, kind});
  switch (kind) {
    case kArrival:
      AppendPacket(event.a, state);
      return true;
    case kPortFree:
    case kPause:
    case kResume:
    case kCredit:
      state->insert(state->end(), {event.a, event.b});
      return true;
    case kAcknowledged:
      // Of a message before, it changes nothing.
      state->insert(state->end(),
                    {event.a, IsOfMessage(event) ? Apart(event.b, flows_[event.a].next_packet) : 0,
                     IsOfMessage(event)});
      return true;
    default:
      return false;
  }
}

void PacketNetwork::LookForSteadyStates() {
  SteadyStates& steady = *steady_;
  std::vector<uint32_t> asking;
  asking.swap(steady.pending);
  for (const uint32_t flow : asking) flows_[flow].until_look = SteadyStates::kLookEach;
  constexpr uint64_t kShare = 2;  // events handled for each thing that is looked at
  if (stats_.repeated != steady.repeated_at_rest || kShare * steady.looked_at > steady.handled)
    return;

  // Groups.
  const auto port_count = static_cast<uint32_t>(ports_.size());
  steady.parent = steady.base;
  const auto port_of_hop = [&](uint32_t hop) {
    return hop < port_count ? hop : wiring_.bundles[hop - port_count][0];
  };
  std::map<uint32_t, uint32_t> owners;  // by root
  for (const uint32_t flow : steady.active) {
    const uint32_t first = steady.Root(flows_[flow].first_port);
    for (uint32_t i = wiring_.way_begin[flow] + 1; i < wiring_.way_begin[flow + 1]; ++i)
      steady.parent[steady.Root(port_of_hop(wiring_.hops[i]))] = first;
  }
  steady.looked_at += port_count / 4 + 4 * steady.active.size();
  for (const uint32_t flow : steady.active)
    if (steady.has_snapshot[flow] != 0) owners.emplace(steady.Root(flows_[flow].first_port), flow);

  struct Group {
    uint32_t owner = 0;
    std::vector<PacketEvent> events;
    SteadySnapshot now;
  };
  std::map<uint32_t, Group> groups;  // by root
  for (const uint32_t flow : asking) {
    if (!flows_[flow].active || steady.parked_of[flows_[flow].first_port] != kNone) continue;
    const uint32_t root = steady.Root(flows_[flow].first_port);
    const uint32_t owner = owners.emplace(root, flow).first->second;
    if (owner == flow) {
      groups[root].owner = flow;
    } else {
      flows_[flow].until_look = SteadyStates::kOthersLook;
    }
  }
  if (groups.empty()) return;
  events_.ForEach([&](const PacketEvent& event) {
    ++steady.looked_at;
    if ((event.kind & kKindMask) == kTimeout) return;
    const uint32_t port = PortOf(event);
    if (port == kNone) return;
    const auto group = groups.find(steady.Root(port));
    if (group != groups.end()) group->second.events.push_back(event);
  });
  std::vector<uint32_t> flows = steady.active;
  std::sort(flows.begin(), flows.end());
  for (const uint32_t flow : flows) {
    const auto group = groups.find(steady.Root(flows_[flow].first_port));
    if (group != groups.end()) group->second.now.flows.push_back(flow);
  }
  for (uint32_t port = 0; port < port_count; ++port) {
    const auto group = groups.find(steady.Root(port));
    if (group != groups.end()) group->second.now.ports.push_back(port);
  }

  bool parks = false;
  for (auto& [root, group] : groups) {
    SteadySnapshot& now = group.now;
    const bool is_known = steady.has_snapshot[group.owner] != 0;
    if (!Describe(&group.events, &now)) {
      steady.ForgetSnapshot(group.owner);
      continue;
    }
    steady.looked_at += now.state.size();
    if (!is_known) {
      steady.snapshots[group.owner] = std::move(now);
      steady.has_snapshot[group.owner] = 1;
      continue;
    }
    SteadySnapshot& before = steady.snapshots[group.owner];
    if (before.chances == now.chances && before.flows == now.flows && before.state == now.state) {
      const uint32_t periods = PeriodsToSkip(before, now);
      if (periods >= SteadyStates::kLeastPeriods) {
        Park(before, periods, &now);
        parks = true;
      }
      steady.ForgetSnapshot(group.owner);
      continue;
    }
    if (++before.compared < before.comparisons && before.flows == now.flows) continue;
    now.comparisons = before.flows == now.flows ? 2 * before.comparisons : 1;
    before = std::move(now);
  }
  if (parks) TakeOutParked();
}

// Writes the group's state down; false if chance is at work in it.
bool PacketNetwork::Describe(std::vector<PacketEvent>* events, SteadySnapshot* snapshot) const {
  snapshot->time = now_;
  for (const uint32_t flow : snapshot->flows) {
    if (!AppendFlow(flow, &snapshot->state)) return false;
    snapshot->next_packet.push_back(flows_[flow].next_packet);
    snapshot->reordered.push_back(flows_[flow].reordered);
  }
  for (const uint32_t index : snapshot->ports) {
    const Port& port = ports_[index];
    AppendPort(index, &snapshot->state);
    snapshot->sent.push_back(port.sent);
    snapshot->paused_for.push_back(port.paused_for);
    snapshot->pauses.push_back(port.pauses);
    snapshot->chances += port.chances;
  }
  EventWheel::Sort(events);
  for (const PacketEvent& event : *events)
    if (!AppendEvent(event, &snapshot->state)) return false;
  return true;
}

// How often what was between the two can happen again before a flow comes to its last packet.
uint32_t PacketNetwork::PeriodsToSkip(const SteadySnapshot& before,
                                      const SteadySnapshot& now) const {
  uint64_t most = kNone;
  bool moves = false;
  for (size_t i = 0; i < now.flows.size(); ++i) {
    const FlowState& flow = flows_[now.flows[i]];
    const uint32_t step = now.next_packet[i] - before.next_packet[i];
    if (step == 0) continue;
    moves = true;
    most = std::min<uint64_t>(most, (flow.packets - 1 - flow.next_packet) / step);
    if (steady_->rest.empty()) continue;
    // The number that chooses cables must not wrap meanwhile.
    const uint64_t first = uint64_t{flow.offset} + flow.expected;
    const uint64_t last = uint64_t{flow.offset} + flow.packets;
    if (first / kMayWrap != last / kMayWrap) return 0;
  }
  return moves ? static_cast<uint32_t>(most) : 0;
}

void PacketNetwork::Park(const SteadySnapshot& before, uint32_t periods, SteadySnapshot* now) {
  SteadyStates& steady = *steady_;
  uint32_t slot = 0;
  while (slot < steady.parked.size() && steady.parked[slot].most > 0) ++slot;
  if (slot == steady.parked.size()) steady.parked.emplace_back();
  SteadyStates::Parked& parked = steady.parked[slot];
  parked.period = now->time - before.time;
  parked.most = periods;
  ++parked.number;
  parked.events.clear();
  const auto differ = [](const auto& later, const auto& earlier, auto* difference) {
    difference->resize(later.size());
    for (size_t i = 0; i < later.size(); ++i) (*difference)[i] = later[i] - earlier[i];
  };
  differ(now->next_packet, before.next_packet, &parked.next_packet);
  differ(now->reordered, before.reordered, &parked.reordered);
  differ(now->sent, before.sent, &parked.sent);
  differ(now->paused_for, before.paused_for, &parked.paused_for);
  differ(now->pauses, before.pauses, &parked.pauses);
  parked.start = std::move(*now);
  for (const uint32_t port : parked.start.ports) steady.parked_of[port] = slot;
  ++steady.parked_count;
  events_.Add(parked.start.time + periods * parked.period, kUnpark, slot, parked.number);
}

// The events of groups that have just been parked.
void PacketNetwork::TakeOutParked() {
  SteadyStates& steady = *steady_;
  std::vector<PacketEvent> taken;
  events_.Extract(
      [&](const PacketEvent& event) {
        if ((event.kind & kKindMask) == kTimeout) return false;
        const uint32_t port = PortOf(event);
        return port != kNone && steady.parked_of[port] != kNone;
      },
      &taken);
  EventWheel::Sort(&taken);
  for (const PacketEvent& event : taken)
    steady.parked[steady.parked_of[PortOf(event)]].events.push_back(event);
}

// Moves the group on by as many periods as have passed, and plays what has happened since.
void PacketNetwork::Unpark(uint32_t slot, int64_t time) {
  SteadyStates& steady = *steady_;
  SteadyStates::Parked parked = std::move(steady.parked[slot]);
  steady.parked[slot] = {};
  steady.parked[slot].number = parked.number;
  --steady.parked_count;
  const auto times = static_cast<uint32_t>(
      std::min<int64_t>(parked.most, (time - parked.start.time) / parked.period));
  const int64_t shift = times * parked.period;
  const std::vector<uint32_t>& flows = parked.start.flows;
  const std::vector<uint32_t>& ports = parked.start.ports;

  const auto move_packet = [&](uint32_t packet) {
    Packet& what = packets_[packet];
    const auto place = std::lower_bound(flows.begin(), flows.end(), what.flow) - flows.begin();
    const uint32_t step = times * parked.next_packet[static_cast<size_t>(place)];
    what.number += step;
    if (steady.rest.empty()) return;
    const uint32_t begin = wiring_.way_begin[what.flow];
    what.spread += step / (steady.rest[begin] / steady.rest[begin + what.hop]);
  };
  for (size_t i = 0; i < ports.size(); ++i) {
    Port& port = ports_[ports[i]];
    steady.parked_of[ports[i]] = kNone;
    port.free_at += shift;
    port.stopped_at += shift;
    const uint64_t sent = times * parked.sent[i];
    port.sent += sent;
    port.pauses += times * parked.pauses[i];
    stats_.pauses += uint64_t{times} * parked.pauses[i];
    stats_.hops += sent / whole_;
    steady.skipped_hops += sent / whole_;
    if (parked.paused_for[i] > 0 && times > 0) {
      port.paused_for += times * parked.paused_for[i];
      stats_.paused += Time(times * parked.paused_for[i]);
      NotePaused(ports[i]);
    }
    for (const Queue& queue : {port.data, port.headers})
      for (uint32_t packet = queue.head; packet != kNone; packet = packets_[packet].next)
        move_packet(packet);
  }
  for (const PacketEvent& event : parked.events)
    if ((event.kind & kKindMask) == kArrival) move_packet(event.a);
  for (size_t i = 0; i < flows.size(); ++i) {
    FlowState& flow = flows_[flows[i]];
    const uint32_t step = times * parked.next_packet[i];
    MoveReceived(&flow, step);
    flow.next_packet += step;
    if (acknowledges_) flow.acknowledged += step;
    flow.highest_sent += step;
    flow.highest_seen += step;
    flow.expected += step;
    flow.next_time += shift;
    flow.until_look = SteadyStates::kFirstLook;
    const uint32_t reordered = times * parked.reordered[i];
    flow.reordered += reordered;
    stats_.reordered += reordered;
    stats_.packets += step;
  }
  for (const PacketEvent& event : parked.events) {
    const bool moves = (event.kind & kKindMask) == kAcknowledged && IsOfMessage(event);
    uint32_t b = event.b;
    if (moves) {
      const auto place = std::lower_bound(flows.begin(), flows.end(), event.a) - flows.begin();
      b += times * parked.next_packet[static_cast<size_t>(place)];
    }
    events_.Add(event.time + shift, event.kind, event.a, b);
  }
  if (times == parked.most) return;
  // Nothing else is there that has not been played.
  const size_t arrived = arrived_.size();
  while (events_.HasBy(time)) {
    now_ = events_.NextTime();
    Handle(events_.Take());
  }
  now_ = time;
  CHECK_EQ(arrived_.size(), arrived);
}

void PacketNetwork::MoveReceived(FlowState* flow, uint32_t step) {
  if (flow->received.empty() || step == 0) return;
  uint32_t low = 0;
  const auto has = [&](uint32_t packet) {
    return (flow->received[packet / 64] >> (packet % 64) & 1) != 0;
  };
  while (low < flow->packets && has(low)) ++low;
  std::vector<uint32_t> later;
  for (uint32_t packet = low; packet < flow->highest_seen; ++packet)
    if (has(packet)) later.push_back(packet);
  for (const uint32_t packet : later)
    flow->received[packet / 64] &= ~(uint64_t{1} << (packet % 64));
  for (uint32_t packet = low; packet < low + step; ++packet)
    flow->received[packet / 64] |= uint64_t{1} << (packet % 64);
  for (const uint32_t packet : later)
    flow->received[(packet + step) / 64] |= uint64_t{1} << ((packet + step) % 64);
}

}  // namespace rehearse
