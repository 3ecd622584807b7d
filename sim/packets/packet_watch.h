// Takes notes of a packet network while it plays (sim/packets/packet_history.h).
//
// A port that sends in turns, as credits come or pauses end, is no root: it is held up if it stood
// still for more than a tenth of the time for which its queue has not been empty.
//
// Each port has up to kIntervals intervals of equal length, which doubles whenever time outgrows
// them. What a flow loses at a port is the time for which the port stood still while something of
// the flow waited there; each moment counts once, however many packets waited. A root's port may
// lie in a bundle of equal cables: flows that may take it count as its own.
//
// Costs a few additions a packet and cable, and 4 KiB a port that sends. Not thread-safe.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/base/clock.h"
#include "sim/packets/packet_history.h"

namespace rehearse {

struct PacketWiring;

class PacketWatch {
 public:
  static constexpr uint32_t kIntervals = 128;
  static constexpr uint32_t kMostShown = 48;
  static constexpr uint32_t kMostTrees = 16;

  // The wiring must outlive it.
  explicit PacketWatch(const PacketWiring& wiring);

  // Told by who sends: a connection begins a message of one of the engine's flows.
  void Begins(uint32_t connection, uint32_t engine_flow, Time now);

  // Told by the network. Times are its picoseconds.
  void Queued(uint32_t port, uint32_t ingress, uint32_t packet, uint32_t size, uint32_t queued,
              int64_t now);
  void Left(uint32_t port, uint32_t ingress, uint32_t packet, uint32_t connection, uint32_t size,
            int64_t now);
  void Injected(uint32_t port, uint32_t connection, int64_t now);  // its first port sends it
  void Sent(uint32_t port, uint32_t size, int64_t now);
  void Marked(uint32_t port, int64_t now) { ++At(port, now).marked; }
  void Lost(uint32_t port, int64_t now) { ++At(port, now).lost; }
  // The port will have to stop: who is to blame for it, as things are.
  void Blame(uint32_t port, int64_t now);
  void Stops(uint32_t port, int64_t now);
  void Goes(uint32_t port, int64_t now);

  PacketHistory History(Time now) const;

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  struct Watched {
    std::vector<PortInterval> intervals;
    PortInterval all;
    bool is_stopped = false;
    int64_t stopped_at = 0;
    int64_t stopped_for = 0;  // before that
    uint32_t root = kNone;
    uint32_t depth = 0;
    uint64_t queued = 0;
    int64_t queue_since = 0;     // when something began to wait
    int64_t stopped_before = 0;  // StoppedBy then

    int64_t StoppedBy(int64_t now) const {
      return stopped_for + (is_stopped ? now - stopped_at : 0);
    }
  };
  struct Tree {
    int64_t stopped = 0;
    uint32_t depth = 0;
    std::unordered_map<uint32_t, int64_t> ports;
    std::unordered_map<uint64_t, HeldFlow> held;  // by port and flow of the engine
  };

  PortInterval& At(uint32_t port, int64_t now);
  bool IsHeldUp(uint32_t port, int64_t now) const;
  void AddStopped(Watched* port, int64_t from, int64_t to) const;
  void Halve();
  void Hold(uint32_t port, uint32_t connection, int64_t since, int64_t now);
  bool MayGoOver(uint32_t connection, uint32_t port) const;
  uint32_t& HeldBetween(uint32_t ingress, uint32_t egress);

  const PacketWiring& wiring_;
  int64_t interval_ = 1'000'000;  // 1 us
  std::vector<Watched> ports_;
  std::vector<int64_t> waits_since_;               // by packet: its port's StoppedBy when it came
  std::vector<int64_t> began_;                     // by connection: likewise of its first port
  std::vector<uint32_t> flow_of_;                  // by connection, of the engine
  std::unordered_map<uint64_t, int64_t> counted_;  // by port and flow: StoppedBy up to which
  std::unordered_map<uint32_t, Tree> trees_;       // by root
  // What ingresses hold behind egresses of the same vertex, in bytes.
  std::vector<uint32_t> held_;
  std::vector<uint64_t> held_begin_;               // by vertex
  std::vector<uint32_t> in_index_;                 // by port, among those that enter its vertex
  std::vector<uint32_t> out_index_;                // by port, among those that leave its vertex
  std::vector<std::vector<uint32_t>> out_;         // by vertex: ports that leave it
  std::vector<std::vector<uint32_t>> bundles_of_;  // by port
};

}  // namespace rehearse
