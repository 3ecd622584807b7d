#include "workloads/planner/pair_order.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace rehearse {

namespace {

constexpr std::array<PassPart, 4> kForward = {PassPart::kForwardAttention,
                                              PassPart::kForwardDispatch, PassPart::kForwardExperts,
                                              PassPart::kForwardCombine};
constexpr std::array<PassPart, 4> kBackward = {
    PassPart::kBackwardCombine, PassPart::kBackwardExperts, PassPart::kBackwardDispatch,
    PassPart::kBackwardAttention};

[[noreturn]] void Fail(const Place& place, const std::string& text) { throw Error(place, text); }

// The parts of one pass go round in the order in which a layer has them.
void CheckPass(const PairOrder& order, const std::array<PassPart, 4>& needed, const Place& place) {
  PairOrder own;
  std::copy_if(order.begin(), order.end(), std::back_inserter(own), [&](PassPart part) {
    return std::find(needed.begin(), needed.end(), part) != needed.end();
  });
  for (size_t i = 0; i < own.size(); ++i) {
    const auto at = std::find(needed.begin(), needed.end(), own[i]);
    const PassPart expected = at + 1 == needed.end() ? needed.front() : *(at + 1);
    const PassPart found = own[(i + 1) % own.size()];
    if (found == expected) continue;
    Fail(place, fmt::format("found {} next after {}, which a chunk cannot have; expected {}",
                            Name(found), Name(own[i]), Name(expected)));
  }
}

}  // namespace

const char* Name(PassPart part) {
  constexpr std::array<const char*, kPassParts> kNames = {
      "F.attention", "F.dispatch", "F.experts",   "F.combine", "I.combine",
      "I.experts",   "I.dispatch", "I.attention", "W.experts", "W.attention"};
  return kNames[static_cast<size_t>(part)];
}

const std::vector<PairOrderFacts>& PairOrders() {
  static const std::vector<PairOrderFacts> orders = {
      {"dualpipe",
       "all-to-alls in the order dispatch, its gradients, combine, its gradients; weights apart",
       "DeepSeek-V3 2024, arXiv 2412.19437, Fig. 4",
       {PassPart::kForwardDispatch, PassPart::kBackwardExperts, PassPart::kBackwardDispatch,
        PassPart::kExpertWeights, PassPart::kForwardExperts, PassPart::kForwardCombine,
        PassPart::kBackwardAttention, PassPart::kBackwardCombine, PassPart::kAttentionWeights,
        PassPart::kForwardAttention}},
      {"megatron-core",
       "as Megatron-LM with --overlap-moe-expert-parallel-comm and --delay-wgrad-compute",
       "NVIDIA/Megatron-LM, megatron/core/models/common/model_chunk_schedule_plan.py",
       {PassPart::kBackwardCombine, PassPart::kForwardAttention, PassPart::kForwardDispatch,
        PassPart::kBackwardExperts, PassPart::kBackwardDispatch, PassPart::kExpertWeights,
        PassPart::kForwardExperts, PassPart::kForwardCombine, PassPart::kBackwardAttention,
        PassPart::kAttentionWeights}},
      {"megatron-core-beside",
       "the same without --delay-wgrad-compute: weights' gradients beside those of inputs",
       "NVIDIA/Megatron-LM, megatron/core/models/common/model_chunk_schedule_plan.py",
       {PassPart::kBackwardCombine, PassPart::kForwardAttention, PassPart::kForwardDispatch,
        PassPart::kBackwardExperts, PassPart::kBackwardDispatch, PassPart::kForwardExperts,
        PassPart::kForwardCombine, PassPart::kBackwardAttention}},
  };
  return orders;
}

void CheckPairOrder(const PairOrder& order, const Place& place) {
  for (size_t i = 0; i < order.size(); ++i) {
    const auto again =
        std::find(order.begin() + static_cast<ptrdiff_t>(i) + 1, order.end(), order[i]);
    if (again != order.end())
      Fail(place, fmt::format("found {} twice, expected once", Name(order[i])));
  }
  const auto has = [&](PassPart part) {
    return std::find(order.begin(), order.end(), part) != order.end();
  };
  for (const auto& needed : {kForward, kBackward}) {
    for (const PassPart part : needed)
      if (!has(part)) Fail(place, fmt::format("found no {}, expected one", Name(part)));
  }
  if (has(PassPart::kExpertWeights) != has(PassPart::kAttentionWeights))
    Fail(place, "found one of W.experts and W.attention, expected both or neither");
  CheckPass(order, kForward, place);
  CheckPass(order, kBackward, place);
}

}  // namespace rehearse
