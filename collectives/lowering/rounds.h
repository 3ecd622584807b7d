// From the steps of a part to what travels over links.
//
// A *message* is what one position sends to another in one step, or in each of several steps in a
// row. A *round* is all messages that begin with the same step; they are over before the next round
// begins. On symmetric machines all its messages move at one pace, so a round is one coupled flow:
// every message takes its links at the flow's rate, times the multiple that its bytes are of the
// flow's. All-to-alls whose sizes differ have a flow for each size. Pipelines have all their
// rounds, called hops, under way at once: one coupled flow of all
// (collectives/lowering/pipeline.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "collectives/lowering/choice.h"
#include "collectives/lowering/pipeline.h"
#include "sim/engine/program.h"
#include "topology/fabrics/router.h"

namespace rehearse {

struct PartMessage {
  uint32_t step = 0;  // the first; in a pipeline, the hop
  uint32_t steps = 1;
  uint32_t from = 0;  // positions, p and above: switches
  uint32_t to = 0;
  double share = 0;  // of the collective's bytes, each step; in a pipeline, all pieces together
};

// The links of a message, and what its step waits for.
struct MessageWay {
  const Route* route = nullptr;  // between ranks; else `links` lead to a switch or from it
  std::span<const uint32_t> links;
  std::span<const uint32_t> detour;  // when links fail
  bool may_fail = false;
  Seconds latency;    // of the links and of the step
  uint32_t ways = 1;  // equal parts that it is cut into (Router::ways)
};

// visit(link, how many of the parts cross it).
template <typename Visit>
void ForEachCrossing(const MessageWay& way, const Visit& visit) {
  if (way.route != nullptr) {
    ForEachCrossing(*way.route, way.ways, visit);
  } else {
    for (const uint32_t link : way.links) visit(link, way.ways);
  }
}

struct RoundFlow {
  uint32_t round = 0;  // position among the part's rounds
  uint32_t steps = 1;
  double share =
      0;  // of the collective's bytes, each step, at multiplicity 1: one part of a message
  uint32_t ways = 1;  // parts of a message
  Seconds latency;    // of a step: the longest of its messages
  std::vector<LinkUse> uses;
  // Used when links fail; empty if none can, or some message has no other way.
  std::vector<LinkUse> detour;
};

// How one group does one collective.
struct GroupPlan {
  Choice choice;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<Part> parts;          // none for sites of rings (collectives/lowering/transfers.h)
  std::vector<uint32_t> ranks;      // of the group, by member
  std::vector<double> pair_shares;  // of the bytes, by [sender][receiver]; empty: equal
  double rank_share = 1;            // of the bytes (Collective), where the algorithm forwards
  double machine_share = 1;
  uint32_t ways = 1;   // equal parts that every message is cut into (Router::ways)
  uint64_t phase = 0;  // which other plans run at the same time (Router::Between)

  // Only those that are needed: see IdlePaces, PipelineOf, UnevenCost.
  std::vector<std::vector<Pace>> paces = {};
  std::vector<double> unit_shares = {};  // by part, for pipelines: of a message at multiplicity 1
  Pipeline pipeline = {};
  std::vector<StepCost> uneven = {};
  Seconds time;  // for formula and for pipelines: from the first step on, alone

  bool IsPipeline() const { return choice.algorithm->pipelined.Has(kind); }
  // Rounds may have flows of several sizes.
  bool IsUneven() const { return !pair_shares.empty() || choice.algorithm->forwards; }
};

// The closed form of the whole, from the first step on: the longest part. Needs `paces`, or
// `pipeline`, or `uneven`.
Seconds ClosedForm(const GroupPlan& plan, Bytes bytes);

// Sorted by sender, then step.
std::vector<PartMessage> MessagesOfPart(const GroupPlan& plan, size_t part);

// The same in the order of steps. Which position sends what to which does not depend on the group
// whose members are there, so that it is worked out once for thousands of groups. Not thread-safe.
class MessageMemory {
 public:
  std::shared_ptr<const std::vector<PartMessage>> Of(const GroupPlan& plan, size_t part);

 private:
  // All that MessagesOfPart() looks at: algorithm, kinds, extents, root, pieces, whether they are a
  // pipeline's, variant, direction, share.
  using Key = std::tuple<const Algorithm*, CollectiveKind, CollectiveKind, std::vector<uint32_t>,
                         uint32_t, uint32_t, bool, uint32_t, bool, double>;

  std::map<Key, std::shared_ptr<const std::vector<PartMessage>>> known_;
  size_t kept_ = 0;  // messages
};

// What the last of a part's steps waits for if each passes on to the next (Algorithm::forwards):
// every message waits that long. Otherwise nothing.
std::optional<Seconds> ForwardingLatency(const GroupPlan& plan, size_t part, Router& router);

MessageWay WayOf(const GroupPlan& plan, const Part& part, const PartMessage& message,
                 Router& router);
// A number for transfers that run at the same time: those of a communicator, with an algorithm (""
// for messages of pairs), in a step.
uint64_t PhaseOf(uint32_t communicator, std::string_view algorithm, uint32_t step);
// What a step over a way with this latency waits for.
Seconds StepLatency(const Choice& choice, Seconds way);

// In order of the rounds; in a pipeline one flow with all messages.
std::vector<RoundFlow> RoundsOfPart(const GroupPlan& plan, size_t part, Router& router,
                                    MessageMemory* memory = nullptr);

// The pace of every round of every part, if the parts run side by side on an idle machine; for
// pipelines, with all hops at once. CHECKs equal sizes.
std::vector<std::vector<Pace>> IdlePaces(const std::vector<std::vector<RoundFlow>>& rounds,
                                         const Cluster& cluster);

// For a plan that is a pipeline, with the rounds of its parts; it has hops if steps wait.
Pipeline PipelineOf(const GroupPlan& plan, const std::vector<std::vector<RoundFlow>>& rounds,
                    Router& router);

// Each round takes as long as its busiest link needs.
StepCost UnevenCost(const std::vector<RoundFlow>& rounds, const Cluster& cluster);

}  // namespace rehearse
