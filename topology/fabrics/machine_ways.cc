#include "topology/fabrics/machine_ways.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "topology/cluster/builder.h"
#include "topology/fabrics/path_class.h"
#include "topology/fabrics/structure.h"

namespace rehearse {

MachineWays::MachineWays(const Cluster& cluster, uint32_t machine, std::vector<bool> gone)
    : cluster_(cluster), machine_(machine), gone_(std::move(gone)) {
  const ClusterStructure& structure = *cluster_.structure();
  exits_.resize(structure.devices_per_machine);
  others_.resize(structure.devices_per_machine);
  ways_.resize(size_t{structure.devices_per_machine} * structure.devices_per_machine);
}

bool MachineWays::HasPort(uint32_t port) const {
  const uint32_t cable = cluster_.structure()->inner_links + 2 * port;
  return !IsGone(cable) && !IsGone(cable + 1);
}

// The machine's parts in order, after a hub that all its ports are joined to, so that NICs have
// their speeds. No way leads over the hub.
PathSearch& MachineWays::Search() {
  if (search_) return *search_;
  const ClusterStructure& structure = *cluster_.structure();
  const VertexId first = structure.FirstVertexOf(machine_);
  ClusterBuilder builder("machine");
  for (const DeviceSpec& spec : cluster_.device_specs()) builder.AddDeviceSpec(spec);
  const VertexId hub = builder.AddVertex({"hub", VertexKind::kSwitch, ""});
  uint32_t rank = machine_ * structure.devices_per_machine;
  for (uint32_t i = 0; i < structure.vertices_per_machine; ++i) {
    const Vertex part = cluster_.VertexAt(first + i);
    builder.AddVertex(part, part.kind == VertexKind::kDevice ? cluster_.SpecOf(rank++) : 0);
  }
  std::vector<uint32_t> ports(structure.vertices_per_machine);  // as drawn
  std::vector<uint32_t> left(structure.vertices_per_machine);
  for (uint32_t port = 0; port < structure.ports(); ++port) {
    ++ports[structure.port_vertex[port]];
    if (HasPort(port)) ++left[structure.port_vertex[port]];
  }
  const auto is_dead = [&](VertexId vertex) {
    const size_t part = vertex - first;
    return cluster_.KindOfVertex(vertex) == VertexKind::kNic && ports[part] > 0 && left[part] == 0;
  };
  const auto part_of = [&](VertexId vertex) { return hub + 1 + (vertex - first); };
  for (uint32_t i = 0; i < structure.inner_links; ++i) {
    if (IsGone(i)) continue;
    const uint32_t link = structure.LinkNow(structure.FirstLinkOf(machine_) + i);
    const VertexId from = cluster_.SourceOf(link);
    const VertexId to = cluster_.TargetOf(link);
    if (is_dead(from) || is_dead(to)) continue;
    const LinkFigures& figures = FiguresForRoutes(cluster_, link);
    ClusterLink drawn;
    drawn.kind = cluster_.KindOf(link);
    drawn.bandwidth = figures.bandwidth;
    drawn.latency = figures.latency;
    builder.AddLink(part_of(from), part_of(to), drawn);
    drawn_.push_back(i);
  }
  for (uint32_t port = 0; port < structure.ports(); ++port) {
    if (!HasPort(port)) continue;
    const LinkFigures& figures =
        FiguresForRoutes(cluster_, structure.LinkNow(structure.PortLink(machine_, port)));
    ClusterLink cable;
    cable.bandwidth = figures.bandwidth;
    cable.latency = figures.latency;
    builder.AddLinks(part_of(first + structure.port_vertex[port]), hub, cable);
  }
  is_cable_.assign(builder.link_count(), false);
  std::fill(is_cable_.begin() + static_cast<std::ptrdiff_t>(drawn_.size()), is_cable_.end(), true);
  builder.set_structure(nullptr, {}, true);
  model_ = std::make_unique<Cluster>(builder.Finish());
  search_ = std::make_unique<PathSearch>(*model_);
  return *search_;
}

// Between two parts of the machine, whose own NICs are given as well.
MachineWays::Way MachineWays::Find(uint32_t from, uint32_t to, uint32_t from_nic, uint32_t to_nic) {
  PathSearch& search = Search();
  const auto vertex = [](uint32_t part) { return part == kNone ? kNoVertex : VertexId{part} + 1; };
  Way way = {true, false, {}};
  if (drawn_.empty()) return way;
  way.links = search.Between(vertex(from), vertex(to), vertex(from_nic), vertex(to_nic), is_cable_);
  way.usable = !way.links.empty();
  for (uint32_t& link : way.links) link = drawn_[link];
  return way;
}

uint32_t MachineWays::NicOf(uint32_t place) {
  const std::vector<VertexId>& nics = Search().NicsOf(place);
  return nics.empty() ? kNone : static_cast<uint32_t>(nics.front() - 1);
}

const MachineWays::Way& MachineWays::Between(uint32_t from_place, uint32_t to_place) {
  Way& way = ways_[from_place * cluster_.structure()->devices_per_machine + to_place];
  if (!way.known) way = Find(from_place, to_place, NicOf(from_place), NicOf(to_place));
  return way;
}

MachineWays::Exit MachineWays::ExitBy(uint32_t place, uint32_t port) {
  Exit exit;
  exit.port = port;
  exit.out.known = exit.in.known = true;
  const uint32_t part = cluster_.structure()->port_vertex[port];
  if (part == place) return exit;
  exit.out = Find(place, part, part, part);
  exit.in = Find(part, place, part, part);
  return exit;
}

const std::vector<MachineWays::Exit>& MachineWays::ExitsOf(uint32_t place) {
  std::optional<std::vector<Exit>>& known = exits_[place];
  if (known) return *known;
  const ClusterStructure& structure = *cluster_.structure();
  known.emplace();
  // Numbered one higher than in the machine.
  std::vector<VertexId> leaving = Search().NicsOf(place);
  if (leaving.empty()) leaving.push_back(VertexId{place} + 1);
  for (const VertexId vertex : leaving) {
    for (uint32_t port = 0; port < structure.ports(); ++port)
      if (structure.port_vertex[port] + 1 == vertex && HasPort(port))
        known->push_back(ExitBy(place, port));
  }
  return *known;
}

const std::vector<MachineWays::Exit>& MachineWays::OtherExitsOf(uint32_t place) {
  std::optional<std::vector<Exit>>& known = others_[place];
  if (known) return *known;
  const ClusterStructure& structure = *cluster_.structure();
  const uint32_t first = structure.FirstLinkOf(machine_);
  std::vector<std::tuple<PathClass, Seconds, uint32_t>> nearest;
  std::vector<Exit> found;
  for (uint32_t port = 0; port < structure.ports(); ++port) {
    const std::vector<Exit>& own = ExitsOf(place);
    const bool is_own =
        std::any_of(own.begin(), own.end(), [&](const Exit& exit) { return exit.port == port; });
    if (is_own || !HasPort(port)) continue;
    Exit exit = ExitBy(place, port);
    if (!exit.out.usable || !exit.in.usable) continue;
    PathClass worst = PathClass::kNvLink;
    Seconds latency;
    for (const uint32_t link : exit.out.links) {
      const uint32_t now = structure.LinkNow(first + link);
      worst = std::max(
          worst, ClassOfStep(cluster_.KindOf(now), cluster_.KindOfVertex(cluster_.TargetOf(now))));
      latency += FiguresForRoutes(cluster_, now).latency;
    }
    nearest.emplace_back(worst, latency, static_cast<uint32_t>(found.size()));
    found.push_back(std::move(exit));
  }
  std::sort(nearest.begin(), nearest.end());
  known.emplace();
  for (const auto& [worst, latency, position] : nearest)
    known->push_back(std::move(found[position]));
  return *known;
}

MachineWays::Way MachineWays::OntoExit(uint32_t from_place, uint32_t place, const Exit& exit) {
  const ClusterStructure& structure = *cluster_.structure();
  Way way = Between(from_place, place);
  const uint32_t first = structure.FirstLinkOf(machine_);
  const bool is_over_nvlinks =
      way.usable && std::all_of(way.links.begin(), way.links.end(), [&](uint32_t link) {
        return cluster_.KindOf(structure.LinkNow(first + link)) == LinkKind::kNvLink;
      });
  if (is_over_nvlinks && exit.out.usable) {
    way.links.insert(way.links.end(), exit.out.links.begin(), exit.out.links.end());
    return way;
  }
  const uint32_t nic = structure.port_vertex[exit.port];
  return Find(from_place, nic, NicOf(from_place), nic);
}

uint32_t MachineWays::MostExits() {
  const ClusterStructure& structure = *cluster_.structure();
  if (structure.ports() <= 1) return 1;
  std::vector<uint32_t> ports(structure.vertices_per_machine);
  for (uint32_t port = 0; port < structure.ports(); ++port)
    if (HasPort(port)) ++ports[structure.port_vertex[port]];
  uint32_t most = 1;
  for (uint32_t place = 0; place < structure.devices_per_machine; ++place) {
    uint32_t own = ports[place];
    for (const VertexId nic : Search().NicsOf(place)) own += ports[nic - 1];
    most = std::max(most, own);
  }
  return most;
}

}  // namespace rehearse
