// What a network's ports did over time, and which of them made others stand still: for people.
//
// A port stands still while it was told to (PFC, a NIC's PCIe) or has no credits. To blame is the
// port behind its cable that holds most of what it has brought; if that one stands still itself,
// whatever is to blame for that. So the ports that stand still because of one form a tree, whose
// root sends at its rate and yet is asked for more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/clock.h"

namespace rehearse {

// One port in one interval.
struct PortInterval {
  uint32_t most_queued = 0;  // bytes
  uint32_t marked = 0;       // packets
  uint32_t lost = 0;         // packets, dropped or trimmed
  uint64_t sent = 0;         // bytes
  Time stopped;
};

struct PortHistory {
  std::string name;
  double bytes_per_second = 0;
  PortInterval all;  // over the whole time
  std::vector<PortInterval> intervals;
};

// What one of the engine's flows lost behind a root.
struct HeldFlow {
  uint32_t flow = 0;
  Time held;               // at the port where it waited the longest
  bool goes_there = true;  // false: a victim, whose own way does not lead over the root
};

struct CongestionTree {
  std::string root;            // port
  Time stopped;                // sum over the ports that stood still because of it
  uint32_t ports = 0;          // so many
  uint32_t depth = 0;          // cables between the root and the farthest of them
  std::vector<HeldFlow> held;  // the longest first
};

struct PacketHistory {
  Time interval;                   // of one PortInterval; all begin at 0
  uint32_t ports = 0;              // that sent anything; the list below has those with most to show
  std::vector<PortHistory> shown;  // most stopped or caused first
  std::vector<CongestionTree> trees;  // most stopped first
};

}  // namespace rehearse
