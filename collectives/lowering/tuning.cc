#include "collectives/lowering/tuning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collectives/algorithms/switch_tree.h"
#include "collectives/algorithms/torus_box.h"
#include "collectives/lowering/plan_load.h"
#include "collectives/nccl/nccl_search.h"
#include "collectives/nccl/pace.h"
#include "collectives/nccl/ring_steps.h"
#include "sim/base/error.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

std::optional<NcclAlgorithm> OfNccl(AlgorithmId id) {
  for (const NcclAlgorithm algorithm : kNcclAlgorithms) {
    if (IdOf(algorithm) == id) return algorithm;
  }
  return std::nullopt;
}

// What the group's routes pass through.
struct Passed {
  bool has_inside = false;  // some machine has several members
  bool is_nvlink = true;    // inside: nothing else
  bool is_xgmi = true;      // likewise
  bool is_nvswitch = true;  // inside: always through an NVSwitch
  bool is_host = false;     // across: a socket or its memory
  // Across machines, for the first of them: from where the network is entered, and by which cables.
  std::map<VertexId, std::set<uint32_t>> nics;
  Seconds inside_route;  // the slowest
  Seconds across_route;
};

class Surveyor {
 public:
  Surveyor(const Cluster& cluster, const std::vector<uint32_t>& ranks)
      : cluster_(cluster), first_node_(cluster.NodeIndexOf(ranks.front())) {}

  void Look(const Channel& channel) {
    for (size_t i = 0; i < channel.edges.size(); ++i) {
      const Route& route = *channel.edges[i];
      if (route.crosses_nodes) {
        passed_.across_route = std::max(passed_.across_route, route.latency);
        LookAcross(route, cluster_.NodeIndexOf(channel.ranks[i]) == first_node_);
      } else {
        passed_.inside_route = std::max(passed_.inside_route, route.latency);
        LookInside(route);
      }
    }
  }

  const Passed& passed() const { return passed_; }

 private:
  VertexKind EndOf(uint32_t link) const { return cluster_.KindOfVertex(cluster_.TargetOf(link)); }

  void LookInside(const Route& route) {
    passed_.has_inside = true;
    bool through_switch = false;
    for (const uint32_t link : route.links) {
      const LinkKind kind = cluster_.KindOf(link);
      passed_.is_nvlink = passed_.is_nvlink && kind == LinkKind::kNvLink;
      passed_.is_xgmi = passed_.is_xgmi && kind == LinkKind::kXgmi;
      through_switch = through_switch || EndOf(link) == VertexKind::kNvSwitch;
    }
    passed_.is_nvswitch = passed_.is_nvswitch && through_switch;
  }

  void LookAcross(const Route& route, bool from_first) {
    LookAlong(route.links, from_first);
    for (const std::vector<uint32_t>& other : route.others) LookAlong(other, from_first);
  }

