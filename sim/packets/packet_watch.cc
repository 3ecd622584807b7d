#include "sim/packets/packet_watch.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/error.h"
#include "sim/packets/packet_network.h"

namespace rehearse {
namespace {

void AddTo(PortInterval* sum, const PortInterval& more) {
  sum->most_queued = std::max(sum->most_queued, more.most_queued);
  sum->marked += more.marked;
  sum->lost += more.lost;
  sum->sent += more.sent;
  sum->stopped += more.stopped;
}

}  // namespace

PacketWatch::PacketWatch(const PacketWiring& wiring)
    : wiring_(wiring),
      ports_(wiring.ports.size()),
      began_(wiring.flows(), 0),
      flow_of_(wiring.flows(), kNone),
      in_index_(wiring.ports.size()),
      out_index_(wiring.ports.size()),
      out_(wiring.is_switch.size()),
      bundles_of_(wiring.ports.size()) {
  std::vector<uint32_t> entering(wiring.is_switch.size(), 0);
  for (uint32_t port = 0; port < wiring.ports.size(); ++port) {
    const PacketPort& what = wiring.ports[port];
    in_index_[port] = entering[what.to]++;
    out_index_[port] = static_cast<uint32_t>(out_[what.from].size());
    out_[what.from].push_back(port);
  }
  uint64_t all = 0;
  for (size_t vertex = 0; vertex < out_.size(); ++vertex) {
    held_begin_.push_back(all);
    all += uint64_t{entering[vertex]} * out_[vertex].size();
  }
  held_.resize(all);
  for (uint32_t bundle = 0; bundle < wiring.bundles.size(); ++bundle)
    for (const uint32_t port : wiring.bundles[bundle]) bundles_of_[port].push_back(bundle);
}

uint32_t& PacketWatch::HeldBetween(uint32_t ingress, uint32_t egress) {
  const uint32_t vertex = wiring_.ports[ingress].to;
  return held_[held_begin_[vertex] + in_index_[ingress] * out_[vertex].size() + out_index_[egress]];
}

void PacketWatch::Begins(uint32_t connection, uint32_t engine_flow, Time now) {
  const uint32_t first = wiring_.hops[wiring_.way_begin[connection]];
  flow_of_[connection] = engine_flow;
  began_[connection] = ports_[first].StoppedBy(now.picoseconds());
}

void PacketWatch::Halve() {
  for (Watched& port : ports_) {
    std::vector<PortInterval>& all = port.intervals;
    for (size_t i = 0; i < all.size(); ++i) {
      const PortInterval what = all[i];
      if (i % 2 == 0) all[i / 2] = {};
      AddTo(&all[i / 2], what);
    }
    all.resize((all.size() + 1) / 2);
  }
  interval_ *= 2;
}

PortInterval& PacketWatch::At(uint32_t port, int64_t now) {
  while (now / interval_ >= kIntervals) Halve();
  std::vector<PortInterval>& intervals = ports_[port].intervals;
  const auto index = static_cast<size_t>(now / interval_);
  if (index >= intervals.size()) intervals.resize(index + 1);
  return intervals[index];
}

void PacketWatch::AddStopped(Watched* port, int64_t from, int64_t to) const {
  port->all.stopped += Time(to - from);
  const auto last = static_cast<size_t>(to / interval_);
  if (last >= port->intervals.size()) port->intervals.resize(last + 1);
  while (from < to) {
    const int64_t end = std::min(to, (from / interval_ + 1) * interval_);
    port->intervals[static_cast<size_t>(from / interval_)].stopped += Time(end - from);
    from = end;
  }
}

void PacketWatch::Queued(uint32_t port, uint32_t ingress, uint32_t packet, uint32_t size,
                         uint32_t queued, int64_t now) {
  PortInterval& at = At(port, now);
  at.most_queued = std::max(at.most_queued, queued);
  ports_[port].all.most_queued = std::max(ports_[port].all.most_queued, queued);
  if (packet >= waits_since_.size()) waits_since_.resize(packet + 1);
  waits_since_[packet] = ports_[port].StoppedBy(now);
  HeldBetween(ingress, port) += size;
  Watched& what = ports_[port];
  if (what.queued == 0) {
    what.queue_since = now;
    what.stopped_before = what.StoppedBy(now);
  }
  what.queued += size;
}

void PacketWatch::Left(uint32_t port, uint32_t ingress, uint32_t packet, uint32_t connection,
                       uint32_t size, int64_t now) {
  HeldBetween(ingress, port) -= size;
  ports_[port].queued -= size;
  Hold(port, connection, waits_since_[packet], now);
}

void PacketWatch::Injected(uint32_t port, uint32_t connection, int64_t now) {
  Hold(port, connection, began_[connection], now);
}

void PacketWatch::Sent(uint32_t port, uint32_t size, int64_t now) {
  At(port, now).sent += size;
  ports_[port].all.sent += size;
}

bool PacketWatch::MayGoOver(uint32_t connection, uint32_t port) const {
  for (uint32_t i = wiring_.way_begin[connection]; i < wiring_.way_begin[connection + 1]; ++i) {
    const uint32_t hop = wiring_.hops[i];
    if (hop == port) return true;
    if (hop < wiring_.ports.size()) continue;
    const auto bundle = static_cast<uint32_t>(hop - wiring_.ports.size());
    if (std::find(bundles_of_[port].begin(), bundles_of_[port].end(), bundle) !=
        bundles_of_[port].end())
      return true;
  }
  return false;
}

void PacketWatch::Hold(uint32_t port, uint32_t connection, int64_t since, int64_t now) {
  const Watched& where = ports_[port];
  const int64_t stopped = where.StoppedBy(now);
  if (stopped == since || where.root == kNone) return;
  const uint64_t key = uint64_t{port} << 32 | flow_of_[connection];
  int64_t& counted = counted_[key];
  const int64_t more = stopped - std::max(since, counted);
  counted = stopped;
  if (more <= 0) return;
  HeldFlow& held = trees_[where.root].held[key];
  if (held.held == Time()) held = {flow_of_[connection], Time(), MayGoOver(connection, where.root)};
  held.held += Time(more);
}

bool PacketWatch::IsHeldUp(uint32_t port, int64_t now) const {
  const Watched& what = ports_[port];
  if (what.root == kNone || what.queued == 0) return false;
  return 10 * (what.StoppedBy(now) - what.stopped_before) > now - what.queue_since;
}

void PacketWatch::Blame(uint32_t port, int64_t now) {
  Watched& what = ports_[port];
  if (what.is_stopped) return;
  const uint32_t vertex = wiring_.ports[port].to;
  uint32_t egress = kNone;
  uint32_t most = 0;
  for (const uint32_t out : out_[vertex]) {
    const uint32_t held = HeldBetween(port, out);
    if (held > most) std::tie(egress, most) = std::pair(out, held);
  }
  what.root = egress;
  what.depth = 1;
  if (egress == kNone || !IsHeldUp(egress, now)) return;
  what.root = ports_[egress].root;
  what.depth = ports_[egress].depth + 1;
}

void PacketWatch::Stops(uint32_t port, int64_t now) {
  Watched& what = ports_[port];
  if (what.is_stopped) return;
  what.is_stopped = true;
  what.stopped_at = now;
}

void PacketWatch::Goes(uint32_t port, int64_t now) {
  Watched& what = ports_[port];
  if (!what.is_stopped) return;
  what.stopped_for = what.StoppedBy(now);
  what.is_stopped = false;
  const int64_t time = now - what.stopped_at;
  if (time == 0) return;
  while (now / interval_ >= kIntervals) Halve();
  AddStopped(&what, what.stopped_at, now);
  if (what.root == kNone) return;
  Tree& tree = trees_[what.root];
  tree.stopped += time;
  tree.depth = std::max(tree.depth, what.depth);
  tree.ports[port] += time;
}

PacketHistory PacketWatch::History(Time now) const {
  PacketHistory history;
  history.interval = Time(interval_);
  std::vector<int64_t> caused(ports_.size(), 0);
  for (const auto& [root, tree] : trees_) {
    if (tree.stopped == 0) continue;
    caused[root] = tree.stopped;
    CongestionTree what = {wiring_.ports[root].name,
                           Time(tree.stopped),
                           static_cast<uint32_t>(tree.ports.size()),
                           tree.depth,
                           {}};
    std::unordered_map<uint32_t, HeldFlow> longest;
    for (const auto& [key, held] : tree.held) {
      HeldFlow& flow = longest.try_emplace(held.flow, held).first->second;
      flow.held = std::max(flow.held, held.held);
    }
    for (const auto& [flow, held] : longest) what.held.push_back(held);
    std::sort(what.held.begin(), what.held.end(), [](const HeldFlow& a, const HeldFlow& b) {
      return std::tuple(b.held, a.flow) < std::tuple(a.held, b.flow);
    });
    history.trees.push_back(std::move(what));
  }
  std::sort(history.trees.begin(), history.trees.end(),
            [](const CongestionTree& a, const CongestionTree& b) {
              return std::tie(b.stopped, a.root) < std::tie(a.stopped, b.root);
            });
  if (history.trees.size() > kMostTrees) history.trees.resize(kMostTrees);

  std::vector<uint32_t> order;
  for (uint32_t port = 0; port < ports_.size(); ++port) {
    if (ports_[port].all.sent == 0) continue;
    ++history.ports;
    order.push_back(port);
  }
  const auto weight = [&](uint32_t port) {
    return std::tuple(std::max(caused[port], ports_[port].all.stopped.picoseconds()),
                      ports_[port].all.most_queued, ports_[port].all.sent);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return weight(b) < weight(a); });
  if (order.size() > kMostShown) order.resize(kMostShown);
  const auto count = static_cast<size_t>(
      std::min<int64_t>(kIntervals, (now.picoseconds() + interval_ - 1) / interval_));
  for (const uint32_t port : order) {
    PortHistory what = {wiring_.ports[port].name, wiring_.ports[port].bytes_per_second,
                        ports_[port].all, ports_[port].intervals};
    what.intervals.resize(std::max(what.intervals.size(), count));
    for (const PortInterval& interval : what.intervals) {
      what.all.marked += interval.marked;
      what.all.lost += interval.lost;
    }
    history.shown.push_back(std::move(what));
  }
  return history;
}

}  // namespace rehearse
