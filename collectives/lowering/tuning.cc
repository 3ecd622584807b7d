#include "collectives/lowering/tuning.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "collectives/lowering/plan_load.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr const char* kAuto = "auto";
constexpr const char* kBareLinks = "none";

// Bandwidth of one NVLink each way, which is what a ring of NCCL's search takes, and the most rings
// that it makes.
BytesPerSecond Lane(NcclGeneration generation) {
  return BytesPerSecond(generation == NcclGeneration::kBlackwell ? 50e9 : 25e9);
}
constexpr uint32_t kMostGraphChannels = 16;

std::optional<NcclAlgorithm> NcclNameOf(const Algorithm& row) {
  for (const NcclAlgorithm algorithm : kNcclAlgorithms) {
    if (row.nccl_name == std::string_view(Name(algorithm))) return algorithm;
  }
  return std::nullopt;
}

// What the group's routes pass.
struct Passed {
  bool has_inside = false;  // some machine has several members
  bool is_nvlink = true;    // inside: nothing else
  bool is_nvswitch = true;  // inside: always a switch of it
  bool is_host = false;     // across: a socket or its memory
  std::set<uint32_t> nics;  // across: first link of the network, of the first machine
};

class Surveyor {
 public:
  Surveyor(const Cluster& cluster, const std::vector<uint32_t>& ranks)
      : cluster_(cluster), first_node_(cluster.NodeIndexOf(ranks.front())) {}

  void Look(const Channel& channel, NcclGroup& group) {
    for (size_t i = 0; i < channel.edges.size(); ++i) {
      const Route& route = *channel.edges[i];
      if (route.crosses_nodes) {
        group.across_route = std::max(group.across_route, route.latency);
        LookAcross(route, cluster_.NodeIndexOf(channel.ranks[i]) == first_node_);
      } else {
        group.inside_route = std::max(group.inside_route, route.latency);
        LookInside(route);
      }
    }
  }

  const Passed& passed() const { return passed_; }

 private:
  VertexKind EndOf(uint32_t link) const { return cluster_.VertexAt(cluster_.TargetOf(link)).kind; }

  void LookInside(const Route& route) {
    passed_.has_inside = true;
    bool through_switch = false;
    for (const uint32_t link : route.links) {
      passed_.is_nvlink = passed_.is_nvlink && cluster_.Link(link).kind == LinkKind::kNvLink;
      through_switch = through_switch || EndOf(link) == VertexKind::kNvSwitch;
    }
    passed_.is_nvswitch = passed_.is_nvswitch && through_switch;
  }

  void LookAcross(const Route& route, bool from_first) {
    bool on_network = false;
    for (const uint32_t link : route.links) {
      const LinkKind kind = cluster_.Link(link).kind;
      passed_.is_host = passed_.is_host || kind == LinkKind::kMemory || kind == LinkKind::kSocket ||
                        EndOf(link) == VertexKind::kSocket;
      if (kind == LinkKind::kNetwork && !on_network && from_first) passed_.nics.insert(link);
      on_network = on_network || kind == LinkKind::kNetwork;
    }
  }

  const Cluster& cluster_;
  const uint32_t first_node_;
  Passed passed_;
};

// The members of the machine of the group's first member.
std::vector<uint32_t> OfFirstNode(const Cluster& cluster, const std::vector<uint32_t>& ranks) {
  std::vector<uint32_t> members;
  for (const uint32_t rank : ranks) {
    if (cluster.NodeIndexOf(rank) == cluster.NodeIndexOf(ranks.front())) members.push_back(rank);
  }
  return members;
}

// How the group's members are spread over machines.
struct Spread {
  uint32_t nodes = 0;
  bool is_even = true;  // as many in each
};
Spread SpreadOf(const Cluster& cluster, const std::vector<uint32_t>& ranks) {
  std::map<uint32_t, uint32_t> members;  // by machine
  for (const uint32_t rank : ranks) ++members[cluster.NodeIndexOf(rank)];
  Spread spread;
  spread.nodes = static_cast<uint32_t>(members.size());
  for (const auto& [node, count] : members)
    spread.is_even = spread.is_even && count == members.begin()->second;
  return spread;
}

