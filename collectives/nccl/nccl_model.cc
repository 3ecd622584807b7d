#include "collectives/nccl/nccl_model.h"

#include <algorithm>
#include <bit>

#include "collectives/nccl/ring_steps.h"
#include "sim/base/error.h"
#include "topology/presets/hop_latency.h"

namespace rehearse {
namespace {

constexpr Seconds kNetworkOverhead(1e-6);  // what NCCL takes for hosts of unknown make

// Shares of the links that the protocols leave for data, as the model has them.
constexpr double kRingLL = 0.5;
constexpr double kRingLL218 = 1.0 / 4;
constexpr double kGatherLL218 = 1.0 / 3;
constexpr double kRingLL128 = 0.92;
constexpr double kLoneRingLL128Of218 = 0.7;
constexpr double kTree = 0.92;
constexpr double kTreeLL = 1 / 3.8;
constexpr double kTreeLL128OneMachine = 7.0 / 9;
constexpr double kTreeLL128 = 120.0 / 128;
constexpr double kNvls218 = 5.0 / 6;
constexpr double kNvlsTree218 = 0.7;
constexpr uint32_t kMostNvlsGatherers = 32;

bool Is218(const NcclGroup& group) { return group.version == NcclVersion::kRelease218; }

bool Exists(const NcclGroup& group, CollectiveKind kind, NcclAlgorithm algorithm,
            Protocol protocol) {
  if (protocol == Protocol::kLL128 && !group.has_ll128) return false;
  if (protocol == Protocol::kLL128 && Is218(group) && group.generation > NcclGeneration::kHopper)
    return false;
  if (protocol == Protocol::kLL && !group.has_ll) return false;
  const bool is_simple = protocol == Protocol::kSimple;
  const bool gathers = IsGathering(kind);
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      return IsAllReduce(kind);
    case NcclAlgorithm::kRing:
      return IsAllReduce(kind) || gathers || IsRooted(kind);
    case NcclAlgorithm::kNvls:
      return (IsAllReduce(kind) ||
              (gathers && !Is218(group) && group.ranks <= kMostNvlsGatherers)) &&
             group.has_nvls && group.nodes == 1 && is_simple;
    case NcclAlgorithm::kNvlsTree:
      return IsAllReduce(kind) && group.has_nvls && group.nodes > 1 && is_simple;
    case NcclAlgorithm::kPat:
      return gathers && group.nodes == group.ranks && is_simple && !Is218(group);
  }
  return false;
}

Seconds StandardHop(NcclHop hop) {
  switch (hop) {
    case NcclHop::kNvLink:
      return kNvLinkHop;
    case NcclHop::kPcie:
      return kPcieHop;
    case NcclHop::kNetwork:
      return kNetworkHop;
  }
  return kNetworkHop;
}

// A hop costs NCCL's constant where the route is as long as a standard hop, because the constants
// were measured on such routes, by rings with Simple.
Seconds HopOn(const NcclGroup& group, NcclHop hop, NcclAlgorithm algorithm, Protocol protocol) {
  const bool is_across = hop == NcclHop::kNetwork;
  const Seconds route = is_across ? group.across_route : group.inside_route;
  const Seconds standard = StandardHop(hop);
  const double share = std::min(route, standard) / standard;
  const bool is_lone = is_across && group.ranks == group.nodes && !Is218(group);
  const NcclAlgorithm whose = is_lone ? NcclAlgorithm::kTree : algorithm;
  Seconds latency = share * NcclHopLatency(group.version, hop, whose, protocol) +
                    std::max(route - standard, Seconds(0)) + group.step_overhead;
  if (is_across) latency += (protocol == Protocol::kSimple ? 2 : 1) * group.plugin_told;
  return latency;
}

Seconds RingLatency(const NcclGroup& group, CollectiveKind kind, Bytes bytes, Protocol protocol,
                    Seconds inside, Seconds across) {
  const Seconds base = NcclBase(group.version, NcclAlgorithm::kRing, protocol);
  if (IsRooted(kind)) return base + (group.nodes > 1 ? across : inside);
  const bool is_simple = protocol == Protocol::kSimple;
  if (group.nodes > 1) inside = std::max(inside, (is_simple ? 3 : 1) * kNetworkOverhead);
  const bool crosses_twice_more = Is218(group) && IsAllReduce(kind) && group.nodes > 1;
  const uint32_t crossing =
      std::min(NcclRingSteps(kind, group.nodes) + (crosses_twice_more ? 2 : 0),
               NcclRingSteps(kind, group.ranks));
  const Seconds latency =
      base + (NcclRingSteps(kind, group.ranks) - crossing) * inside + crossing * across;
  const bool is_plateau = IsAllReduce(kind) && is_simple && group.nodes > 1 &&
                          bytes >= Bytes(64.0 * group.graph_channels * group.ranks);
  if (!is_plateau) return latency;
  return latency * (group.generation == NcclGeneration::kVolta ? 1.9 : 1.4);
}

// The share of the rings that LL leaves for data.
double RingLL(const NcclGroup& group, CollectiveKind kind) {
  if (!Is218(group)) return kRingLL;
  const bool adds = IsAllReduce(kind) || kind == CollectiveKind::kReduce;
  return group.nodes > 1 || adds ? kRingLL218 : kGatherLL218;
}

BytesPerSecond RingRate(const NcclGroup& group, CollectiveKind kind, Protocol protocol) {
  const bool is_lone = group.nodes == group.ranks;
  switch (protocol) {
    case Protocol::kLL:
      return std::min(RingLL(group, kind) * group.rings,
                      NcclMostLL(group.version, group.generation, group.nodes));
    case Protocol::kLL128:
      return std::min(
          (is_lone && Is218(group) ? kLoneRingLL128Of218 : kRingLL128) * group.rings,
          group.graph_channels * NcclMostRingLL128(group.version, group.generation, group.nodes));
    case Protocol::kSimple:
    case Protocol::kNone:
    case Protocol::kAuto:
      break;
  }
  return group.rings;
}

double Levels(const NcclGroup& group) {
  return static_cast<double>(std::bit_width(group.nodes)) - 1;
}

Seconds TreeLatency(const NcclGroup& group, Protocol protocol, Seconds inside, Seconds across) {
  const double members = static_cast<double>(group.ranks) / group.nodes;
  return NcclBase(group.version, NcclAlgorithm::kTree, protocol) +
         2 * ((members - 1) * inside + Levels(group) * across);
}

BytesPerSecond TreeRate(const NcclGroup& group, Protocol protocol) {
  const BytesPerSecond simple = std::min(
      kTree * group.trees, group.graph_channels * NcclMostTree(group.generation, group.nodes));
  switch (protocol) {
    case Protocol::kLL:
      return std::min(kTreeLL * simple, NcclMostLL(group.version, group.generation, group.nodes));
    case Protocol::kLL128:
      return std::min((group.nodes == 1 ? kTreeLL128OneMachine : kTreeLL128) * simple,
                      group.graph_channels * NcclMostTreeLL128(group.generation, group.nodes));
    case Protocol::kSimple:
    case Protocol::kNone:
    case Protocol::kAuto:
      break;
  }
  return simple;
}

// The bandwidth that a machine's switch lets its members reach, per byte on the bus.
BytesPerSecond NvlsRate(const NcclGroup& group, CollectiveKind kind) {
  const BytesPerSecond all = group.heads * group.head;
  if (Is218(group)) return all;
  const double heads = group.heads;
  const double members = static_cast<double>(group.ranks) / group.nodes;
  const BytesPerSecond once = all * NcclNvlsEfficiency(group.generation) * ((heads - 1) / heads);
  return IsAllReduce(kind) ? 2 * once : once * ((members - 1) / members);
}

// The bandwidth counts bytes of the collective, not those on the bus.
BytesPerSecond NvlsBandwidth(const NcclGroup& group, CollectiveKind kind) {
  const BytesPerSecond rate = NvlsRate(group, kind);
  if (Is218(group)) return kNvls218 * rate;
  return IsAllReduce(kind) ? rate * RingRatio(kind, group.ranks) : rate;
}

BytesPerSecond NvlsTreeBandwidth(const NcclGroup& group, CollectiveKind kind) {
  if (Is218(group)) {
    const double nodes = group.nodes;
    const BytesPerSecond across = group.nodes <= 2 ? group.rings : group.rings / 2;
    return std::min(NvlsRate(group, kind), across) * (kNvlsTree218 * nodes / (2 * (nodes - 1)));
  }
  const double members = static_cast<double>(group.ranks) / group.nodes;
  const BytesPerSecond across = (group.nodes == 2 ? 2 : 1) * group.rings;
  return std::min({NvlsRate(group, kind), across,
                   members * NcclMostNvlsTree(group.version, group.generation, group.nodes)}) *
         RingRatio(kind, group.ranks);
}

// Whether medium sizes of NVLSTree fall short as those of trees do.
bool FallsShort229(const NcclGroup& group) {
  return group.version == NcclVersion::kRelease229 &&
         group.generation == NcclGeneration::kBlackwell && group.has_x86_hosts;
}

}  // namespace

