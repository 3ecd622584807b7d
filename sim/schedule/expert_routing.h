// Which experts the tokens of a step choose.
//
// The choices are made up, and the same whatever the layout: rows of a micro-batch come in runs of
// `period` tokens that choose alike, so that every rank whose tokens are whole runs sends as much
// to each expert as every other one. (Megatron-LM does so when measuring, with
// --moe-router-force-load-balancing.) The router's scores are the weights of the choices, and
// gradients flow through them.
//
// In a run the busiest expert of a group has `imbalance` times an equal share of the choices; the
// others follow 1/(1 + a·rank), in an order that the seed draws. A token's choices lie in
// `limited_groups` of `groups`, as many in each. An expert takes the first ceil(capacity · share)
// choices of a run, in the order of tokens, and drops those that come later; capacity 0 drops none.
//
// The order may be such that so many equal runs of experts, those of a rank each, have about as
// much to do: the busiest expert goes to the rank with the least so far that has room, then the
// next one (balanced packing, as EPLB does it, github.com/deepseek-ai/EPLB; without redundant
// experts).
//
// Choices are dealt out as McNaughton's rule schedules jobs: slots, expert by expert, go to one
// token after the other in a circle, so that no token has an expert twice. Pure functions without
// libm: the same bits on any machine.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Positions in the attributes of kernels that route (sim/schedule/kernel.h).
enum RoutingAttribute : uint8_t {
  kRoutingExperts,
  kRoutingPerToken,
  kRoutingGroups,
  kRoutingLimitedGroups,
  kRoutingCapacity,
  kRoutingImbalance,
  kRoutingSeed,
  kRoutingSigmoid,
  kRoutingAuxiliary,
  kRoutingAttributes,                        // how many there are
  kRoutingBalancedOver = kRoutingAttributes  // one more, if experts are placed on so many ranks
};

struct ExpertRouting {
  static constexpr int32_t kDropped = -1;

  uint32_t experts = 0;
  uint32_t per_token = 0;
  uint64_t period = 1;           // tokens in a run
  std::vector<int32_t> choices;  // `per_token` for each token of a run: experts, or kDropped
  std::vector<int32_t> asked;    // the same before any is dropped
  std::vector<uint64_t> loads;   // for each expert: how many choices of a run it takes

  uint64_t Kept() const;  // choices of a run
  bool IsEven() const;    // all experts take equally many
};

// CHECKs that experts, groups and choices fit (workloads/networks/model.cc refuses what does not).
ExpertRouting MakeRouting(const std::vector<double>& attributes);

// How many choices of this many tokens are taken; for whole runs.
uint64_t KeptRows(const ExpertRouting& routing, uint64_t tokens);

}  // namespace rehearse