// Of the group's least device; 0 if one is not NVIDIA's.
uint32_t LeastCapability(const Cluster& cluster, const std::vector<uint32_t>& ranks) {
  uint32_t least = cluster.DeviceOf(ranks.front()).compute_capability;
  for (const uint32_t rank : ranks)
    least = std::min(least, cluster.DeviceOf(rank).compute_capability);
  return least;
}

// NCCL trusts the order of LL128's stores on these.
bool OrdersStores(uint32_t compute_capability) {
  return compute_capability == 70 || compute_capability == 80 || compute_capability >= 90;
}

std::optional<NcclGroup> Survey(Router& router, ChannelFinder& finder,
                                const std::vector<uint32_t>& ranks) {
  const Cluster& cluster = router.cluster();
  const uint32_t capability = LeastCapability(cluster, ranks);
  const std::optional<NcclGeneration> generation = GenerationOf(capability);
  if (!generation) return std::nullopt;

  NcclGroup group;
  group.generation = *generation;
  group.ranks = static_cast<uint32_t>(ranks.size());
  const Spread spread = SpreadOf(cluster, ranks);
  group.nodes = spread.nodes;
  group.step_overhead = cluster.step_overhead();
  const std::vector<Channel> channels = finder.Find(ranks);
  group.rings = TotalRate(cluster, channels);
  Surveyor surveyor(cluster, ranks);
  for (const Channel& channel : channels) surveyor.Look(channel, group);
  const Passed& passed = surveyor.passed();
  group.inside = passed.is_nvlink ? NcclHop::kNvLink : NcclHop::kPcie;
  group.has_ll128 = passed.is_nvlink && !passed.is_host && OrdersStores(capability);
  group.has_nvls = passed.has_inside && passed.is_nvswitch && spread.is_even &&
                   NcclNvlsEfficiency(*generation) > 0;

  if (group.nodes == 1) {
    group.trees = group.rings;
    group.inside_rings = group.rings;
    // Rings are as many as the NVLinks that leave a member, whatever share of them ours reach.
    const ClusterLink& link = cluster.Link(channels.front().edges.front()->links.front());
    const double lanes = group.rings / link.efficiency / Lane(*generation);
    group.graph_channels = passed.is_nvlink ? std::clamp(static_cast<uint32_t>(std::lround(lanes)),
                                                         1u, kMostGraphChannels)
                                            : 1;
  } else {
    // With two machines each is the root of one of the two trees and a leaf of the other, so that
    // it sends half of what others do.
    group.trees = (group.nodes == 2 ? 2 : 1) * group.rings;
    const std::vector<uint32_t> members = OfFirstNode(cluster, ranks);
    if (members.size() > 1) {
      group.inside_rings = TotalRate(cluster, finder.Find(members));
      group.trees = std::min(group.trees, group.inside_rings);
    }
    group.graph_channels =
        std::clamp(static_cast<uint32_t>(passed.nics.size()), 1u, kMostGraphChannels);
  }
  return group;
}

const Algorithm& FirstThatDoes(CollectiveKind kind) {
  for (const Algorithm& row : Algorithms()) {
    if (row.kinds.Has(kind)) return row;
  }
  throw Error(fmt::format("there is no algorithm for {}", Name(kind)));
}

}  // namespace

const std::optional<NcclGroup>& Tuner::GroupOf(const std::vector<uint32_t>& ranks) {
  const auto it = groups_.find(ranks);
  if (it != groups_.end()) return it->second;
  return groups_.emplace(ranks, Survey(router_, finder_, ranks)).first->second;
}

std::optional<NcclCost> Tuner::Cheapest(const ChoiceQuestion& question,
                                        const NcclGroup& group) const {
  const Collective& collective = question.collective;
  std::optional<NcclCost> best;
  for (const NcclCost& cost : AllCosts(group, collective.kind, collective.bytes)) {
    if (collective.algorithm != kAuto &&
        NcclNameOf(FindAlgorithm(collective.algorithm)) != cost.algorithm)
      continue;
    if (collective.protocol != kAuto && ParseProtocol(collective.protocol) != cost.protocol)
      continue;
    if (!best || cost.Time(collective.bytes) < best->Time(collective.bytes)) best = cost;
  }
  return best;
}