std::optional<NcclCost> CostOf(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                               NcclAlgorithm algorithm, Protocol protocol) {
  CHECK_GE(group.ranks, 2u);
  CHECK_GE(group.nodes, 1u);
  if (!Exists(group, kind, algorithm, protocol)) return std::nullopt;
  const Seconds inside = HopOn(group, group.inside, algorithm, protocol);
  const Seconds across = HopOn(group, NcclHop::kNetwork, algorithm, protocol);
  NcclCost cost;
  cost.algorithm = algorithm;
  cost.protocol = protocol;
  switch (algorithm) {
    case NcclAlgorithm::kRing:
      cost.latency = RingLatency(group, kind, bytes, protocol, inside, across);
      cost.bandwidth = RingRate(group, kind, protocol) * RingRatio(kind, group.ranks);
      break;
    case NcclAlgorithm::kTree:
      cost.latency = TreeLatency(group, protocol, inside, across);
      cost.bandwidth = TreeRate(group, protocol) / 2 * NcclTreeCorrection(protocol, bytes);
      break;
    case NcclAlgorithm::kNvls:
      cost.latency = Is218(group) ? NcclBase(group.version, algorithm, protocol) : inside;
      cost.bandwidth = NvlsBandwidth(group, kind);
      break;
    case NcclAlgorithm::kNvlsTree:
      cost.latency = Is218(group) ? NcclBase(group.version, algorithm, protocol) +
                                        2 * (group.nodes - 1) * across
                                  : inside + 2 * Levels(group) * across;
      cost.bandwidth = NvlsTreeBandwidth(group, kind);
      if (FallsShort229(group))
        cost.bandwidth = cost.bandwidth * NcclTreeCorrection(protocol, bytes);
      break;
    case NcclAlgorithm::kPat:
      cost.latency = NcclBase(group.version, algorithm, protocol) +
                     Levels(group) * across / kPatHopsAtOnce + group.ranks * kPatEachRank;
      cost.bandwidth = kPatEfficiency * group.rings;
      break;
  }
  return cost;
}

