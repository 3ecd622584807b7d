#include "collectives/lowering/plan_load.h"

#include <map>

#include "sim/base/error.h"

namespace rehearse {

GroupPlan ArrangePlan(const Choice& choice, CollectiveKind kind, uint32_t root,
                      const std::vector<uint32_t>& ranks, Router& router, ChannelFinder& finder) {
  GroupPlan plan;
  plan.choice = choice;
  plan.kind = kind;
  plan.ranks = ranks;
  plan.parts = choice.algorithm->arrange({kind, root, ranks, choice.channels, router, finder});
  return plan;
}

BindingLink BindingLinkOf(const GroupPlan& plan, Router& router) {
  std::vector<std::vector<RoundFlow>> rounds;
  for (size_t part = 0; part < plan.parts.size(); ++part)
    rounds.push_back(RoundsOfPart(plan, part, router));
  return BindingLinkOf(plan, rounds, router.cluster());
}

BindingLink BindingLinkOf(const GroupPlan& plan, const std::vector<std::vector<RoundFlow>>& rounds,
                          const Cluster& cluster) {
  std::map<uint32_t, double> bytes;
  for (const auto& part : rounds) {
    for (const RoundFlow& flow : part) {
      for (const LinkUse& use : flow.uses)
        bytes[use.link.index()] += flow.share * flow.steps * use.multiplicity;
    }
  }
  CHECK(!bytes.empty());
  BindingLink binding;
  double longest = -1;
  constexpr double kTolerance = 1e-9;
  for (const auto& [link, load] : bytes) {
    const double seconds = load / cluster.Link(link).Capacity().value();
    if (seconds <= longest * (1 + kTolerance)) continue;
    longest = seconds;
    binding = {link, load / plan.choice.bandwidth_share};
  }
  return binding;
}

}  // namespace rehearse
