// What the engine plays as packets: which of its flows, by which ways, and what that came to.
//
// A flow has one connection for each of its ways, which carry equal parts of it; flows may share
// connections (the transfers of a communicator's collectives do), and then a connection sends one
// message after the other. A flow has arrived when its last part has.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/clock.h"
#include "sim/packets/packet_history.h"
#include "sim/packets/packet_network.h"
#include "sim/packets/packet_options.h"
#include "sim/packets/packet_watch.h"
#include "sim/packets/remembered_network.h"

namespace rehearse {

struct PacketProgram {
  static constexpr uint32_t kNone = 0xffffffffu;

  PacketWiring wiring;  // its flows are the connections
  PacketOptions options;
  bool remembers =
      true;  // does not play again what it has played (sim/packets/remembered_network.h)
  // Set s: connections [set_begin[s], set_begin[s + 1]), each with `parts` times a flow's bytes.
  std::vector<uint32_t> set_begin = {0};
  std::vector<uint32_t> parts;
  std::vector<uint32_t> set_of_flow;  // by the engine's flow; kNone: not as packets

  uint32_t sets() const { return static_cast<uint32_t>(parts.size()); }
};

// What happened, for people.
struct PacketReport {
  PacketStats stats;
  uint64_t messages = 0;
  uint64_t skipped_hops = 0;                     // of stats.hops, those that were not played again
  std::string most_queued_at;                    // port
  std::string longest_paused;                    // port; "" if none was
  std::shared_ptr<const PacketHistory> history;  // of one play that was watched

  void Add(const PacketReport& other);
};

class PacketPlay {
 public:
  // The program must outlive it. If it is watched, nothing is remembered.
  explicit PacketPlay(const PacketProgram& program, bool watches = false);

  bool Plays(uint32_t flow) const { return program_.set_of_flow[flow] != PacketProgram::kNone; }
  // More than zero bytes, from now on.
  void Begin(uint32_t flow, double bytes, Time now);
  // As PacketNetwork::Run, with flows of the engine.
  bool Run(Time until);
  Time now() const { return network_.now(); }
  std::span<const uint32_t> arrived() const { return arrived_; }
  bool IsUnderWay() const { return network_.under_way() > 0; }

  PacketReport Report() const;

 private:
  struct Message {
    uint32_t flow = 0;
    uint64_t bytes = 0;
  };

  void Send(uint32_t connection, Time now);

  const PacketProgram& program_;
  std::unique_ptr<PacketWatch> watch_;
  RememberedNetwork network_;
  std::vector<std::deque<Message>> queues_;  // by connection; the first is under way
  std::vector<uint32_t> parts_left_;         // by flow
  std::vector<uint32_t> arrived_;
  uint64_t messages_ = 0;
};

}  // namespace rehearse
