#include "topology/fabrics/router.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "topology/fabrics/structure.h"

namespace rehearse {

bool IsOverNvLinks(const Cluster& cluster, const Route& route) {
  return std::all_of(route.links.begin(), route.links.end(),
                     [&](uint32_t link) { return cluster.KindOf(link) == LinkKind::kNvLink; });
}

Router::Router(const Cluster& cluster, const FabricRouting& routing, std::vector<bool> failing)
    : cluster_(cluster), routing_(routing), failing_(std::move(failing)) {
  const ClusterStructure* structure = cluster.structure().get();
  CheckRouting(routing, FabricOf(cluster), structure == nullptr);
  if (structure == nullptr) {
    if (cluster.node_count() > 1)
      for (uint32_t rank = 0; rank < cluster.device_count(); ++rank)
        parts_ = std::max(parts_, static_cast<uint32_t>(Everywhere().NicsOf(rank).size()));
    return;
  }
  variants_.push_back(std::make_unique<MachineWays>(cluster, 0, std::vector<bool>()));
  variant_without_.emplace(std::vector<bool>(), 0);
  variant_of_ = VariantsWithout(false);
  if (!failing_.empty()) variant_round_failures_ = VariantsWithout(true);
  if (!structure->fabric) return;
  rule_ = routing.Over(structure->fabric->routing);
  parts_ = MostExits();
  if (rule_->choice == RouteChoice::kEcmp && IsHashed()) parts_ *= rule_->queue_pairs;
}

Router::~Router() = default;

uint32_t Router::NumberOf(uint64_t phase) {
  if (!rule_ || rule_->choice != RouteChoice::kFlowlet) return 0;
  const uint32_t number =
      phases_.emplace(phase, static_cast<uint32_t>(loads_.size())).first->second;
  if (number == loads_.size()) loads_.emplace_back(cluster_.structure()->link_count);
  return number;
}

bool Router::IsHashed() const {
  return rule_ && ::rehearse::IsHashed(rule_->choice) &&
         HasChoice(*cluster_.structure()->fabric, rule_->choice);
}

size_t Router::links_scanned() const {
  size_t scanned = search_ ? search_->links_scanned() : 0;
  for (const auto& variant : variants_) scanned += variant->links_scanned();
  return scanned;
}

bool Router::MachinesAreAlike() const {
  const ClusterStructure* structure = cluster_.structure().get();
  return structure != nullptr && structure->link_now.empty() && failing_.empty() &&
         cluster_.figures().links->HasEqualMachines();
}

PathSearch& Router::Everywhere() {
  if (!search_) search_ = std::make_unique<PathSearch>(cluster_);
  return *search_;
}

std::vector<uint32_t> Router::VariantsWithout(bool round_failures) {
  const ClusterStructure& structure = *cluster_.structure();
  std::vector<uint32_t> variants;
  if (structure.link_now.empty() && !round_failures) return variants;
  variants.resize(structure.machines);
  bool are_whole = true;
  for (uint32_t machine = 0; machine < structure.machines; ++machine) {
    std::vector<bool> gone(structure.links_per_machine());
    bool is_whole = true;
    for (uint32_t i = 0; i < gone.size(); ++i) {
      const uint32_t now = structure.LinkNow(structure.FirstLinkOf(machine) + i);
      gone[i] = now == ClusterStructure::kGone || (round_failures && failing_[now]);
      is_whole = is_whole && !gone[i];
    }
    if (is_whole) continue;
    are_whole = false;
    const auto [known, is_new] =
        variant_without_.emplace(gone, static_cast<uint32_t>(variants_.size()));
    if (is_new) variants_.push_back(std::make_unique<MachineWays>(cluster_, machine, gone));
    variants[machine] = known->second;
  }
  // The links of the whole ones are numbered as those of the first such machine are.
  const auto whole = std::find(variants.begin(), variants.end(), 0u);
  if (whole != variants.end() && !round_failures)
    variants_[0] = std::make_unique<MachineWays>(
        cluster_, static_cast<uint32_t>(whole - variants.begin()), std::vector<bool>());
  if (are_whole) variants.clear();
  return variants;
}

MachineWays& Router::WaysOf(uint32_t machine, bool round_failures) {
  const std::vector<uint32_t>& variants = round_failures ? variant_round_failures_ : variant_of_;
  return *variants_[variants.empty() ? 0 : variants[machine]];
}

// Machines that lack NICs do not cut what is sent into more parts than whole ones do.
uint32_t Router::MostExits() {
  const ClusterStructure& structure = *cluster_.structure();
  const bool has_whole = variant_of_.empty() ||
                         std::find(variant_of_.begin(), variant_of_.end(), 0u) != variant_of_.end();
  if (has_whole) return variants_[0]->MostExits();
  const uint32_t devices = structure.devices_per_machine;
  const uint32_t each = std::max(1u, (structure.ports() + devices - 1) / devices);
  uint32_t most = 1;
  for (uint32_t machine = 0; machine < structure.machines; ++machine)
    most = std::max(most, WaysOf(machine).MostExits());
  return std::min(most, each);
}

std::optional<Router::Ends> Router::EndsOf(MachineWays& here, uint32_t from_place,
                                           MachineWays& there, uint32_t to_place, uint32_t part) {
  const Fabric& fabric = *cluster_.structure()->fabric;
  const std::vector<Exit>& exits = here.ExitsOf(from_place);
  const std::vector<Exit>& entries = there.ExitsOf(to_place);
  if (exits.empty()) return std::nullopt;
  const Exit& exit = exits[part % exits.size()];
  const uint32_t tree = TreeOf(fabric, exit.port);
  uint32_t before = 0;  // exits of this tree before this one
  for (const Exit& other : exits) {
    if (&other == &exit) break;
    if (TreeOf(fabric, other.port) == tree) ++before;
  }
  const auto arrives = [&](const Exit& entry) { return TreeOf(fabric, entry.port) == tree; };
  const auto count = static_cast<uint32_t>(std::count_if(entries.begin(), entries.end(), arrives));
  if (count == 0) return std::nullopt;
  before %= count;
  auto entry = std::find_if(entries.begin(), entries.end(), arrives);
  for (; before > 0; --before) entry = std::find_if(entry + 1, entries.end(), arrives);
  return Ends{&exit, &*entry};
}

bool Router::IsAmong(const std::vector<bool>& links, uint32_t link) const {
  if (!cluster_.IsTrunk(link)) return links[link];
  const auto cables = cluster_.CablesOf(link);
  return std::all_of(cables.begin(), cables.end(), [&](uint32_t cable) { return links[cable]; });
}

void Router::AppendFabric(uint32_t from_switch, uint32_t to_switch, uint64_t flow, uint32_t phase,
                          std::vector<uint32_t>* links) {
  const ClusterStructure& structure = *cluster_.structure();
  const Fabric& fabric = *structure.fabric;
  const size_t begin = links->size();
  if (IsSprayed(fabric, rule_->choice, from_switch, to_switch)) {
    AppendTrunks(fabric, from_switch, to_switch, links);
    for (size_t i = begin; i < links->size(); ++i) (*links)[i] += cluster_.link_count();
    return;
  }
  AppendPath(fabric, from_switch, to_switch, rule_->choice, flow,
             loads_.empty() ? nullptr : &loads_[phase], links);
  if (!loads_.empty())
    tried_.insert(tried_.end(), links->begin() + static_cast<std::ptrdiff_t>(begin), links->end());
  for (size_t i = begin; i < links->size(); ++i) (*links)[i] = structure.LinkNow((*links)[i]);
}

std::vector<std::string> Router::Fallbacks() {
  std::vector<std::string> fallbacks;
  if (cluster_.structure() == nullptr || !cluster_.structure()->fabric) return fallbacks;
  const ClusterStructure& structure = *cluster_.structure();
  uint32_t down = 0;
  for (uint32_t link = 0; link < structure.first_link; ++link)
    if (structure.LinkNow(link) == ClusterStructure::kGone) ++down;
  if (down > 0)
    fallbacks.push_back(
        fmt::format("without {} of the fabric's {} links", down, structure.first_link));
  if (variant_of_.empty()) return fallbacks;
  std::map<uint32_t, std::vector<uint32_t>> machines;  // by variant
  for (uint32_t machine = 0; machine < structure.machines; ++machine)
    machines[variant_of_[machine]].push_back(machine);
  const bool has_whole = machines.count(0) > 0;
  const auto part_name = [&](uint32_t part) {
    const std::string name = cluster_.VertexAt(structure.FirstVertexOf(0) + part).name;
    return name.substr(name.find('/') + 1);
  };
  for (const auto& [variant, of_variant] : machines) {
    if (variant == 0) continue;
    std::vector<std::string> ways;
    for (uint32_t place = 0; place < structure.devices_per_machine; ++place) {
      const std::vector<Exit>& exits = variants_[variant]->ExitsOf(place);
      const auto is_same = [](const Exit& a, const Exit& b) { return a.port == b.port; };
      if (has_whole && std::equal(exits.begin(), exits.end(), variants_[0]->ExitsOf(place).begin(),
                                  variants_[0]->ExitsOf(place).end(), is_same))
        continue;
      std::vector<std::string> by;
      for (const Exit& exit : exits) by.push_back(part_name(structure.port_vertex[exit.port]));
      ways.push_back(
          fmt::format("{} by {}", part_name(place),
                      by.empty() ? "what others own" : fmt::format("{}", fmt::join(by, " and "))));
    }
    const std::string name = cluster_.NodeOf(of_variant.front() * structure.devices_per_machine);
    const std::string who = of_variant.size() == 1 ? fmt::format("{} lacks links", name)
                                                   : fmt::format("{} and {} more lack links", name,
                                                                 of_variant.size() - 1);
    fallbacks.push_back(ways.empty() ? who : fmt::format("{}: {}", who, fmt::join(ways, ", ")));
  }
  return fallbacks;
}

void Router::TakeBackLoad(uint32_t phase) {
  for (const uint32_t link : tried_) --loads_[phase][link];
  tried_.clear();
}

bool Router::IsCut(uint32_t link, bool round_failures) const {
  if (link == ClusterStructure::kGone) return true;
  if (cluster_.IsTrunk(link) && cluster_.CablesOf(link).empty()) return true;
  return round_failures && IsAmong(failing_, link);
}

bool Router::AppendCrossing(const Crossing& crossing, const Way& first, const Exit& exit,
                            const Exit& entry, std::vector<uint32_t>* links) {
  if (!first.usable || !entry.in.usable) return false;
  const ClusterStructure& structure = *cluster_.structure();
  const Fabric& fabric = *structure.fabric;
  const uint32_t first_switch = SwitchOfPort(fabric, crossing.from, exit.port);
  const uint32_t last_switch = SwitchOfPort(fabric, crossing.to, entry.port);
  const bool all_there = structure.link_now.empty() && !crossing.round_failures;
  const auto begin = static_cast<std::ptrdiff_t>(links->size());
  constexpr int kMostTries = 256;
  const bool has_choice = HasChoice(fabric, rule_->choice) &&
                          !IsSprayed(fabric, rule_->choice, first_switch, last_switch);
  const int tries = has_choice ? kMostTries : 1;
  const auto append_ends = [&](const std::vector<uint32_t>& over_fabric) {
    for (const uint32_t link : first.links)
      links->push_back(structure.LinkNow(structure.FirstLinkOf(crossing.from) + link));
    links->push_back(structure.LinkNow(structure.PortLink(crossing.from, exit.port)));
    links->insert(links->end(), over_fabric.begin(), over_fabric.end());
    links->push_back(structure.LinkNow(structure.PortLink(crossing.to, entry.port) + 1));
    for (const uint32_t link : entry.in.links)
      links->push_back(structure.LinkNow(structure.FirstLinkOf(crossing.to) + link));
    const bool is_cut =
        !all_there && std::any_of(links->begin() + begin, links->end(), [&](uint32_t link) {
          return IsCut(link, crossing.round_failures);
        });
    if (is_cut) links->erase(links->begin() + begin, links->end());
    return !is_cut;
  };
  std::vector<uint32_t> over_fabric;
  for (int i = 0; i < tries; ++i) {
    over_fabric.clear();
    const size_t tried = tried_.size();
    AppendFabric(first_switch, last_switch, i == 0 ? crossing.flow : Mix(crossing.flow + i),
                 crossing.phase, &over_fabric);
    if (!append_ends(over_fabric)) continue;  // its load stays for now, so that others are tried
    if (!crossing.round_failures) tried_.resize(tried);  // a detour carries nothing as yet
    TakeBackLoad(crossing.phase);
    return true;
  }
  TakeBackLoad(crossing.phase);
  for (uint32_t i = 0; i < WaysRound(fabric, first_switch, last_switch); ++i) {
    over_fabric.clear();
    AppendWayRound(fabric, first_switch, last_switch, crossing.flow + i, &over_fabric);
    for (uint32_t& link : over_fabric) link += cluster_.link_count();
    if (append_ends(over_fabric)) return true;
  }
  return false;
}

bool Router::AppendByRail(const Crossing& crossing, uint32_t from_place, uint32_t to_place,
                          uint32_t part, std::vector<uint32_t>* links) {
  const ClusterStructure& structure = *cluster_.structure();
  MachineWays& here = WaysOf(crossing.from, crossing.round_failures);
  const std::vector<Exit>& entries = WaysOf(crossing.to, crossing.round_failures).ExitsOf(to_place);
  for (size_t i = 0; i < entries.size(); ++i) {
    const Exit& entry = entries[(part + i) % entries.size()];
    const Exit* by = nullptr;
    Way first;
    for (uint32_t i_place = 0; i_place < structure.devices_per_machine; ++i_place) {
      // The device at the receiver's place first.
      const uint32_t place = (to_place + i_place) % structure.devices_per_machine;
      for (const Exit& exit : here.ExitsOf(place)) {
        if (TreeOf(*structure.fabric, exit.port) != TreeOf(*structure.fabric, entry.port)) continue;
        Way way = place == from_place ? exit.out : here.OntoExit(from_place, place, exit);
        if (!way.usable || (by != nullptr && way.links.size() >= first.links.size())) continue;
        by = &exit;
        first = std::move(way);
      }
      if (by != nullptr && i_place == 0) break;
    }
    if (by != nullptr && AppendCrossing(crossing, first, *by, entry, links)) return true;
  }
  return false;
}

bool Router::AppendByOthers(const Crossing& crossing, uint32_t from_place, uint32_t to_place,
                            std::vector<uint32_t>* links) {
  const Fabric& fabric = *cluster_.structure()->fabric;
  const auto all_of = [&](uint32_t machine, uint32_t place) {
    MachineWays& ways = WaysOf(machine, crossing.round_failures);
    std::vector<const Exit*> all;
    for (const Exit& exit : ways.ExitsOf(place)) all.push_back(&exit);
    for (const Exit& exit : ways.OtherExitsOf(place)) all.push_back(&exit);
    return all;
  };
  const std::vector<const Exit*> exits = all_of(crossing.from, from_place);
  const std::vector<const Exit*> entries = all_of(crossing.to, to_place);
  // Those nearest to both ends first.
  for (size_t sum = 0; sum + 1 < exits.size() + entries.size(); ++sum) {
    for (size_t i = 0; i < exits.size() && i <= sum; ++i) {
      if (sum - i >= entries.size()) continue;
      const Exit& exit = *exits[i];
      const Exit& entry = *entries[sum - i];
      if (TreeOf(fabric, exit.port) != TreeOf(fabric, entry.port)) continue;
      if (AppendCrossing(crossing, exit.out, exit, entry, links)) return true;
    }
  }
  return false;
}

bool Router::AppendByStructure(uint32_t from_rank, uint32_t to_rank, bool round_failures,
                               uint32_t phase, uint32_t queue_pair, std::vector<uint32_t>* links) {
  const ClusterStructure& structure = *cluster_.structure();
  const uint32_t from = from_rank / structure.devices_per_machine;
  const uint32_t to = to_rank / structure.devices_per_machine;
  MachineWays& here = WaysOf(from, round_failures);
  MachineWays& there = WaysOf(to, round_failures);
  const uint32_t from_place = from_rank % structure.devices_per_machine;
  const uint32_t to_place = to_rank % structure.devices_per_machine;
  if (from == to) {
    const Way& way = here.Between(from_place, to_place);
    for (const uint32_t link : way.links)
      links->push_back(structure.LinkNow(structure.FirstLinkOf(from) + link));
    if (way.usable || !structure.fabric) return way.usable;
  }
  const Crossing crossing = {from, to, FlowOf(from_rank, to_rank, queue_pair), phase,
                             round_failures};
  if (const auto ends = EndsOf(here, from_place, there, to_place, queue_pair)) {
    if (AppendCrossing(crossing, ends->exit->out, *ends->exit, *ends->entry, links)) return true;
  } else if (routing_.pxn && AppendByRail(crossing, from_place, to_place, queue_pair, links)) {
    return true;
  }
  return AppendByOthers(crossing, from_place, to_place, links);
}

bool Router::AppendWay(uint32_t from_rank, uint32_t to_rank, std::vector<uint32_t>* links) {
  if (cluster_.structure() == nullptr || parts_ != 1 || !failing_.empty()) return false;
  if (rule_ && rule_->choice == RouteChoice::kFlowlet) return false;
  return AppendByStructure(from_rank, to_rank, false, 0, 0, links);
}

std::vector<uint32_t> Router::Find(uint32_t from_rank, uint32_t to_rank, bool round_failures,
                                   uint32_t phase, uint32_t queue_pair) {
  std::vector<uint32_t> links;
  if (cluster_.structure() != nullptr) {
    if (AppendByStructure(from_rank, to_rank, round_failures, phase, queue_pair, &links))
      return links;
    ++ways_searched_;
  }
  return Everywhere().BetweenRanks(from_rank, to_rank,
                                   round_failures ? failing_ : std::vector<bool>(), queue_pair);
}

bool Router::MeetsFailure(const Route& route) const {
  if (failing_.empty()) return false;
  const auto fails = [this](uint32_t link) { return IsAmong(failing_, link); };
  return std::any_of(route.links.begin(), route.links.end(), fails) ||
         std::any_of(route.others.begin(), route.others.end(), [&](const auto& other) {
           return std::any_of(other.begin(), other.end(), fails);
         });
}

uint32_t& Router::SlotOf(uint32_t from_rank, uint32_t to_rank, uint32_t phase) {
  const auto find = [&](uint32_t from, uint32_t to, uint32_t in_phase) -> PairSlot& {
    const size_t mask = pairs_.size() - 1;
    size_t i = (Mix(uint64_t{from} << 32 | to) + in_phase) & mask;
    while (pairs_[i].route != kNone &&
           (pairs_[i].from != from || pairs_[i].to != to || pairs_[i].phase != in_phase))
      i = (i + 1) & mask;
    return pairs_[i];
  };
  if (2 * routes_.size() >= pairs_.size()) {
    std::vector<PairSlot> old(std::max<size_t>(64, 2 * pairs_.size()));
    old.swap(pairs_);
    for (const PairSlot& pair : old)
      if (pair.route != kNone) find(pair.from, pair.to, pair.phase) = pair;
  }
  PairSlot& slot = find(from_rank, to_rank, phase);
  slot.from = from_rank;
  slot.to = to_rank;
  slot.phase = phase;
  return slot.route;
}

BytesPerSecond Router::AloneOn(const Route& route) const {
  std::optional<BytesPerSecond> narrowest;
  const auto look = [&](uint32_t link, double parts) {
    const BytesPerSecond rate = cluster_.Link(link).Capacity() * (parts_ / parts);
    narrowest = std::min(narrowest.value_or(rate), rate);
  };
  if (route.others.empty()) {
    for (const uint32_t link : route.links) look(link, parts_);
    return *narrowest;
  }
  std::map<uint32_t, uint32_t> parts;
  ForEachCrossing(route, parts_,
                  [&](uint32_t link, uint32_t crossing) { parts[link] += crossing; });
  for (const auto& [link, crossing] : parts) look(link, crossing);
  return *narrowest;
}

void Router::ForgetMany() {
  constexpr size_t kMany = size_t{1} << 16;
  const bool depends_on_load = rule_ && rule_->choice == RouteChoice::kFlowlet;
  if (routes_.size() < kMany || depends_on_load || !MachinesAreAlike()) return;
  routes_.clear();
  std::fill(pairs_.begin(), pairs_.end(), PairSlot());
}

const Route& Router::Between(uint32_t from_rank, uint32_t to_rank, uint64_t phase) {
  CHECK_NE(from_rank, to_rank);
  CHECK_LT(from_rank, cluster_.device_count());
  CHECK_LT(to_rank, cluster_.device_count());
  const uint32_t number = NumberOf(phase);
  uint32_t& known = SlotOf(from_rank, to_rank, number);
  if (known != kNone) return routes_[known];
  known = static_cast<uint32_t>(routes_.size());
  Route& route = routes_.emplace_back();
  route.links = Find(from_rank, to_rank, false, number);
  route.crosses_nodes = cluster_.NodeIndexOf(from_rank) != cluster_.NodeIndexOf(to_rank);
  if (route.crosses_nodes)
    for (uint32_t i = 1; i < parts_; ++i)
      route.others.push_back(Find(from_rank, to_rank, false, number, i));
  for (const uint32_t link : route.links) route.latency += cluster_.Link(link).latency;
  route.bandwidth = AloneOn(route);
  if (MeetsFailure(route)) route.detour = Find(from_rank, to_rank, true, number);
  return route;
}

std::optional<uint32_t> Router::RailProxy(uint32_t from_rank, uint32_t to_rank) {
  const Fabric* fabric = FabricOf(cluster_);
  const bool may_change_rails = !routing_.pxn || routing_.cross_nic;
  if (may_change_rails || fabric == nullptr || !HasRails(*fabric)) return std::nullopt;
  const uint32_t devices = cluster_.structure()->devices_per_machine;
  const uint32_t from = from_rank / devices;
  const uint32_t proxy = from * devices + to_rank % devices;
  if (from == to_rank / devices || proxy == from_rank) return std::nullopt;
  MachineWays& here = WaysOf(from);
  const std::vector<Exit>& own = here.ExitsOf(from_rank % devices);
  const std::vector<Exit>& others = here.ExitsOf(proxy % devices);
  const std::vector<Exit>& entries = WaysOf(to_rank / devices).ExitsOf(to_rank % devices);
  if (own.empty() || others.empty() || entries.empty()) return std::nullopt;
  if (AreOnOneRail(*fabric, own.front().port, entries.front().port)) return std::nullopt;
  if (!AreOnOneRail(*fabric, others.front().port, entries.front().port)) return std::nullopt;
  if (!IsOverNvLinks(cluster_, Between(from_rank, proxy))) return std::nullopt;
  return proxy;
}

const Route& Router::AlongRail(uint32_t from_rank, uint32_t to_rank, uint64_t phase) {
  const std::optional<uint32_t> proxy = RailProxy(from_rank, to_rank);
  if (!proxy) return Between(from_rank, to_rank, phase);
  constexpr uint32_t kByRail = 1u << 31;  // tells such pairs from the others
  CHECK_LT(cluster_.device_count(), kByRail);
  const Route& inside = Between(from_rank, *proxy);
  const Route& across = Between(*proxy, to_rank, phase);
  const uint32_t number = NumberOf(phase);
  uint32_t& known = SlotOf(from_rank | kByRail, to_rank, number);
  if (known != kNone) return routes_[known];
  known = static_cast<uint32_t>(routes_.size());
  Route& route = routes_.emplace_back(across);
  route.links.insert(route.links.begin(), inside.links.begin(), inside.links.end());
  for (std::vector<uint32_t>& other : route.others)
    other.insert(other.begin(), inside.links.begin(), inside.links.end());
  route.latency += inside.latency;
  route.bandwidth = std::min(route.bandwidth, inside.bandwidth);
  route.detour.clear();
  if (MeetsFailure(route)) route.detour = Find(from_rank, to_rank, true, number);
  return route;
}

}  // namespace rehearse
