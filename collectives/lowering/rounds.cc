#include "collectives/lowering/rounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "collectives/lowering/link_counts.h"
#include "sim/base/error.h"
#include "sim/engine/max_min.h"
#include "topology/fabrics/flow_hash.h"

namespace rehearse {
namespace {

// One chunk's share of the collective's bytes; 0 for a barrier.
double ShareOfChunk(const GroupPlan& plan, const Part& part) {
  switch (plan.kind) {
    case CollectiveKind::kBarrier:
      return 0;
    case CollectiveKind::kSendReceive:
      return part.share;
    case CollectiveKind::kAllToAll:
      return part.share / part.input.ranks();
    default:
      return part.share / ChunkCount(*plan.choice.algorithm, part.input);
  }
}

double ShareOfLeg(const GroupPlan& plan, const Part& part, const Leg& leg, double share_of_chunk) {
  if (plan.pair_shares.empty()) return leg.read.count * share_of_chunk;
  double sum = 0;
  for (uint32_t k = 0; k < leg.read.count; ++k) {
    const Block block = BlockOf(*plan.choice.algorithm, part.input, leg.from, leg.read.At(0, k));
    sum +=
        plan.pair_shares[size_t{part.order[block.from]} * plan.ranks.size() + part.order[block.to]];
  }
  return sum * part.share;
}

// A share that all shares are a multiple of: the smallest one, if they are; else 0.
double UnitOf(std::span<const PartMessage> messages) {
  double unit = 0;
  for (const PartMessage& message : messages) {
    if (message.share > 0 && (unit == 0 || message.share < unit)) unit = message.share;
  }
  if (unit == 0) return 0;
  constexpr double kTolerance = 1e-9;
  for (const PartMessage& message : messages) {
    const double times = message.share / unit;
    if (times > 1e6 || std::abs(times - std::round(times)) > kTolerance * times) return 0;
  }
  return unit;
}

// Seconds for one byte of the collective: what the busiest link needs for the flows together.
class BusiestLink {
 public:
  explicit BusiestLink(const Cluster& cluster) : cluster_(cluster) {}

