// Plays messages between the hosts of a fat tree, some after others, and says when each arrived.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "sim/packets/packet_network.h"
#include "sim/packets/packet_watch.h"
#include "tests/sim/packets/packet_tree.h"

namespace rehearse {

struct PacketMessage {
  static constexpr uint32_t kNone = 0xffffffffu;

  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t bytes = 0;
  uint32_t after = kNone;  // begins when this one is acknowledged
};

struct PacketRun {
  std::vector<double> ends;          // us, by message: its arrival
  std::vector<double> acknowledged;  // us, by message
  PacketStats stats;
  uint64_t most_held = 0;  // bytes behind any port into a switch
};

// Flow f of the wiring carries message f. The watch may be null; its flows are the messages.
inline PacketRun PlayPackets(const PacketWiring& wiring, const PacketOptions& options,
                             const std::vector<PacketMessage>& messages,
                             PacketWatch* watch = nullptr) {
  PacketNetwork network(wiring, options);
  network.Watch(watch);
  using Start = std::pair<int64_t, uint32_t>;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts;
  std::vector<std::vector<uint32_t>> next(messages.size());
  for (uint32_t i = 0; i < messages.size(); ++i) {
    if (messages[i].after == PacketMessage::kNone)
      starts.emplace(0, i);
    else
      next[messages[i].after].push_back(i);
  }
  PacketRun run;
  run.ends.resize(messages.size());
  run.acknowledged.resize(messages.size());
  size_t left = messages.size();
  while (left > 0) {
    const Time until(starts.empty() ? std::numeric_limits<int64_t>::max() / 2 : starts.top().first);
    if (!network.Run(until)) {
      const auto [time, message] = starts.top();
      starts.pop();
      if (watch != nullptr) watch->Begins(message, message, Time(time));
      network.Begin(message, messages[message].bytes, Time(time));
      continue;
    }
    for (const uint32_t message : network.arrived()) {
      const int64_t end = network.now().picoseconds();
      const int64_t known = end + network.AcknowledgementDelay(message).picoseconds();
      run.ends[message] = static_cast<double>(end) * 1e-6;
      run.acknowledged[message] = static_cast<double>(known) * 1e-6;
      for (const uint32_t other : next[message]) starts.emplace(known, other);
      --left;
    }
  }
  run.stats = network.stats();
  for (uint32_t port = 0; port < wiring.ports.size(); ++port)
    if (wiring.is_switch[wiring.ports[port].to])
      run.most_held = std::max(run.most_held, network.MostHeldBehind(port));
  return run;
}

inline PacketRun PlayPackets(uint32_t radix, double rate, Time cable, const PacketOptions& options,
                             const std::vector<PacketMessage>& messages) {
  PacketTree tree(radix, rate, cable);
  for (const PacketMessage& message : messages) tree.AddFlow(message.from, message.to);
  return PlayPackets(tree.wiring(), options, messages);
}

}  // namespace rehearse
