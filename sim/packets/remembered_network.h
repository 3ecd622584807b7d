// A packet network that does not play again what it has played before.
//
// An episode begins when a message finds the network at rest (no packet, pause, credit or timer is
// under way, and so everything is as in the beginning), and lasts until it is at rest again. What
// arrives when depends only on which messages began how long after the episode's first. Episodes
// are kept as a tree: a node for each message that began, after so many others had arrived; in it
// what arrived from then on. A new episode follows the tree while the same messages begin at the
// same times, and nothing is played. When it takes a turn of its own, or comes to where none has
// been, it is played from its beginning, and the tree grows. So the result is the same to the last
// bit, whether episodes are remembered or not.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/clock.h"
#include "sim/packets/packet_network.h"

namespace rehearse {

class RememberedNetwork {
 public:
  // Without `remembers` everything is played, steady states as well.
  RememberedNetwork(const PacketWiring& wiring, const PacketOptions& options, bool remembers)
      : network_(wiring, options, remembers), remembers_(remembers), nodes_(1) {}

  // As of PacketNetwork. To be watched, it must not remember.
  void Watch(PacketWatch* watch) { network_.Watch(watch); }
  void Begin(uint32_t flow, uint64_t bytes, Time now);
  bool Run(Time until);
  Time now() const { return now_; }
  std::span<const uint32_t> arrived() const { return arrived_; }
  uint32_t under_way() const { return under_way_; }
  const PacketWiring& wiring() const { return network_.wiring(); }

  // Of all that happened, played or not; and how many of the cables crossed were not played, since
  // they had been crossed so before, or in a steady state.
  PacketStats Stats() const;
  uint64_t SkippedHops() const;

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr size_t kMostNodes = size_t{1} << 21;  // some 300 MB

  struct Message {
    int64_t time = 0;  // since the episode began
    uint32_t flow = 0;
    uint64_t bytes = 0;

    friend bool operator==(const Message&, const Message&) = default;
  };
  struct Arrival {
    int64_t time = 0;
    uint32_t flow = 0;
  };
  struct Node {
    Message message;     // that leads here
    uint32_t after = 0;  // so many arrivals of the node before
    std::vector<Arrival> arrivals;
    int64_t known = 0;           // up to then nothing else arrives, unless a message begins
    int64_t rest = -1;           // when all was at rest; -1: not known
    std::vector<uint32_t> next;  // nodes
    PacketStats stats;           // of the episode, up to what is known here
  };

  bool IsFollowing() const { return !plays_; }
  bool IsAtRest(Time now);
  void PlayFrom(size_t messages, Time until);
  uint32_t Find(const Message& message) const;
  PacketStats OfEpisode() const;

  PacketNetwork network_;
  const bool remembers_;
  std::vector<Node> nodes_;  // the first is the beginning
  // Of the episode.
  std::vector<Message> messages_;
  uint32_t node_ = 0;
  uint32_t position_ = 0;  // arrivals of the node that have come
  Time start_;
  bool plays_ = false;
  bool keeps_ = true;  // false: the tree is full
  PacketStats at_start_;

  PacketStats skipped_;
  std::vector<uint32_t> arrived_;
  uint32_t under_way_ = 0;
  Time now_;
};

}  // namespace rehearse
