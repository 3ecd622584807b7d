#include "collectives/nccl/nccl_model.h"

#include <algorithm>
#include <bit>

#include "sim/base/error.h"
#include "topology/presets/hop_latency.h"

namespace rehearse {
namespace {

constexpr Seconds kNetworkOverhead(1e-6);  // hosts of unknown make

// Shares of the links that the protocols leave for data, as the model has them.
constexpr double kRingLL = 0.5;
constexpr double kRingLL128 = 0.92;
constexpr double kTree = 0.92;
constexpr double kTreeLL = 1 / 3.8;
constexpr double kTreeLL128OneMachine = 7.0 / 9;
constexpr double kTreeLL128 = 120.0 / 128;

bool IsAllReduce(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce; }
bool IsRooted(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
}

bool Exists(const NcclGroup& group, CollectiveKind kind, NcclAlgorithm algorithm,
            Protocol protocol) {
  if (protocol == Protocol::kLL128 && !group.has_ll128) return false;
  const bool is_simple = protocol == Protocol::kSimple;
  const bool gathers = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      return IsAllReduce(kind);
    case NcclAlgorithm::kRing:
      return IsAllReduce(kind) || gathers || IsRooted(kind);
    case NcclAlgorithm::kNvls:
      return (IsAllReduce(kind) || gathers) && group.has_nvls && group.nodes == 1 && is_simple;
    case NcclAlgorithm::kNvlsTree:
      return IsAllReduce(kind) && group.has_nvls && group.nodes > 1 && is_simple;
    case NcclAlgorithm::kPat:
      return gathers && group.nodes == group.ranks && is_simple;
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

// The constant where the route is as long as a standard hop, which is what rings with Simple
// were measured on.
Seconds HopOn(NcclHop hop, Seconds route, NcclAlgorithm algorithm, Protocol protocol,
              Seconds overhead) {
  const Seconds standard = StandardHop(hop);
  const double share = std::min(route, standard) / standard;
  return share * NcclHopLatency(hop, algorithm, protocol) + std::max(route - standard, Seconds(0)) +
         overhead;
}

uint32_t Steps(CollectiveKind kind, uint32_t members) {
  return (IsAllReduce(kind) ? 2 : 1) * (members - 1);
}

// Bytes of the collective for each byte on the bus.
double RingRatio(CollectiveKind kind, uint32_t ranks) {
  return IsRooted(kind) ? 1 : static_cast<double>(ranks) / Steps(kind, ranks);
}

Seconds RingLatency(const NcclGroup& group, CollectiveKind kind, Bytes bytes, Protocol protocol,
                    Seconds inside, Seconds across) {
  const Seconds base = NcclBase(NcclAlgorithm::kRing, protocol);
  if (IsRooted(kind)) return base + (group.nodes > 1 ? across : inside);
  const bool is_simple = protocol == Protocol::kSimple;
  if (group.nodes > 1) inside = std::max(inside, (is_simple ? 3 : 1) * kNetworkOverhead);
  const uint32_t crossing = Steps(kind, group.nodes);
  const Seconds latency = base + (Steps(kind, group.ranks) - crossing) * inside + crossing * across;
  const bool is_plateau = IsAllReduce(kind) && is_simple && group.nodes > 1 &&
                          bytes >= Bytes(64.0 * group.graph_channels * group.ranks);
  if (!is_plateau) return latency;
  return latency * (group.generation == NcclGeneration::kVolta ? 1.9 : 1.4);
}

BytesPerSecond RingRate(const NcclGroup& group, Protocol protocol) {
  switch (protocol) {
    case Protocol::kLL:
      return std::min(kRingLL * group.rings, NcclMostLL(group.generation, group.nodes));
    case Protocol::kLL128:
      return std::min(kRingLL128 * group.rings,
                      group.graph_channels * NcclMostRingLL128(group.generation, group.nodes));
    case Protocol::kSimple:
      return group.rings;
  }
  return group.rings;
}

double Levels(const NcclGroup& group) {
  return static_cast<double>(std::bit_width(group.nodes)) - 1;
}

Seconds TreeLatency(const NcclGroup& group, Protocol protocol, Seconds inside, Seconds across) {
  const double members = static_cast<double>(group.ranks) / group.nodes;
  return NcclBase(NcclAlgorithm::kTree, protocol) +
         2 * ((members - 1) * inside + Levels(group) * across);
}

BytesPerSecond TreeRate(const NcclGroup& group, Protocol protocol) {
  const BytesPerSecond simple = std::min(
      kTree * group.trees, group.graph_channels * NcclMostTree(group.generation, group.nodes));
  switch (protocol) {
    case Protocol::kLL:
      return std::min(kTreeLL * simple, NcclMostLL(group.generation, group.nodes));
    case Protocol::kLL128:
      return std::min((group.nodes == 1 ? kTreeLL128OneMachine : kTreeLL128) * simple,
                      group.graph_channels * NcclMostTreeLL128(group.generation, group.nodes));
    case Protocol::kSimple:
      return simple;
  }
  return simple;
}

// What the switch of a machine lets its members reach, per byte on the bus.
BytesPerSecond NvlsRate(const NcclGroup& group, CollectiveKind kind) {
  const double members = static_cast<double>(group.ranks) / group.nodes;
  const BytesPerSecond once =
      group.inside_rings * NcclNvlsEfficiency(group.generation) * ((members - 1) / members);
  return IsAllReduce(kind) ? 2 * once : once * ((members - 1) / members);
}

BytesPerSecond NvlsTreeRate(const NcclGroup& group, CollectiveKind kind) {
  const double members = static_cast<double>(group.ranks) / group.nodes;
  const BytesPerSecond across = (group.nodes == 2 ? 2 : 1) * group.rings;
  return std::min(
      {NvlsRate(group, kind), across, members * NcclMostNvlsTree(group.generation, group.nodes)});
}

}  // namespace

std::optional<NcclCost> CostOf(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                               NcclAlgorithm algorithm, Protocol protocol) {
  CHECK_GE(group.ranks, 2u);
  CHECK_GE(group.nodes, 1u);
  if (!Exists(group, kind, algorithm, protocol)) return std::nullopt;
  const Seconds inside =
      HopOn(group.inside, group.inside_route, algorithm, protocol, group.step_overhead);
  const Seconds across =
      HopOn(NcclHop::kNetwork, group.across_route, algorithm, protocol, group.step_overhead);
  NcclCost cost;
  cost.algorithm = algorithm;
  cost.protocol = protocol;
  switch (algorithm) {
    case NcclAlgorithm::kRing:
      cost.latency = RingLatency(group, kind, bytes, protocol, inside, across);
      cost.bandwidth = RingRate(group, protocol) * RingRatio(kind, group.ranks);
      break;
    case NcclAlgorithm::kTree:
      cost.latency = TreeLatency(group, protocol, inside, across);
      cost.bandwidth = TreeRate(group, protocol) / 2 * NcclTreeCorrection(protocol, bytes);
      break;
    case NcclAlgorithm::kNvls:
      cost.latency = inside;
      cost.bandwidth = NvlsRate(group, kind) * RingRatio(kind, group.ranks);
      break;
    case NcclAlgorithm::kNvlsTree:
      cost.latency = inside + 2 * Levels(group) * across;
      cost.bandwidth = NvlsTreeRate(group, kind) * RingRatio(kind, group.ranks);
      break;
    case NcclAlgorithm::kPat:
      cost.latency = NcclBase(algorithm, protocol) + Levels(group) * across / kPatHopsAtOnce +
                     group.ranks * kPatEachRank;
      cost.bandwidth = kPatEfficiency * group.rings;
      break;
  }
  return cost;
}

std::vector<NcclCost> AllCosts(const NcclGroup& group, CollectiveKind kind, Bytes bytes) {
  std::vector<NcclCost> costs;
  for (const NcclAlgorithm algorithm : kNcclAlgorithms) {
    for (const auto protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      const std::optional<NcclCost> cost = CostOf(group, kind, bytes, algorithm, protocol);
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

const char* Name(NcclAlgorithm algorithm) {
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      return "Tree";
    case NcclAlgorithm::kRing:
      return "Ring";
    case NcclAlgorithm::kNvls:
      return "NVLS";
    case NcclAlgorithm::kNvlsTree:
      return "NVLSTree";
    case NcclAlgorithm::kPat:
      return "PAT";
  }
  return "?";
}

}  // namespace rehearse