  void LookAlong(const std::vector<uint32_t>& links, bool from_first) {
    bool on_network = false;
    for (const uint32_t link : links) {
      const LinkKind kind = cluster_.Link(link).kind;
      passed_.is_host = passed_.is_host || kind == LinkKind::kMemory || kind == LinkKind::kSocket ||
                        EndOf(link) == VertexKind::kSocket;
      if (kind == LinkKind::kNetwork && !on_network && from_first)
        passed_.nics[cluster_.SourceOf(link)].insert(link);
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
  bool is_even = true;  // equally many in each
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

// The least of the group's devices; 0 if one is not NVIDIA's.
uint32_t LeastCapability(const Cluster& cluster, const std::vector<uint32_t>& ranks) {
  uint32_t least = cluster.DeviceOf(ranks.front()).compute_capability;
  for (const uint32_t rank : ranks)
    least = std::min(least, cluster.DeviceOf(rank).compute_capability);
  return least;
}

// Whether NCCL trusts the order of LL128's stores on these.
bool OrdersStores(uint32_t compute_capability) {
  return compute_capability == 70 || compute_capability == 80 || compute_capability >= 90;
}

// AMD's architecture of all devices, or 0.
uint32_t CommonGfx(const Cluster& cluster, const std::vector<uint32_t>& ranks) {
  const uint32_t gfx = cluster.DeviceOf(ranks.front()).gfx;
  for (const uint32_t rank : ranks)
    if (cluster.DeviceOf(rank).gfx != gfx) return 0;
  return gfx;
}

// If all members of a machine meet on a plane of NVSwitches, NCCL searches by their NVLinks.
void SearchSwitch(const Cluster& cluster, const Channel& channel, NcclGroup* group) {
  const Route* inside = nullptr;
  for (const auto& edge : channel.edges)
    if (!edge->crosses_nodes) inside = &*edge;
  CHECK(inside != nullptr);
  const ClusterLink link = cluster.Link(inside->links.front());
  const auto nvlinks =
      static_cast<uint32_t>(std::lround(link.bandwidth / NvLinkBandwidth(group->generation)));
  const NvSwitchSearch found =
      SearchNvSwitch(group->generation, std::max(nvlinks, 1u), group->ranks / group->nodes);
  group->heads = found.heads;
  group->head = found.head;
  if (group->nodes > 1 || found.channels == 0) return;
  group->rings = found.rings;
  group->graph_channels = std::min(found.channels, kMostGraphChannels);
}

// Whether hosts are Graces, which NVLinks join to their GPUs.
bool HasGrace(const Cluster& cluster, uint32_t rank) {
  const VertexId device = cluster.devices()[rank];
  for (uint32_t link = 0; link < cluster.link_count(); ++link)
    if (cluster.SourceOf(link) == device && cluster.KindOf(link) == LinkKind::kNvLink &&
        cluster.KindOfVertex(cluster.TargetOf(link)) == VertexKind::kSocket)
      return true;
  return false;
}

NcclGroup SurveyForNccl(Router& router, ChannelFinder& finder, const std::vector<uint32_t>& ranks,
                        NcclGeneration generation, const NcclSettings& settings) {
  const Cluster& cluster = router.cluster();
  NcclGroup group;
  group.version = settings.version;
  group.generation = generation;
  group.ranks = static_cast<uint32_t>(ranks.size());
  const Spread spread = SpreadOf(cluster, ranks);
  group.nodes = spread.nodes;
  group.step_overhead = cluster.step_overhead();
  const std::vector<Channel> channels = finder.Find(ranks);
  group.reached = TotalRate(cluster, channels);
  group.rings = group.reached;
  Surveyor surveyor(cluster, ranks);
  for (const Channel& channel : channels) surveyor.Look(channel);
  const Passed& passed = surveyor.passed();
  group.inside_route = passed.inside_route;
  group.across_route = passed.across_route;
  group.inside = passed.is_nvlink ? NcclHop::kNvLink : NcclHop::kPcie;
  group.has_nvlinks = passed.has_inside && passed.is_nvlink;
  group.has_ll128 =
      passed.is_nvlink && !passed.is_host && OrdersStores(LeastCapability(cluster, ranks));
  const bool is_switched = passed.has_inside && passed.is_nvlink && passed.is_nvswitch;
  group.has_nvls = settings.nvls && is_switched && spread.is_even &&
                   NcclNvlsEfficiency(generation) > 0 &&
                   MeetAtSwitch(router, OfFirstNode(cluster, ranks), VertexKind::kNvSwitch);

  if (group.nodes == 1) {
    group.inside_reached = group.reached;
    // There are as many rings as NVLinks that leave a member, whatever share of them ours reach.
    const ClusterLink& link = cluster.Link(channels.front().edges.front()->links.front());
    const double lanes = group.reached / link.efficiency / NvLinkBandwidth(generation);
    group.graph_channels = passed.is_nvlink ? std::clamp(static_cast<uint32_t>(std::lround(lanes)),
                                                         1u, kMostGraphChannels)
                                            : 1;
  } else {
    const NetworkPlugin& plugin = cluster.network_plugin();
    group.plugin_told = plugin.told;
    group.plugin_latency = plugin.latency;
    group.plugin_eager = plugin.eager;
    group.has_ll = plugin.has_ll;
    group.has_ll128 = group.has_ll128 && plugin.has_ll128;
    const std::vector<uint32_t> members = OfFirstNode(cluster, ranks);
    if (members.size() > 1) group.inside_reached = TotalRate(cluster, finder.Find(members));
    group.nics = static_cast<uint32_t>(passed.nics.size());
    if (!passed.nics.empty())
      for (const uint32_t cable : passed.nics.begin()->second) {
        group.nic += cluster.Link(cable).bandwidth;
        group.nic_capacity += cluster.Link(cable).Capacity();
      }
    group.nic_channels = ChannelsOfANic(generation, group.nic, group.nics);
    group.graph_channels = std::clamp(group.nics * group.nic_channels, 1u, kMostGraphChannels);
  }
  if (group.has_nvls && group.nodes > 1 && group.version == NcclVersion::kRelease229)
    group.has_x86_hosts = !HasGrace(cluster, ranks.front());
  if (is_switched && spread.is_even) SearchSwitch(cluster, channels.front(), &group);
  group.trees = group.rings;
  if (group.nodes > 1) {
    // With two machines each is the root of one of the two trees and a leaf of the other, so it
    // sends half of what others do.
    group.trees = (group.nodes == 2 ? 2 : 1) * group.rings;
    if (group.inside_reached.value() > 0) group.trees = std::min(group.trees, group.inside_reached);
  }
  return group;
}

RcclGroup SurveyForRccl(Router& router, ChannelFinder& finder, const std::vector<uint32_t>& ranks,
                        RcclArchitecture architecture) {
  const Cluster& cluster = router.cluster();
  RcclGroup group;
  group.architecture = architecture;
  group.ranks = static_cast<uint32_t>(ranks.size());
  group.nodes = SpreadOf(cluster, ranks).nodes;
  group.step_overhead = cluster.step_overhead();
  const std::vector<Channel> channels = finder.Find(ranks);
  group.rings = TotalRate(cluster, channels);
  group.channels = kRcclChannelsOfRing;
  Surveyor surveyor(cluster, ranks);
  for (const Channel& channel : channels) surveyor.Look(channel);
  const Passed& passed = surveyor.passed();
  group.inside_route = passed.inside_route;
  group.across_route = passed.across_route;
  group.is_xgmi = passed.is_xgmi;
  if (group.nodes > 1) {
    group.plugin_told = cluster.network_plugin().told;
    group.plugin_latency = cluster.network_plugin().latency;
  } else {
    const ClusterLink link = cluster.Link(channels.front().edges.front()->links.front());
    group.ring_count =
        std::max(1u, static_cast<uint32_t>(std::lround(group.rings / link.Capacity())));
    group.channels = kRcclChannelsOfRing * group.ring_count;
  }
  return group;
}

LibraryGroup Survey(Router& router, ChannelFinder& finder, const std::vector<uint32_t>& ranks,
                    const NcclSettings& settings) {
  const Cluster& cluster = router.cluster();
  LibraryGroup group;
  if (const auto generation = GenerationOf(LeastCapability(cluster, ranks)))
    group.nccl = SurveyForNccl(router, finder, ranks, *generation, settings);
  else if (const auto architecture = RcclArchitectureOf(CommonGfx(cluster, ranks)))
    group.rccl = SurveyForRccl(router, finder, ranks, *architecture);
  return group;
}

const Algorithm& FirstThatDoes(CollectiveKind kind) {
  for (const Algorithm& row : Algorithms()) {
    if (row.kinds.Has(kind)) return row;
  }
  throw Error(fmt::format("there is no algorithm for {}", Name(kind)));
}

// Null if the ways are neither hashed nor balanced.
std::unique_ptr<Router> Sprayed(const Router& router) {
  const std::optional<RoutingRule>& rule = router.rule();
  const bool is_balanced = rule && rule->choice == RouteChoice::kFlowlet;
  if (!router.IsHashed() && !is_balanced) return nullptr;
  const Fabric* fabric = FabricOf(router.cluster());
  // What a fabric takes first spreads flows, or sends them the shortest way.
  const RouteChoice usual =
      fabric == nullptr ? RouteChoice::kSpray : ChoicesOf(*fabric).choices.front();
  return std::make_unique<Router>(router.cluster(),
                                  FabricRouting{usual, std::nullopt, std::nullopt});
}

NcclPace PaceOf(const NcclGroup& group, const ChoiceQuestion& question, const NcclCost& chosen) {
  const Collective& collective = question.collective;
  const bool is_capped = question.channels > 0 && chosen.algorithm == NcclAlgorithm::kRing;
  return NcclPaceOf(is_capped ? WithChannels(group, question.channels) : group, collective.kind,
                    collective.bytes, chosen);
}

// What may be asked for with this algorithm: `"ll", "simple", "auto" or "none"`.
std::string PossibleProtocols(const Collective& collective, const LibraryGroup& group) {
  std::vector<NcclCost> costs;
  if (group.nccl) costs = AllCosts(*group.nccl, collective.kind, collective.bytes);
  if (group.rccl) costs = AllCosts(*group.rccl, collective.kind, collective.bytes);
  std::set<Protocol> possible;
  for (const NcclCost& cost : costs)
    if (collective.algorithm == AlgorithmId::kAuto || collective.algorithm == IdOf(cost.algorithm))
      possible.insert(cost.protocol);
  std::string text;
  for (const Protocol protocol : possible) text += fmt::format("\"{}\", ", Name(protocol));
  if (!possible.empty()) text.replace(text.size() - 2, 2, ", \"auto\" or ");
  return text + "\"none\"";
}

}  // namespace

Tuner::Tuner(GroupMemory& memory)
    : sprayed_(Sprayed(memory.router())),
      own_memory_(sprayed_ ? std::make_unique<GroupMemory>(*sprayed_, memory.nccl()) : nullptr),
      memory_(own_memory_ ? *own_memory_ : memory) {}

Tuner::Tuner(Router& router, const NcclSettings& settings)
    : sprayed_(Sprayed(router)),
      own_memory_(std::make_unique<GroupMemory>(sprayed_ ? *sprayed_ : router, settings)),
      memory_(*own_memory_) {}

const LibraryGroup& Tuner::GroupOf(const std::vector<uint32_t>& ranks) {
  std::optional<LibraryGroup>& known = memory_.Of(memory_.ShapeOf(ranks)).library;
  if (!known) known = Survey(memory_.router(), memory_.finder(), ranks, memory_.nccl());
  return *known;
}

std::vector<NcclCost> Tuner::CostsOf(const std::vector<uint32_t>& ranks, CollectiveKind kind,
                                     Bytes bytes) {
  const LibraryGroup& group = GroupOf(ranks);
  if (group.nccl) return AllCosts(*group.nccl, kind, bytes);
  if (group.rccl) return AllCosts(*group.rccl, kind, bytes);
  return {};
}

std::string Tuner::LibraryOf(const std::vector<uint32_t>& ranks) {
  const LibraryGroup& group = GroupOf(ranks);
  if (group.nccl) return fmt::format("NCCL {}", Name(memory_.nccl().version));
  return group.rccl ? "RCCL" : "";
}

std::optional<NcclCost> Tuner::Cheapest(const ChoiceQuestion& question,
                                        const LibraryGroup& group) const {
  const Collective& collective = question.collective;
  const auto weigh = [&](const std::vector<NcclCost>& costs) {
    std::optional<NcclCost> best;
    for (const NcclCost& cost : costs) {
      if (collective.algorithm != AlgorithmId::kAuto &&
          collective.algorithm != IdOf(cost.algorithm))
        continue;
      if (collective.protocol != Protocol::kAuto && collective.protocol != cost.protocol) continue;
      if (!best || cost.Time(collective.bytes) < best->Time(collective.bytes)) best = cost;
    }
    return best;
  };
  if (group.nccl) return weigh(AllCosts(*group.nccl, collective.kind, collective.bytes));
  if (group.rccl) return weigh(AllCosts(*group.rccl, collective.kind, collective.bytes));
  return std::nullopt;
}

BytesPerSecond Tuner::BareRate(const ChoiceQuestion& question, NcclAlgorithm algorithm,
                               uint32_t channels, std::shared_ptr<GroupLayout>* layout) {
  const Collective& collective = question.collective;
  KnownShape& known = memory_.Of(memory_.ShapeOf(question.ranks));
  const auto key = std::make_tuple(collective.kind, collective.root, algorithm, channels);
  if (const auto rate = known.rates.find(key); rate != known.rates.end()) return rate->second;
  // Kept only once it is known: an algorithm that the group does not suit throws.
  const BytesPerSecond rate =
      algorithm == NcclAlgorithm::kRing && channels == 0 && known.library->nccl
          ? known.library->nccl->reached *
                RingRatio(collective.kind, static_cast<uint32_t>(question.ranks.size()))
          : FindBareRate(question, algorithm, channels, layout);
  known.rates.emplace(key, rate);
  return rate;
}

BytesPerSecond Tuner::FindBareRate(const ChoiceQuestion& question, NcclAlgorithm algorithm,
                                   uint32_t channels, std::shared_ptr<GroupLayout>* layout) {
  const Collective& collective = question.collective;
  Router& router = memory_.router();
  ChannelFinder& finder = memory_.finder();
  const Cluster& cluster = router.cluster();
  if (algorithm == NcclAlgorithm::kRing) {
    return TotalRate(cluster, finder.Find(question.ranks, channels)) *
           RingRatio(collective.kind, static_cast<uint32_t>(question.ranks.size()));
  }
  Choice bare;
  bare.algorithm = &FindAlgorithm(IdOf(algorithm));
  bare.channels = channels;
  GroupPlan plan =
      ArrangePlan(bare, collective.kind, collective.root, question.ranks, router, finder);
  std::vector<std::vector<RoundFlow>> rounds;
  for (size_t part = 0; part < plan.parts.size(); ++part)
    rounds.push_back(RoundsOfPart(plan, part, router));
  const BindingLink binding = BindingLinkOf(plan, rounds, cluster);
  if (layout != nullptr && !sprayed_) {
    for (auto& part : rounds) {
      for (RoundFlow& flow : part) flow.latency = Seconds(0);  // the library's holds all of it
    }
    *layout = std::make_shared<GroupLayout>();
    (*layout)->parts = std::move(plan.parts);
    (*layout)->rounds = std::move(rounds);
  }
  return cluster.Link(binding.link).Capacity() / binding.bytes;
}

double Tuner::ShareOf(const ChoiceQuestion& question, const LibraryGroup& group,
                      const NcclCost& cost, BytesPerSecond wanted,
                      std::shared_ptr<GroupLayout>* layout) {
  const uint32_t all =
      group.nccl ? NcclChannels(*group.nccl, cost.algorithm) : group.rccl->channels;
  if (question.channels > 0 && question.channels < all) {
    const bool is_in_switch =
        cost.algorithm == NcclAlgorithm::kNvls || cost.algorithm == NcclAlgorithm::kNvlsTree;
    double left = static_cast<double>(question.channels) / all;
    // How many channels there are depends on the links: what each moves does not.
    if (group.nccl && !is_in_switch)
      left = question.channels * NcclChannelRate(*group.nccl) / group.nccl->reached;
    wanted = std::min(wanted, left * BareRate(question, cost.algorithm, 0));
  }
  return std::min(1.0, wanted / BareRate(question, cost.algorithm, question.channels, layout));
}

BytesPerSecond Tuner::BareRateOfSends(const ChoiceQuestion& question) {
  const CollectiveKind kind = question.collective.kind;
  KnownShape& known = memory_.Of(memory_.ShapeOf(question.ranks));
  if (const auto rate = known.rates_of_sends.find(kind); rate != known.rates_of_sends.end())
    return rate->second;
  Router& router = memory_.router();
  Choice bare;
  bare.algorithm = &FirstThatDoes(kind);
  const GroupPlan plan = ArrangePlan(bare, kind, 0, question.ranks, router, memory_.finder());
  const BindingLink binding = BindingLinkOf(plan, router);
  const BytesPerSecond rate = router.cluster().Link(binding.link).Capacity() / binding.bytes;
  known.rates_of_sends.emplace(kind, rate);
  return rate;
}

void Tuner::ChooseSends(const ChoiceQuestion& question, const LibraryGroup& group, Choice* choice) {
  const Collective& collective = question.collective;
  if (group.nccl) {
    const SendsPace pace = SendsPaceOf(*group.nccl, collective.kind, collective.bytes);
    choice->nccl_channels = PeerChannels(*group.nccl);
    choice->latency = pace.latency;
    choice->bandwidth_share =
        pace.most.value() > 0 ? pace.ShareOf(BareRateOfSends(question)) : pace.of_links;
    choice->steps_wait = pace.latency == Seconds(0);
  } else {
    choice->nccl_channels = kRcclSendChannels;
    choice->bandwidth_share =
        group.rccl->nodes > 1 ? kRcclSendsOfNetwork : ShareOfRings(group.rccl->ring_count);
  }
}

Seconds LaunchTime(const Cluster& cluster, uint32_t channels) {
  return cluster.collective_overhead() + channels * cluster.channel_overhead();
}

Choice Tuner::Choose(const ChoiceQuestion& question, std::shared_ptr<GroupLayout>* layout) {
  Choice choice = WithoutLaunch(question, layout);
  if (question.channels > 0)
    choice.nccl_channels = std::min(choice.nccl_channels, question.channels);
  choice.start =
      std::max(LaunchTime(memory_.router().cluster(), choice.nccl_channels), choice.latency);
  return choice;
}

Choice Tuner::WithoutLaunch(const ChoiceQuestion& question, std::shared_ptr<GroupLayout>* layout) {
  const Collective& collective = question.collective;
  const bool any_algorithm = collective.algorithm == AlgorithmId::kAuto;
  const bool any_protocol = collective.protocol == Protocol::kAuto;
  Choice choice;
  choice.channels = question.channels;
  choice.step_overhead = memory_.router().cluster().step_overhead();
  if (!any_algorithm) {
    choice.algorithm = &FindAlgorithm(collective.algorithm);
    CheckKind(*choice.algorithm, collective.kind);
  }
  if (collective.protocol != Protocol::kNone) {
    const LibraryGroup& group = GroupOf(question.ranks);
    const std::optional<NcclAlgorithm> pinned = OfNccl(collective.algorithm);
    const bool is_nvls = pinned == NcclAlgorithm::kNvls || pinned == NcclAlgorithm::kNvlsTree;
    if (group.nccl && is_nvls && NcclNvlsEfficiency(group.nccl->generation) == 0) {
      throw Error(
          fmt::format("algorithm \"{}\" needs NVSwitches that add, which came with Hopper; "
                      "expected another, or \"auto\"",
                      choice.algorithm->name()));
    }
    if (const std::optional<NcclCost> cost = Cheapest(question, group)) {
      choice.algorithm = &FindAlgorithm(IdOf(cost->algorithm));
      choice.protocol = cost->protocol;
      choice.nccl_channels =
          group.nccl ? ChannelsFor(*group.nccl, *cost, collective.bytes) : group.rccl->channels;
      const NcclPace pace = group.nccl
                                ? PaceOf(*group.nccl, question, *cost)
                                : RcclPaceOf(*group.rccl, collective.kind, collective.bytes, *cost);
      choice.latency = pace.latency;
      choice.steps_wait = false;
      const BytesPerSecond wanted =
          pace.of_links > 0 ? pace.of_links * BareRate(question, cost->algorithm, question.channels)
                            : pace.bandwidth;
      choice.bandwidth_share = ShareOf(question, group, *cost, wanted, layout);
      return choice;
    }
    if (!any_protocol) {
      throw Error(fmt::format(
          "protocol \"{}\" is not available for {} with algorithm \"{}\"{}; expected {}",
          Name(collective.protocol), Name(collective.kind), Name(collective.algorithm),
          group.Exists() ? " in this group" : " on devices that are neither NVIDIA's nor AMD's",
          PossibleProtocols(collective, group)));
    }
    if (group.Exists() && IsGroupedSends(collective.kind) && any_algorithm)
      ChooseSends(question, group, &choice);
    else if (group.nccl && IsGroupedSends(collective.kind) && !choice.algorithm->forwards)
      choice.nccl_channels = PeerChannels(*group.nccl);
  }
  if (!any_algorithm) return choice;
  // Devices whose library is not known run what CPU ranks run (real/transports); on a torus, as
  // XLA's TPUs do, they use all of its dimensions at once. That an all-to-all does so, too, is seen
  // from what twisting the torus gains: 1.63 and 1.31 times (Jouppi et al., ISCA 2023; quoted from
  // memory), where all messages at once gain 1.56 and 1.26 times by their links, and pairs in turn
  // 1.10 and 1.05.
  const bool has_library =
      collective.protocol != Protocol::kNone && GroupOf(question.ranks).Exists();
  choice.algorithm = has_library ? &FirstThatDoes(collective.kind)
                                 : &FindAlgorithm(UsualAlgorithm(collective.kind));
  static const Algorithm& bucket = FindAlgorithm(AlgorithmId::kBucket);
  static const Algorithm& direct = FindAlgorithm(AlgorithmId::kDirect);
  const bool is_to_all = collective.kind == CollectiveKind::kAllToAll;
  if (!has_library && (is_to_all || bucket.kinds.Has(collective.kind)) &&
      BoxOf(memory_.router().cluster(), question.ranks))
    choice.algorithm = is_to_all ? &direct : &bucket;
  return choice;
}

}  // namespace rehearse