BytesPerSecond Tuner::BareRate(const ChoiceQuestion& question, const NcclGroup& group,
                               NcclAlgorithm algorithm, uint32_t channels) {
  const Collective& collective = question.collective;
  const auto key =
      std::make_tuple(question.ranks, collective.kind, collective.root, algorithm, channels);
  const auto [it, is_new] = bare_rates_.emplace(key, BytesPerSecond(0));
  if (!is_new) return it->second;
  const Cluster& cluster = router_.cluster();
  if (algorithm == NcclAlgorithm::kRing) {
    const NcclCost all = *CostOf(group, collective.kind, Bytes(1), algorithm, Protocol::kSimple);
    it->second =
        TotalRate(cluster, finder_.Find(question.ranks, channels)) * (all.bandwidth / group.rings);
  } else {
    Choice bare;
    bare.algorithm = &FindAlgorithm(Name(algorithm));
    bare.channels = channels;
    const GroupPlan plan =
        ArrangePlan(bare, collective.kind, collective.root, question.ranks, router_, finder_);
    const BindingLink binding = BindingLinkOf(plan, router_);
    it->second = cluster.Link(binding.link).Capacity() / binding.bytes;
  }
  return it->second;
}

double Tuner::ShareOf(const ChoiceQuestion& question, const NcclGroup& group,
                      const NcclCost& cost) {
  BytesPerSecond wanted = cost.bandwidth;
  const uint32_t all = 2 * group.graph_channels;
  if (question.channels > 0 && question.channels < all) {
    const double left = static_cast<double>(question.channels) / all;
    wanted = std::min(wanted, left * BareRate(question, group, cost.algorithm, 0));
  }
  return std::min(1.0, wanted / BareRate(question, group, cost.algorithm, question.channels));
}

Seconds LaunchTime(const Cluster& cluster, uint32_t channels) {
  return cluster.collective_overhead() + channels * cluster.channel_overhead();
}

Choice Tuner::Choose(const ChoiceQuestion& question) {
  Choice choice = WithoutLaunch(question);
  if (question.channels > 0)
    choice.nccl_channels = std::min(choice.nccl_channels, question.channels);
  choice.start = std::max(LaunchTime(router_.cluster(), choice.nccl_channels), choice.latency);
  return choice;
}

Choice Tuner::WithoutLaunch(const ChoiceQuestion& question) {
  const Collective& collective = question.collective;
  const bool any_algorithm = collective.algorithm == kAuto;
  const bool any_protocol = collective.protocol == kAuto;
  Choice choice;
  choice.channels = question.channels;
  choice.step_overhead = router_.cluster().step_overhead();
  if (!any_algorithm) {
    choice.algorithm = &FindAlgorithm(collective.algorithm);
    CheckKind(*choice.algorithm, collective.kind);
  }
  if (collective.protocol != kBareLinks) {
    const std::optional<NcclGroup>& group = GroupOf(question.ranks);
    const std::optional<NcclAlgorithm> pinned =
        choice.algorithm ? NcclNameOf(*choice.algorithm) : std::nullopt;
    const bool is_nvls = pinned == NcclAlgorithm::kNvls || pinned == NcclAlgorithm::kNvlsTree;
    if (group && is_nvls && NcclNvlsEfficiency(group->generation) == 0) {
      throw Error(
          fmt::format("algorithm \"{}\" needs NVSwitches that add, which Hopper was the first to "
                      "have; expected another, or \"auto\"",
                      choice.algorithm->name));
    }
    const std::optional<NcclCost> cost = group ? Cheapest(question, *group) : std::nullopt;
    if (cost) {
      choice.algorithm = &FindAlgorithm(Name(cost->algorithm));
      choice.protocol = cost->protocol;
      choice.nccl_channels = ChannelsFor(*group, *cost, collective.bytes);
      choice.latency = cost->latency;
      choice.steps_wait = false;
      choice.bandwidth_share = ShareOf(question, *group, *cost);
      return choice;
    }
    if (!any_protocol) {
      throw Error(fmt::format(
          "protocol \"{}\" is not to be had for {} with algorithm \"{}\"{}; expected \"none\"",
          collective.protocol, Name(collective.kind), collective.algorithm,
          group ? " in this group" : " on devices that are not NVIDIA's"));
    }
    if (group && IsGroupedSends(collective.kind)) choice.nccl_channels = PeerChannels(*group);
  }
  if (any_algorithm) choice.algorithm = &FirstThatDoes(collective.kind);
  return choice;
}

const char* Name(const std::optional<Protocol>& protocol) {
  return protocol ? Name(*protocol) : kBareLinks;
}

}  // namespace rehearse
