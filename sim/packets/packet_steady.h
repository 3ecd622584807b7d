// Steady states: what repeats itself is not played.
//
// A group is what messages under way can touch together: their ports, the other ports of bundles
// on their ways, and all that shares ports with these. Groups do not know of each other. Now and
// then the whole state of a group is written down: queues with their packets, credits, pauses, what
// is under way on cables, what senders and receivers know; packets are counted from the next that
// their flow sends, and times from now. If it is what was written down some time before, number by
// number, then what has happened since happens again and again, until a flow comes to its last
// packet. So the group is parked: its events are taken out of the queue of events, and when time
// has come to the last whole repetition, or a message begins on its ports, all counters and times
// are moved on at once. The result is the same to the last bit.
//
// Nothing is parked where chance decides: while packets are marked, rates recover (DCQCN), flowlets
// are followed, packets are lost or repeated, or senders learn from acknowledgements.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/packets/packet_network.h"

namespace rehearse {

// A group as it was. Flows and ports ascend.
struct PacketNetwork::SteadySnapshot {
  std::vector<int64_t> state;
  int64_t time = 0;
  uint64_t chances = 0;  // of its ports
  std::vector<uint32_t> flows;
  std::vector<uint32_t> next_packet;  // by flow
  std::vector<uint32_t> reordered;
  std::vector<uint32_t> ports;
  std::vector<uint64_t> sent;  // by port
  std::vector<int64_t> paused_for;
  std::vector<uint32_t> pauses;
  uint32_t compared = 0;
  uint32_t comparisons = 1;  // after so many it is replaced, and so the next has twice as many
};

struct PacketNetwork::SteadyStates {
  // What is added to the counters in each of `most` periods. Of none: free.
  struct Parked {
    SteadySnapshot start;
    std::vector<PacketEvent> events;
    int64_t period = 0;
    uint32_t most = 0;
    uint32_t number = 0;  // of those that were parked here
    std::vector<uint32_t> next_packet;
    std::vector<uint32_t> reordered;
    std::vector<uint64_t> sent;
    std::vector<int64_t> paused_for;
    std::vector<uint32_t> pauses;
  };

  static constexpr uint32_t kFirstLook = 64;  // packets of a message, and from then on:
  static constexpr uint32_t kLookEach = 16;
  static constexpr uint32_t kOthersLook = 64;  // who is not its group's first
  static constexpr uint32_t kLeastPeriods = 3;

  std::vector<uint32_t> base;    // by port: one of its bundle, or its cable
  std::vector<uint32_t> parent;  // by port, while groups are told apart
  std::vector<uint32_t> active;  // flows
  std::vector<uint32_t> place_in_active;
  std::vector<uint32_t> parked_of;  // by port; kNone
  // By hop: in how many ways what is left of the number that chooses cables matters behind it.
  // 0: it depends on the switch.
  std::vector<uint32_t> rest;
  std::unordered_map<uint32_t, SteadySnapshot> snapshots;  // by flow
  std::vector<uint8_t> has_snapshot;                       // by flow: whether it is among them
  std::vector<Parked> parked;
  uint32_t parked_count = 0;
  std::vector<uint32_t> pending;  // flows that ask for a look at their groups
  // Looks cost time where nothing is steady: so much has been looked at, and handled.
  uint64_t looked_at = 0;
  uint64_t handled = 0;
  uint64_t repeated_at_rest = 0;
  uint64_t skipped_hops = 0;

  void ForgetSnapshot(uint32_t flow) {
    if (has_snapshot[flow] != 0) snapshots.erase(flow);
    has_snapshot[flow] = 0;
  }
  uint32_t Root(uint32_t port) {
    while (parent[port] != port) port = parent[port] = parent[parent[port]];
    return port;
  }
};

}  // namespace rehearse
