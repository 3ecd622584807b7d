// What each communication op was waiting for.
//
// A communication op begins when the last member of its rendezvous (the group of a collective, the
// two ends of a send) is ready, and that member was ready when its own last predecessor had ended.
// That predecessor released the op: for the member that was ready last it is one of its own ops,
// for all others an op of another rank. Traces draw an arrow from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct OpOfRank {
  uint32_t rank = 0;
  uint32_t op = 0;  // position

  friend auto operator<=>(const OpOfRank&, const OpOfRank&) = default;
};

// Works out only what it is asked for, so that a few ranks of many cost little. Takes folded
// timelines too. The schedule must be valid (sim/schedule/schedule_check.h). Refers to both; not
// thread-safe.
class Releases {
 public:
  Releases(const Schedule& schedule, const Timeline& timeline);

  // What released the op; nothing for compute ops, for ops that nothing came before, for ops on
  // communicators of one rank, and for ops without a span.
  std::optional<OpOfRank> Of(OpOfRank op);

 private:
  static constexpr uint32_t kEverybody = 0xffffffffu;

  // Which rendezvous on a communicator it is, as far as a role knows: any, or one of a direction
  // with that peer.
  struct Channel {
    CommunicatorId communicator;
    uint32_t peer = kEverybody;
    bool sends = false;

    friend auto operator<=>(const Channel&, const Channel&) = default;
  };
  // What is the same for all ranks of a role, by position.
  struct RoleFacts {
    std::vector<uint32_t> ordinal;                        // on its channel
    std::vector<uint32_t> previous_on_stream;             // or kNoOp
    std::map<Channel, std::vector<uint32_t>> of_channel;  // positions, by ordinal
  };
  static constexpr uint32_t kNoOp = 0xffffffffu;

  static Channel ChannelOf(const Work& work);
  static RoleFacts FactsOf(const Role& role);
  const RoleFacts& FactsOfRank(uint32_t rank) const;
  const Span* SpanOf(OpOfRank op) const;
  std::optional<OpOfRank> LastReady(OpOfRank op, const Channel& channel);
  const std::vector<uint32_t>& MembersOf(CommunicatorId communicator, uint32_t group);
  std::optional<OpOfRank> LastPredecessor(OpOfRank op) const;

  const Schedule& schedule_;
  const Timeline& timeline_;
  std::vector<RoleFacts> facts_;  // by role
  // The first of the members that have the same spans, by communicator and group.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> members_;
  // For collectives that were asked about: communicator, group, ordinal.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::optional<OpOfRank>> last_ready_;
};

}  // namespace rehearse
