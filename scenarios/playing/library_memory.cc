#include "scenarios/playing/library_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "collectives/nccl/nccl_constants.h"
#include "collectives/nccl/nccl_search.h"
#include "topology/devices/device.h"

namespace rehearse {
namespace {

constexpr Bytes kDriver(1.06e9);
constexpr double kMebi = 1024.0 * 1024;
// Of one channel, measured with 24 of them.
constexpr Bytes kOfTwo(544 * kMebi / 24);
constexpr Bytes kOfMore(688 * kMebi / 24);
// Of one channel to one peer in the machine: 7 peers, 32 channels.
constexpr uint32_t kMostPeers = 7;
constexpr Bytes kOfAPeer(3.28e9 / (kMostPeers * 32));

// What a role asks of a communicator.
struct Uses {
  bool collectives = false;
  bool to_all = false;   // all-to-all, by sends to each peer
  bool to_next = false;  // sends to a peer
};

std::map<uint32_t, Uses> UsesOf(const Role& role) {
  std::map<uint32_t, Uses> uses;
  for (const Op& op : role.ops) {
    const CommunicatorId id = CommunicatorOf(op.work);
    if (!id.IsSet()) continue;
    Uses& use = uses[id.index()];
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr) {
      use.to_next = true;
    } else if (collective->kind != CollectiveKind::kAllToAll) {
      use.collectives = true;
    } else if (collective->algorithm != AlgorithmId::kDeepEp) {
      use.to_all = true;
    }
  }
  return uses;
}

GroupSpread SpreadOf(const Cluster& cluster, const Communicator& communicator,
                     const std::vector<uint32_t>& placement) {
  std::map<uint32_t, uint32_t> members;  // by machine
  for (uint32_t member = 0; member < communicator.size(); ++member)
    ++members[cluster.NodeIndexOf(placement[communicator.Rank(0, member)])];
  GroupSpread spread{.machines = static_cast<uint32_t>(members.size())};
  for (const auto& [machine, count] : members) spread.inside = std::max(spread.inside, count);
  return spread;
}

// The links of the machine of a device: of one of the equal machines its own, else all that were
// drawn.
std::pair<uint32_t, uint32_t> LinksAround(const Wiring& wiring, VertexId device) {
  const auto drawn = static_cast<uint32_t>(wiring.drawn_links.size());
  if (device < wiring.drawn_vertices.size()) return {0, drawn};
  const EqualMachines& machines = wiring.machines;
  const uint32_t machine =
      (device - static_cast<uint32_t>(wiring.drawn_vertices.size())) / machines.parts.size();
  const auto first = static_cast<uint32_t>(drawn + machine * machines.links_per_machine());
  return {first, static_cast<uint32_t>(first + machines.links_per_machine())};
}

}  // namespace

void LibraryMemory::CountMachine(uint32_t device, Links* links) const {
  const std::string machine = cluster_.NodeOf(device);
  for (uint32_t other = 0; other < cluster_.device_count(); ++other) {
    if (cluster_.NodeIndexOf(other) == cluster_.NodeIndexOf(device)) ++links->devices;
  }
  std::map<VertexId, BytesPerSecond> nics;  // the cables of each
  const auto [first, end] = LinksAround(*cluster_.wiring(), cluster_.devices()[device]);
  for (uint32_t link = first; link < end; ++link) {
    const VertexId source = cluster_.SourceOf(link);
    if (cluster_.KindOf(link) != LinkKind::kNetwork) continue;
    if (cluster_.KindOfVertex(source) != VertexKind::kNic) continue;
    if (cluster_.VertexAt(source).node != machine) continue;
    nics[source] += cluster_.Link(link).bandwidth;
  }
  links->nics = static_cast<uint32_t>(nics.size());
  if (!nics.empty()) links->nic = nics.begin()->second;
}

const LibraryMemory::Links& LibraryMemory::LinksOf(uint32_t device) {
  const auto [found, is_new] = links_.try_emplace(cluster_.SpecOf(device));
  Links& links = found->second;
  if (!is_new) return links;
  const auto generation =
      GenerationOf(cluster_.DeviceOf(device).compute_capability).value_or(NcclGeneration::kAmpere);
  const VertexId vertex = cluster_.devices()[device];
  const auto [first, end] = LinksAround(*cluster_.wiring(), vertex);
  for (uint32_t link = first; link < end; ++link) {
    if (cluster_.SourceOf(link) != vertex) continue;
    const LinkKind kind = cluster_.KindOf(link);
    if (kind != LinkKind::kNvLink && kind != LinkKind::kXgmi) continue;
    links.nvlinks += cluster_.Link(link).bandwidth / NvLinkBandwidth(generation);
    if (cluster_.KindOfVertex(cluster_.TargetOf(link)) == VertexKind::kNvSwitch)
      links.has_nvswitch = true;
  }
  CountMachine(device, &links);
  return links;
}

uint32_t LibraryMemory::ChannelsOf(uint32_t device, const GroupSpread& spread) {
  const Links& links = LinksOf(device);
  const auto generation =
      GenerationOf(cluster_.DeviceOf(device).compute_capability).value_or(NcclGeneration::kAmpere);
  double rings = links.nvlinks;
  if (spread.machines > 1) {
    // As many NICs as lie beside its members.
    const double share = std::min(1.0, static_cast<double>(spread.inside) / links.devices);
    const auto nics = static_cast<uint32_t>(std::max(1L, std::lround(share * links.nics)));
    rings = nics * ChannelsOfANic(generation, links.nic, nics);
  } else if (links.has_nvswitch) {
    rings = SearchNvSwitch(generation, std::max(1L, std::lround(links.nvlinks)), spread.inside)
                .channels;
  }
  return 2 * std::clamp(static_cast<uint32_t>(std::lround(rings)), 1u, kMostGraphChannels);
}

Bytes LibraryMemory::Of(const Schedule& schedule, const Role& role,
                        const std::vector<uint32_t>& placement, uint32_t device) {
  const DeviceSpec& spec = cluster_.DeviceOf(device);
  if (!IsGpu(spec)) return Bytes(0);
  Bytes taken = kDriver + Bytes((spec.compute_capability >= 90 ? 32 : 8) * kMebi);
  Bytes to_peers;
  for (const auto& [id, uses] : UsesOf(role)) {
    const Communicator& communicator = schedule.communicators[id];
    if (communicator.size() < 2) continue;
    const auto [found, is_new] = spreads_.try_emplace(id);
    if (is_new) found->second = SpreadOf(cluster_, communicator, placement);
    const GroupSpread& spread = found->second;
    const uint32_t channels = ChannelsOf(device, spread);
    if (uses.collectives || uses.to_next)
      taken += channels * (communicator.size() == 2 ? kOfTwo : kOfMore);
    if (uses.to_all)
      to_peers = std::max(
          to_peers, std::bit_ceil(channels) * std::min(spread.inside - 1, kMostPeers) * kOfAPeer);
  }
  return taken + to_peers;
}

}  // namespace rehearse
