#include "collectives/nccl/rccl_model.h"

#include <algorithm>
#include <bit>

#include "collectives/nccl/rccl_constants.h"
#include "collectives/nccl/ring_steps.h"
#include "sim/base/error.h"
#include "topology/presets/hop_latency.h"

namespace rehearse {
namespace {

constexpr double kLostByARing = 0.02;
// We assume that the shares are those of NVIDIA's devices (collectives/nccl/pace.h).
constexpr double kLLOfLinks = 0.37;
constexpr double kLL128OfLinks = 0.8;
constexpr Seconds kAmdNetworkOverhead(2e-6);  // what the model takes for AMD's hosts
constexpr double kRootedLL = 1.65;            // rings with LL on one machine

constexpr size_t kTreeRow = 0;
constexpr size_t kRingRow = 1;

bool CanRing(CollectiveKind kind) {
  return IsAllReduce(kind) || IsRooted(kind) || IsGathering(kind);
}

double Corrected(const RcclCorrection& table, Protocol protocol, Bytes bytes) {
  const auto& factors = table[static_cast<size_t>(protocol)];
  const auto lines = static_cast<uint64_t>(bytes.value()) / 64;
  const size_t power = lines == 0 ? 0 : static_cast<size_t>(std::bit_width(lines)) - 1;
  return factors[std::min(power, factors.size() - 1)];
}

// A hop costs the constant where its route is as long as a standard hop, and otherwise less in
// proportion, or what the route takes beyond it more.
Seconds HopFor(double microseconds, Seconds route, Seconds standard) {
  const double share = std::min(route, standard) / standard;
  return share * Seconds(microseconds * 1e-6) + std::max(route - standard, Seconds(0));
}

// The protocol that a rank's bytes decide; nothing if the model's costs decide.
std::optional<Protocol> DecidedProtocol(const RcclGroup& group, CollectiveKind kind, Bytes bytes) {
  const RcclTables& tables = RcclTablesOf(group.architecture);
  if (!tables.has_ranges || group.nodes < 2) return std::nullopt;
  size_t row = 0;
  switch (kind) {
    case CollectiveKind::kReduceScatter:
      row = 0;
      break;
    case CollectiveKind::kAllGather:
      row = 1;
      break;
    case CollectiveKind::kAllReduce:
      row = 2;
      break;
    case CollectiveKind::kReduce:
      row = 3;
      break;
    case CollectiveKind::kBroadcast:
      row = 4;
      break;
    default:
      return std::nullopt;
  }
  const auto& ranges = tables.ranges[row];
  if (ranges[0].to <= 0) return std::nullopt;
  const double of_rank = bytes.value() / group.ranks;
  if (of_rank <= ranges[0].to) return Protocol::kLL;
  return of_rank <= ranges[1].to ? Protocol::kLL128 : Protocol::kSimple;
}

NcclCost RingCost(const RcclGroup& group, CollectiveKind kind, Bytes bytes, Protocol protocol) {
  const RcclTables& tables = RcclTablesOf(group.architecture);
  const auto at = static_cast<size_t>(protocol);
  const double inside_us = (group.is_xgmi ? tables.inside : kRcclPcie)[kRingRow][at];
  const bool is_lone = group.nodes == group.ranks;
  const double across_us = tables.across[is_lone ? kTreeRow : kRingRow][at];
  Seconds inside = HopFor(inside_us, group.inside_route, group.is_xgmi ? kNvLinkHop : kPcieHop) +
                   group.step_overhead;
  const double flushes = protocol == Protocol::kSimple ? 2 : 1;
  const Seconds across = HopFor(across_us, group.across_route, kNetworkHop) + group.step_overhead +
                         flushes * group.plugin_told;
  NcclCost cost;
  cost.algorithm = NcclAlgorithm::kRing;
  cost.protocol = protocol;
  cost.latency = Seconds(kRcclBase[at] * 1e-6);
  double ratio = tables.ratio[group.nodes <= 2 ? 0 : 1][kRingRow][at];
  if (IsRooted(kind)) {
    cost.latency += group.nodes > 1 ? across : inside;
    const bool is_newer = group.architecture != RcclArchitecture::kMi250x;
    if (protocol == Protocol::kLL && is_newer && group.nodes == 1) ratio *= kRootedLL;
  } else {
    if (group.nodes > 1)
      inside = std::max(inside, (protocol == Protocol::kSimple ? 3 : 1) * kAmdNetworkOverhead);
    const uint32_t crossing = NcclRingSteps(kind, group.nodes);
    cost.latency += (NcclRingSteps(kind, group.ranks) - crossing) * inside + crossing * across;
    ratio *= RingRatio(kind, group.ranks);
  }
  if (group.nodes > 1) ratio *= Corrected(tables.ring, protocol, bytes);
  cost.bandwidth = ratio * group.rings;
  return cost;
}

NcclCost TreeCost(const RcclGroup& group, Bytes bytes, Protocol protocol) {
  const RcclTables& tables = RcclTablesOf(group.architecture);
  const auto at = static_cast<size_t>(protocol);
  const double inside_us = (group.is_xgmi ? tables.inside : kRcclPcie)[kTreeRow][at];
  const Seconds inside =
      HopFor(inside_us, group.inside_route, group.is_xgmi ? kNvLinkHop : kPcieHop) +
      group.step_overhead;
  const double flushes = protocol == Protocol::kSimple ? 2 : 1;
  const Seconds across = HopFor(tables.across[kTreeRow][at], group.across_route, kNetworkHop) +
                         group.step_overhead + flushes * group.plugin_told;
  const double members = static_cast<double>(group.ranks) / group.nodes;
  const double levels = static_cast<double>(std::bit_width(group.nodes)) - 1;
  NcclCost cost;
  cost.algorithm = NcclAlgorithm::kTree;
  cost.protocol = protocol;
  cost.latency = Seconds(kRcclBase[at] * 1e-6) + 2 * ((members - 1) * inside + levels * across);
  cost.bandwidth = tables.ratio[group.nodes <= 2 ? 0 : 1][kTreeRow][at] / 2 *
                   Corrected(tables.tree, protocol, bytes) * group.rings;
  return cost;
}

}  // namespace

std::optional<RcclArchitecture> RcclArchitectureOf(uint32_t gfx) {
  switch (gfx) {
    case 0x90a:
      return RcclArchitecture::kMi250x;
    case 0x940:
    case 0x942:
      return RcclArchitecture::kMi300x;
    case 0x950:
      return RcclArchitecture::kMi355x;
    default:
      return std::nullopt;
  }
}

std::vector<NcclCost> AllCosts(const RcclGroup& group, CollectiveKind kind, Bytes bytes) {
  CHECK_GE(group.ranks, 2u);
  CHECK_GE(group.nodes, 1u);
  RcclGroup known = group;  // as RCCL knows it
  known.inside_route = group.is_xgmi ? kNvLinkHop : kPcieHop;
  known.across_route = kNetworkHop;
  known.step_overhead = Seconds(0);
  std::vector<NcclCost> costs;
  if (!CanRing(kind)) return costs;
  const std::optional<Protocol> decided = DecidedProtocol(known, kind, bytes);
  const auto is_possible = [&](Protocol protocol) { return !decided || *decided == protocol; };
  if (IsAllReduce(kind)) {
    for (const auto protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      const bool is_none = protocol == Protocol::kSimple && group.nodes == 1 &&
                           group.architecture != RcclArchitecture::kMi250x;
      if (!is_none && is_possible(protocol)) costs.push_back(TreeCost(known, bytes, protocol));
    }
  }
  for (const auto protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple})
    if (is_possible(protocol)) costs.push_back(RingCost(known, kind, bytes, protocol));
  return costs;
}

double ShareOfRings(uint32_t rings) {
  double share = 1;
  for (uint32_t ring = 1; ring < rings; ++ring) share *= 1 - kLostByARing;
  return share;
}

NcclPace RcclPaceOf(const RcclGroup& group, CollectiveKind kind, Bytes bytes,
                    const NcclCost& chosen) {
  RcclGroup timed = group;
  timed.plugin_told = group.plugin_latency;
  const Seconds latency = chosen.algorithm == NcclAlgorithm::kTree
                              ? TreeCost(timed, bytes, chosen.protocol).latency
                              : RingCost(timed, kind, bytes, chosen.protocol).latency;
  double share = ShareOfRings(group.ring_count);
  if (chosen.protocol == Protocol::kLL) share *= kLLOfLinks;
  if (chosen.protocol == Protocol::kLL128) share *= kLL128OfLinks;
  const double ratio =
      chosen.algorithm == NcclAlgorithm::kTree ? 0.5 : RingRatio(kind, group.ranks);
  return {latency, share * ratio * group.rings};
}

}  // namespace rehearse