  void Add(const RoundFlow& flow) {
    for (const LinkUse& use : flow.uses) {
      loads_.emplace_back(use.link.index(), flow.share * use.multiplicity /
                                                cluster_.Link(use.link.index()).Capacity().value());
    }
  }
  double Most() {
    std::stable_sort(loads_.begin(), loads_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    double most = 0;
    double sum = 0;
    for (size_t i = 0; i < loads_.size(); ++i) {
      sum = i > 0 && loads_[i].first == loads_[i - 1].first ? sum + loads_[i].second
                                                            : loads_[i].second;
      most = std::max(most, sum);
    }
    return most;
  }

 private:
  const Cluster& cluster_;
  std::vector<std::pair<uint32_t, double>> loads_;  // link, seconds
};

// The flows of messages that move together: one, or one for each size.
std::vector<RoundFlow> FlowsOf(const GroupPlan& plan, const Part& part,
                               std::span<const PartMessage> messages, uint32_t round,
                               Router& router, LinkCounter& counter) {
  const double unit = plan.IsUneven() ? 0 : UnitOf(messages);
  const bool has_bytes = std::any_of(messages.begin(), messages.end(),
                                     [](const PartMessage& message) { return message.share > 0; });
  if (messages.empty()) return {};
  const bool together = unit > 0 || !has_bytes;
  std::map<double, std::vector<const PartMessage*>> by_size;
  std::vector<const PartMessage*>* all = together ? &by_size[unit] : nullptr;
  if (all != nullptr) all->reserve(messages.size());
  for (const PartMessage& message : messages) {
    if (!together && message.share == 0) continue;  // nothing is sent
    (all != nullptr ? *all : by_size[message.share]).push_back(&message);
  }
  std::vector<RoundFlow> flows;
  for (const auto& [share, members] : by_size) {
    RoundFlow flow;
    flow.round = round;
    flow.steps = messages.front().steps;
    flow.ways = router.ways();
    flow.share = share / flow.ways;
    bool fails = false;
    bool is_cut = false;
    const uint32_t p = part.input.ranks();
    std::vector<uint32_t> links;
    for (const PartMessage* message : members) {
      CHECK_EQ(message->steps, flow.steps);
      const uint32_t times =
          share > 0 ? static_cast<uint32_t>(std::lround(message->share / share)) : 1;
      links.clear();
      if (message->from < p && message->to < p &&
          router.AppendWay(plan.ranks[part.order[message->from]],
                           plan.ranks[part.order[message->to]], &links)) {
        Seconds latency;
        for (const uint32_t link : links) {
          latency += router.cluster().LatencyOf(link);
          counter.Add(link, times);
        }
        flow.latency = std::max(flow.latency, StepLatency(plan.choice, latency));
        continue;
      }
      const MessageWay way = WayOf(plan, part, *message, router);
      flow.latency = std::max(flow.latency, way.latency);
      ForEachCrossing(way,
                      [&](uint32_t link, uint32_t parts) { counter.Add(link, times * parts); });
      fails = fails || way.may_fail;
      is_cut = is_cut || (way.may_fail && way.detour.empty());
    }
    flow.uses = counter.Take();
    if (fails && !is_cut) {
      for (const PartMessage* message : members) {
        const uint32_t times =
            share > 0 ? static_cast<uint32_t>(std::lround(message->share / share)) : 1;
        const MessageWay way = WayOf(plan, part, *message, router);
        if (way.may_fail) {
          for (const uint32_t link : way.detour) counter.Add(link, times * way.ways);
        } else {
          ForEachCrossing(way,
                          [&](uint32_t link, uint32_t parts) { counter.Add(link, times * parts); });
        }
      }
      flow.detour = counter.Take();
    }
    flows.push_back(std::move(flow));
  }
  return flows;
}

// The messages by step, in the order of steps.
std::vector<PartMessage> ByStep(const std::vector<PartMessage>& messages) {
  std::vector<size_t> next;  // place of the next message of a step
  for (const PartMessage& message : messages) {
    if (message.step + size_t{2} > next.size()) next.resize(message.step + size_t{2}, 0);
    ++next[message.step + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<PartMessage> sorted(messages.size());
  for (const PartMessage& message : messages) sorted[next[message.step]++] = message;
  return sorted;
}

template <typename Visit>
void ForEachRound(const std::vector<PartMessage>& messages, const Visit& visit) {
  uint32_t round = 0;
  for (size_t begin = 0; begin < messages.size(); ++round) {
    size_t end = begin;
    while (end < messages.size() && messages[end].step == messages[begin].step) ++end;
    visit(round, std::span(messages).subspan(begin, end - begin));
    begin = end;
  }
}

// Which hops of a pipeline share a member: sets of hops, as bits.
class HopNeighbours {
 public:
  // Adds the messages of one part.
  void Add(const std::vector<PartMessage>& messages) {
    uint32_t ends = 0;
    uint32_t hops = 0;
    for (const PartMessage& message : messages)
      ends = std::max({ends, message.from + 1, message.to + 1});
    ForEachRound(messages, [&](uint32_t, std::span<const PartMessage>) { ++hops; });
    while (neighbours_.size() < hops) neighbours_.emplace_back();
    const uint32_t words = (hops + kBits - 1) / kBits;
    std::vector<uint64_t> of_end(size_t{ends} * words);
    ForEachRound(messages, [&](uint32_t hop, std::span<const PartMessage> own) {
      for (const PartMessage& message : own) {
        for (const uint32_t end : {message.from, message.to})
          of_end[size_t{end} * words + hop / kBits] |= Bit(hop);
      }
    });
    for (uint32_t hop = 0; hop < hops; ++hop) {
      std::vector<uint64_t>& own = neighbours_[hop];
      own.resize(std::max<size_t>(own.size(), words));
      for (uint32_t end = 0; end < ends; ++end) {
        const uint64_t* bits = &of_end[size_t{end} * words];
        if ((bits[hop / kBits] & Bit(hop)) == 0) continue;
        for (uint32_t word = 0; word < words; ++word) own[word] |= bits[word];
      }
    }
  }
  std::vector<uint32_t> Of(size_t hop) const {
    std::vector<uint32_t> neighbours;
    for (uint32_t word = 0; word < neighbours_[hop].size(); ++word) {
      for (uint64_t bits = neighbours_[hop][word]; bits != 0; bits &= bits - 1)
        neighbours.push_back(word * kBits + static_cast<uint32_t>(std::countr_zero(bits)));
    }
    return neighbours;
  }

 private:
  static constexpr uint32_t kBits = 64;
  static uint64_t Bit(uint32_t hop) { return uint64_t{1} << hop % kBits; }

  std::vector<std::vector<uint64_t>> neighbours_;  // by hop
};

}  // namespace

Seconds StepLatency(const Choice& choice, Seconds way) {
  return choice.steps_wait ? way + choice.step_overhead : Seconds(0);
}

uint64_t PhaseOf(uint32_t communicator, std::string_view algorithm, uint32_t step) {
  uint64_t phase = Mix(uint64_t{communicator} << 32 | step);
  for (const char c : algorithm) phase = Mix(phase ^ static_cast<unsigned char>(c));
  return phase;
}

MessageWay WayOf(const GroupPlan& plan, const Part& part, const PartMessage& message,
                 Router& router) {
  const uint32_t p = part.input.ranks();
  const uint32_t from = message.from;
  const uint32_t to = message.to;
  if (from < p && to < p) {
    const Route& route = router.Between(plan.ranks[part.order[from]], plan.ranks[part.order[to]],
                                        plan.phase + (plan.IsPipeline() ? 0 : message.step));
    return {&route,
            route.links,
            route.detour,
            router.MeetsFailure(route),
            StepLatency(plan.choice, route.latency),
            router.ways()};
  }
  const SwitchWay& way = to >= p ? part.to_switch[from] : part.from_switch[to];
  return {nullptr, way.links, {}, false, StepLatency(plan.choice, way.latency), router.ways()};
}

std::vector<PartMessage> MessagesOfPart(const GroupPlan& plan, size_t part_index) {
  Part part = plan.parts[part_index];
  if (plan.IsPipeline()) part.input.pieces = 1;
  const double share_of_chunk = ShareOfChunk(plan, part);
  std::vector<PartMessage> messages;
  const uint32_t everyone = part.input.ranks() + plan.choice.algorithm->switches(part.input);
  for (uint32_t position = 0; position < everyone; ++position) {
    for (const Leg& leg : StepsOf(*plan.choice.algorithm, part.input, position)) {
      if (leg.from != position || leg.to == position) continue;
      double share = ShareOfLeg(plan, part, leg, share_of_chunk);
      if (plan.choice.algorithm->forwards)
        share *= leg.step == 0 ? plan.machine_share : plan.rank_share;
      const bool same = !messages.empty() && messages.back().from == position &&
                        messages.back().to == leg.to && messages.back().step == leg.step;
      if (same) {
        messages.back().share += share;
      } else {
        messages.push_back({leg.step, leg.steps, position, leg.to, share});
      }
    }
  }
  return messages;
}

namespace {

// If everybody sends equally much to everybody at once, there is no need to list all pairs.
std::optional<RoundFlow> AllPairs(const GroupPlan& plan, const Part& part, Router& router,
                                  LinkCounter& counter) {
  const bool is_exchange =
      plan.kind == CollectiveKind::kAllToAll && plan.choice.algorithm->id == AlgorithmId::kDirect;
  if (!is_exchange || !plan.pair_shares.empty()) return std::nullopt;
  const std::optional<Seconds> longest = router.VisitAllPairs(
      plan.ranks, [&](uint32_t link, uint32_t times) { counter.Add(link, times); });
  if (!longest) return std::nullopt;
  RoundFlow flow;
  flow.ways = plan.ways;
  flow.share = ShareOfChunk(plan, part) / flow.ways;
  flow.latency = StepLatency(plan.choice, *longest);
  flow.uses = counter.Take();
  return flow;
}

}  // namespace

std::shared_ptr<const std::vector<PartMessage>> MessageMemory::Of(const GroupPlan& plan,
                                                                  size_t part) {
  const auto make = [&] {
    return std::make_shared<const std::vector<PartMessage>>(ByStep(MessagesOfPart(plan, part)));
  };
  // Otherwise they depend on more.
  if (!plan.pair_shares.empty() || plan.choice.algorithm->forwards) return make();
  const auto& [kind, extents, root, pieces, variant, reversed] = plan.parts[part].input;
  const Key key = {plan.choice.algorithm,
                   plan.kind,
                   kind,
                   extents,
                   root,
                   pieces,
                   plan.IsPipeline(),
                   variant,
                   reversed,
                   plan.parts[part].share};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  std::shared_ptr<const std::vector<PartMessage>> messages = make();
  constexpr size_t kMostKept = size_t{1} << 20;
  kept_ += messages->size();
  if (kept_ <= kMostKept) known_.emplace(key, messages);
  return messages;
}

std::vector<RoundFlow> RoundsOfPart(const GroupPlan& plan, size_t part, Router& router,
                                    MessageMemory* memory) {
  LinkCounter counter(router.cluster().way_count());
  if (auto flow = AllPairs(plan, plan.parts[part], router, counter)) return {std::move(*flow)};
  MessageMemory own;
  const auto kept = (memory == nullptr ? own : *memory).Of(plan, part);
  const std::vector<PartMessage>& messages = *kept;
  if (plan.IsPipeline()) {
    return FlowsOf(plan, plan.parts[part], messages, 0, router, counter);
  }
  const bool forwards = plan.choice.algorithm->forwards;
  std::vector<RoundFlow> flows;
  Seconds waited;
  ForEachRound(messages, [&](uint32_t round, std::span<const PartMessage> own) {
    Seconds longest;
    for (RoundFlow& flow :
         FlowsOf(plan, plan.parts[part], own, forwards ? 0 : round, router, counter)) {
      longest = std::max(longest, flow.latency);
      flows.push_back(std::move(flow));
    }
    waited += longest;
  });
  if (forwards) {
    for (RoundFlow& flow : flows) flow.latency = waited;
  }
  return flows;
}

std::optional<Seconds> ForwardingLatency(const GroupPlan& plan, size_t part, Router& router) {
  if (!plan.choice.algorithm->forwards) return std::nullopt;
  const std::vector<RoundFlow> flows = RoundsOfPart(plan, part, router);
  return flows.empty() ? Seconds(0) : flows.front().latency;
}

std::vector<std::vector<Pace>> IdlePaces(const std::vector<std::vector<RoundFlow>>& rounds,
                                         const Cluster& cluster) {
  size_t most = 0;
  for (const auto& part : rounds) most = std::max(most, part.size());
  std::vector<std::vector<Pace>> paces(rounds.size());
  for (size_t round = 0; round < most; ++round) {
    std::vector<uint32_t> links;
    for (const auto& part : rounds) {
      if (round >= part.size()) continue;
      for (const LinkUse& use : part[round].uses) links.push_back(use.link.index());
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    std::vector<double> capacities;
    for (const uint32_t link : links) capacities.push_back(cluster.Link(link).Capacity().value());
    std::vector<std::vector<LinkUse>> uses;
    std::vector<size_t> parts;
    for (size_t part = 0; part < rounds.size(); ++part) {
      if (round >= rounds[part].size()) continue;
      CHECK_EQ(rounds[part][round].round, round);
      parts.push_back(part);
      uses.emplace_back();
      for (const LinkUse& use : rounds[part][round].uses) {
        const auto place = std::lower_bound(links.begin(), links.end(), use.link.index());
        uses.back().push_back(
            {LinkId(static_cast<uint32_t>(place - links.begin())), use.multiplicity});
      }
    }
    MaxMinProblem problem;
    problem.capacities = capacities;
    for (const auto& use : uses) problem.flows.emplace_back(use);
    const std::vector<double> rates = SolveMaxMin(problem);
    for (size_t i = 0; i < parts.size(); ++i) {
      const RoundFlow& flow = rounds[parts[i]][round];
      paces[parts[i]].push_back({flow.latency, BytesPerSecond(rates[i] * flow.ways)});
    }
  }
  return paces;
}

Pipeline PipelineOf(const GroupPlan& plan, const std::vector<std::vector<RoundFlow>>& rounds,
                    Router& router) {
  if (!plan.choice.steps_wait) {
    BusiestLink busiest(router.cluster());
    for (const auto& part : rounds) {
      for (const RoundFlow& flow : part) busiest.Add(flow);
    }
    return Pipeline(busiest.Most());
  }
  std::vector<Pipeline::Hop> hops;
  HopNeighbours neighbours;
  LinkCounter counter(router.cluster().way_count());
  for (size_t part = 0; part < plan.parts.size(); ++part) {
    const std::vector<PartMessage> messages = ByStep(MessagesOfPart(plan, part));
    neighbours.Add(messages);
    ForEachRound(messages, [&](uint32_t round, std::span<const PartMessage> own) {
      if (round == hops.size()) hops.emplace_back();
      Pipeline::Hop& hop = hops[round];
      for (const RoundFlow& flow : FlowsOf(plan, plan.parts[part], own, round, router, counter)) {
        hop.latency = std::max(hop.latency, flow.latency);
        for (const LinkUse& use : flow.uses) {
          const uint32_t link = use.link.index();
          hop.loads.emplace_back(
              link, flow.share * use.multiplicity / router.cluster().Link(link).Capacity().value());
        }
      }
    });
  }
  for (size_t hop = 0; hop < hops.size(); ++hop) hops[hop].neighbours = neighbours.Of(hop);
  return Pipeline(std::move(hops));
}

StepCost UnevenCost(const std::vector<RoundFlow>& rounds, const Cluster& cluster) {
  StepCost cost;
  for (size_t begin = 0; begin < rounds.size();) {
    size_t end = begin;
    Seconds latency;
    BusiestLink busiest(cluster);
    while (end < rounds.size() && rounds[end].round == rounds[begin].round) {
      latency = std::max(latency, rounds[end].latency);
      busiest.Add(rounds[end]);
      ++end;
    }
    cost.latency += rounds[begin].steps * latency;
    cost.seconds += rounds[begin].steps * busiest.Most();
    begin = end;
  }
  return cost;
}

Seconds ClosedForm(const GroupPlan& plan, Bytes bytes) {
  const Bytes wire = bytes / plan.choice.bandwidth_share;
  Seconds longest;
  for (size_t part = 0; part < plan.parts.size(); ++part) {
    if (!plan.uneven.empty()) {
      const StepCost& cost = plan.uneven[part];
      longest = std::max(longest, cost.latency + Seconds(cost.seconds * wire.value()));
      continue;
    }
    if (plan.IsPipeline() && !plan.choice.steps_wait) {
      longest = plan.pipeline.Time(wire, 1);
      continue;
    }
    StepInput input = plan.parts[part].input;
    std::vector<Pace> paces;
    if (plan.IsPipeline()) {
      input.pieces = plan.pipeline.BestPieces(wire);
      for (const StepCost& step : plan.pipeline.Steps(input.pieces)) {
        paces.push_back({step.latency, BytesPerSecond(plan.unit_shares[part] / step.seconds)});
      }
    } else {
      paces = plan.paces[part];
    }
    longest = std::max(
        longest, plan.choice.algorithm->closed_form(input, plan.parts[part].share * wire, paces));
  }
  return longest;
}

}  // namespace rehearse
