// From the steps of a part to what travels over links.
//
// A *message* is what one position sends to another in one step, or in each of several steps in a row. A
// *round* is all messages that begin with the same step; they are over before the next round begins. On
// symmetric machines all its messages move at one pace, so that a round is one coupled flow: every message
// takes its links at the flow's rate, as often as its bytes are a multiple of the flow's. (All-to-alls whose
// sizes differ have a flow for each size.)
//
// A *pipeline* (Algorithm::pipelined) cuts the part's bytes into m pieces that follow each other through
// rounds, its hops, all of them under way at once. It is one coupled flow of all hops' messages. With α_h and
// X_h the latency and the time of all bytes on hop h by itself, α the largest α_h, X the time of all hops at once,
//   T = Σ_h (α_h + X_h/m) + (m-1)·(α + X/m),
// the least for m = sqrt((Σ_h X_h - X)/α), rounded, from 1 to kMostPieces.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/tuning.h"
#include "sim/program.h"
#include "topology/router.h"

namespace rehearse {

inline constexpr uint32_t kMostPieces = 256;

struct PartMessage {
  uint32_t step = 0;  // the first; in a pipeline, the hop
  uint32_t steps = 1;
  uint32_t from = 0;  // positions, p and above: switches
  uint32_t to = 0;
  double share = 0;  // of the collective's bytes, each step; in a pipeline, all pieces together
};

// The links of a message, what its step waits for.
struct Way {
  std::span<const uint32_t> links;
  Seconds latency;  // of the links and of the step
};

struct RoundFlow {
  uint32_t round = 0;  // position among the part's rounds
  uint32_t steps = 1;
  double share = 0;  // of the collective's bytes, each step, at multiplicity 1
  Seconds latency;   // of a step: the longest of its messages
  std::vector<LinkUse> uses;
};

// A pipeline, seen from its pieces.
struct Pipeline {
  Seconds latency;         // α
  Seconds hop_latencies;   // Σ α_h
  double seconds = 0;      // X for one byte of the collective
  double hop_seconds = 0;  // Σ X_h, likewise
  std::vector<Pace> hops;  // rate: of one message

  // What it waits in all, besides moving its bytes at the rate of all hops at once.
  Seconds Latency(Bytes bytes, uint32_t pieces) const;
  uint32_t BestPieces(Bytes bytes) const;
};

// How one group does one collective.
struct Plan {
  Choice choice;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<Part> parts;
  std::vector<uint32_t> ranks;      // of the group, by member
  std::vector<double> pair_shares;  // of the bytes, by [sender][receiver]; empty: equal

  bool IsPipeline() const { return choice.algorithm->pipelined.Has(kind); }
};

// Sorted by sender, then step.
std::vector<PartMessage> MessagesOfPart(const Plan& plan, size_t part);

Way WayOf(const Plan& plan, const Part& part, uint32_t from, uint32_t to, Router& router);
// What a step over a way of this latency waits for.
Seconds StepLatency(const Choice& choice, Seconds way);

// In order of the rounds; in a pipeline one flow with all messages.
std::vector<RoundFlow> RoundsOfPart(const Plan& plan, size_t part, Router& router);

// The pace of every round of every part, if the parts run side by side on an idle machine; of pipelines, of all hops at
// once. CHECKs equal sizes.
std::vector<std::vector<Pace>> IdlePaces(const std::vector<std::vector<RoundFlow>>& rounds,
                                         const Cluster& cluster);

// The hops of a part that is a pipeline; `all` is its pace with all hops at once, in the company of the other parts.
Pipeline PipelineOf(const Plan& plan, size_t part, const RoundFlow& all, const Pace& pace,
                    Router& router);

// The time of a part's rounds where sizes differ: each as long as its busiest link needs.
Seconds UnevenTime(const std::vector<RoundFlow>& rounds, Bytes bytes, const Cluster& cluster);

}  // namespace rehearse
