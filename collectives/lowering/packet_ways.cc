#include "collectives/lowering/packet_ways.h"

#include <algorithm>
#include <utility>

#include "sim/base/error.h"
#include "sim/packets/packet_chains.h"

namespace rehearse {
namespace {

constexpr uint32_t kNotAsked = 0xfffffffeu;
// Ports are counted up and bundles down until all are known.
constexpr uint32_t kFirstBundle = 0xfffffff0u;

uint64_t OnLane(uint32_t link, uint32_t lane) { return uint64_t{lane} << 32 | link; }

}  // namespace

PacketWays::PacketWays(const Cluster& cluster, const TransferTable& table, uint32_t ranks,
                       const PacketSettings& settings)
    : cluster_(cluster),
      table_(table),
      ranks_(ranks),
      cable_delay_(ToTime(settings.cable_delay)),
      lanes_(settings.lanes),
      set_of_transfer_(table.transfers.size() * (settings.lanes.size() + 1), kNotAsked) {
  program_.options = settings.options;
  program_.remembers = settings.remembers;
}

uint32_t PacketWays::LaneOf(const std::string& communicator) const {
  const auto found = std::find(lanes_.begin(), lanes_.end(), communicator);
  return found == lanes_.end() ? 0 : static_cast<uint32_t>(found - lanes_.begin()) + 1;
}

uint32_t PacketWays::SetOf(uint32_t transfer, uint32_t lane) {
  uint32_t& known = set_of_transfer_[transfer * (lanes_.size() + 1) + lane];
  if (known != kNotAsked) return known;
  const Transfer& what = table_.transfers[transfer];
  if (!CrossesNetwork(what)) return known = kNone;
  if (what.from >= ranks_ || what.to >= ranks_)
    throw Error(
        "fidelity packet carries messages from rank to rank; where switches of the network add, "
        "choose another algorithm or fidelity step");
  known = program_.sets();
  const VertexId origin = cluster_.devices()[what.from];
  std::vector<uint32_t> links;
  Time longest;
  const auto finish = [&] { longest = std::max(longest, AddWay(links, lane)); };
  for (uint32_t use = what.use_begin; use < what.use_end; ++use) {
    const uint32_t link = table_.uses[use].link.index();
    if (!links.empty() && !cluster_.IsTrunk(link) && cluster_.SourceOf(link) == origin) {
      finish();
      links.clear();
    }
    links.push_back(link);
  }
  finish();
  program_.parts.push_back(table_.uses[what.use_begin].multiplicity);
  program_.set_begin.push_back(program_.wiring.flows());
  const bool hides_delays = ToTime(what.step_latency) < longest;
  program_.wiring.hides_delays.resize(program_.wiring.flows(), hides_delays);
  delays_.push_back(hides_delays ? Time() : longest);
  return known;
}

PacketProgram PacketWays::Take() {
  const auto ports = static_cast<uint32_t>(program_.wiring.ports.size());
  const auto bundles = static_cast<uint32_t>(program_.wiring.bundles.size());
  for (uint32_t& hop : program_.wiring.hops)
    if (hop > kFirstBundle - bundles) hop = ports + (kFirstBundle - hop);
  program_.wiring = WithoutChains(std::move(program_.wiring));
  return std::move(program_);
}

bool PacketWays::CrossesNetwork(const Transfer& transfer) const {
  for (uint32_t use = transfer.use_begin; use < transfer.use_end; ++use)
    if (cluster_.KindOf(table_.uses[use].link.index()) == LinkKind::kNetwork) return true;
  return false;
}

Time PacketWays::AddWay(const std::vector<uint32_t>& links, uint32_t lane) {
  Time delay;
  std::vector<uint32_t> at;  // where a packet may stand, as the cluster numbers vertices
  for (const uint32_t link : links) {
    if (cluster_.KindOf(link) == LinkKind::kNetwork) delay += cable_delay_;
    bool is_bundle = cluster_.IsTrunk(link);
    std::vector<uint32_t> next;
    if (is_bundle) {
      std::vector<uint32_t> from;
      for (const uint32_t cable : cluster_.CablesOf(link)) {
        const auto source = static_cast<uint32_t>(cluster_.SourceOf(cable));
        if (!std::binary_search(at.begin(), at.end(), source)) continue;
        from.push_back(source);
        next.push_back(static_cast<uint32_t>(cluster_.TargetOf(cable)));
      }
      std::sort(from.begin(), from.end());
      from.erase(std::unique(from.begin(), from.end()), from.end());
      is_bundle = from == at;
    }
    if (!is_bundle) next = {static_cast<uint32_t>(cluster_.TargetOf(link))};
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    at = std::move(next);
    program_.wiring.hops.push_back(is_bundle ? BundleOf(link, lane) : PortOf(link, lane));
  }
  program_.wiring.way_begin.push_back(static_cast<uint32_t>(program_.wiring.hops.size()));
  return delay;
}

uint32_t PacketWays::PortOf(uint32_t link, uint32_t lane) {
  // Lanes refer to their cable's first, which has to be there before them.
  const uint32_t cable = lane == 0 ? PacketPort::kNone : PortOf(link, 0);
  const auto [known, is_new] =
      ports_.emplace(OnLane(link, lane), static_cast<uint32_t>(program_.wiring.ports.size()));
  if (is_new) {
    PacketPort port;
    port.cable_of = cable;
    port.priority = lane == 0 ? static_cast<uint32_t>(lanes_.size()) : lane - 1;
    port.bytes_per_second = cluster_.Link(link).Capacity().value();
    if (cluster_.KindOf(link) == LinkKind::kNetwork) port.delay = cable_delay_;
    port.from = VertexOf(cluster_.SourceOf(link));
    port.to = VertexOf(cluster_.TargetOf(link));
    port.name = cluster_.LinkName(link);
    if (lane > 0) port.name += " (" + lanes_[lane - 1] + ")";
    program_.wiring.ports.push_back(std::move(port));
  }
  return known->second;
}

uint32_t PacketWays::BundleOf(uint32_t trunk, uint32_t lane) {
  const auto [known, is_new] = bundles_.emplace(
      OnLane(trunk, lane), kFirstBundle - static_cast<uint32_t>(program_.wiring.bundles.size()));
  if (is_new) {
    std::vector<uint32_t> ports;
    for (const uint32_t cable : cluster_.CablesOf(trunk)) ports.push_back(PortOf(cable, lane));
    program_.wiring.bundles.push_back(std::move(ports));
  }
  return known->second;
}

uint32_t PacketWays::VertexOf(VertexId vertex) {
  const auto [known, is_new] =
      vertices_.emplace(vertex, static_cast<uint32_t>(program_.wiring.is_switch.size()));
  if (is_new)
    program_.wiring.is_switch.push_back(cluster_.KindOfVertex(vertex) == VertexKind::kSwitch);
  return known->second;
}

}  // namespace rehearse