std::vector<NcclCost> AllCosts(const NcclGroup& group, CollectiveKind kind, Bytes bytes) {
  NcclGroup known = group;  // as NCCL knows it
  known.inside_route = StandardHop(group.inside);
  known.across_route = StandardHop(NcclHop::kNetwork);
  known.step_overhead = Seconds(0);
  std::vector<NcclCost> costs;
  for (const NcclAlgorithm algorithm : kNcclAlgorithms) {
    for (const auto protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      const std::optional<NcclCost> cost = CostOf(known, kind, bytes, algorithm, protocol);
      if (cost) costs.push_back(*cost);
    }
  }
  return costs;
}

uint32_t ChannelsFor(const NcclGroup& group, const NcclCost& cost, Bytes bytes) {
  Bytes least = NcclLeastForAChannel(cost.protocol);
  if (cost.protocol == Protocol::kLL && cost.algorithm == NcclAlgorithm::kRing)
    least *= group.ranks;
  const uint32_t most = 2 * group.graph_channels;
  const double wanted = bytes / least;
  return wanted >= most ? most : std::max(1u, static_cast<uint32_t>(wanted));
}

bool IsGroupedSends(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendReceive;
}

uint32_t PeerChannels(const NcclGroup& group) { return std::bit_ceil(2 * group.graph_channels); }

AlgorithmId IdOf(NcclAlgorithm algorithm) {
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      return AlgorithmId::kTree;
    case NcclAlgorithm::kRing:
      return AlgorithmId::kRing;
    case NcclAlgorithm::kNvls:
      return AlgorithmId::kNvls;
    case NcclAlgorithm::kNvlsTree:
      return AlgorithmId::kNvlsTree;
    case NcclAlgorithm::kPat:
      return AlgorithmId::kPat;
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown algorithm");
}

}  // namespace rehearse
