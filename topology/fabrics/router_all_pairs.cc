// What all pairs of a group cross, by arithmetic: a way between machines leads out of the sender's,
// from its switch to the receiver's, and in, so members and pairs of switches determine everything;
// only where ways are hashed does every pair choose its own cables, and no more than these are
// looked at for each.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "topology/fabrics/router.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

// The two longest from different machines.
class LongestTwo {
 public:
  void Add(uint32_t machine, Seconds latency) {
    if (machine == two_[0].machine || two_[0].machine == kNone) {
      two_[0] = {machine, std::max(latency, two_[0].latency)};
    } else if (machine == two_[1].machine || two_[1].machine == kNone ||
               latency > two_[1].latency) {
      two_[1] = {machine,
                 machine == two_[1].machine ? std::max(latency, two_[1].latency) : latency};
    }
    if (two_[1].machine != kNone && two_[1].latency > two_[0].latency) std::swap(two_[0], two_[1]);
  }
  // Nothing if all of both are in one machine.
  std::optional<Seconds> With(const LongestTwo& other) const {
    std::optional<Seconds> longest;
    for (const End& a : two_) {
      for (const End& b : other.two_) {
        if (a.machine == kNone || b.machine == kNone || a.machine == b.machine) continue;
        longest = std::max(longest.value_or(Seconds(0)), a.latency + b.latency);
      }
    }
    return longest;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  struct End {
    uint32_t machine = kNone;
    Seconds latency;
  };
  std::array<End, 2> two_;
};

struct AtSwitch {
  uint32_t members = 0;
  LongestTwo out;
  LongestTwo in;
};

// Where what senders of one place send to a rank arrives.
struct Arrival {
  uint32_t leaf = 0;
  uint32_t rank = 0;
  uint32_t machine = 0;
  Seconds latency;  // from the leaf on
};

}  // namespace

std::optional<Seconds> Router::VisitAllPairs(const std::vector<uint32_t>& ranks,
                                             const VisitLink& visit) {
  constexpr uint64_t kMostCrossings = uint64_t{1} << 30;  // they are counted with 32 bits
  if (!MachinesAreAlike() || uint64_t{ranks.size()} * ranks.size() * parts_ > kMostCrossings)
    return std::nullopt;
  const ClusterStructure& structure = *cluster_.structure();
  if (rule_ && rule_->choice == RouteChoice::kFlowlet) return std::nullopt;
  if (IsHashed() ? !std::holds_alternative<Clos>(structure.fabric->kind) : parts_ != 1)
    return std::nullopt;
  PlacesByMachine places;
  for (const uint32_t rank : ranks)
    places[rank / structure.devices_per_machine].push_back(rank % structure.devices_per_machine);
  if (!structure.fabric && places.size() > 1) return std::nullopt;
  // Ways from one tree to another begin inside the machine.
  if (structure.fabric && TreeOf(*structure.fabric, structure.ports() - 1) > 0) return std::nullopt;
  MachineWays& ways = WaysOf(0);  // all are alike
  const auto is_usable = [](const Exit& exit) { return exit.out.usable && exit.in.usable; };
  for (const auto& [machine, own] : places) {
    for (const uint32_t place : own) {
      if (places.size() > 1) {
        const std::vector<Exit>& exits = ways.ExitsOf(place);
        if (exits.empty() || !std::all_of(exits.begin(), exits.end(), is_usable))
          return std::nullopt;
      }
      for (const uint32_t other : own)
        if (other != place && !ways.Between(place, other).usable) return std::nullopt;
    }
  }

  Seconds longest;
  for (const auto& [machine, own] : places) {
    const uint32_t first = structure.FirstLinkOf(machine);
    for (const uint32_t place : own) {
      for (const uint32_t other : own) {
        if (other == place) continue;
        Seconds latency;
        for (const uint32_t link : ways.Between(place, other).links) {
          visit(first + link, parts_);
          latency += cluster_.LatencyOf(first + link);
        }
        longest = std::max(longest, latency);
      }
    }
  }
  if (places.size() == 1) return longest;
  return std::max(longest,
                  IsHashed() ? VisitHashedPairs(places, visit) : VisitSprayedPairs(places, visit));
}

Seconds Router::VisitSprayedPairs(const PlacesByMachine& places, const VisitLink& visit) {
  const ClusterStructure& structure = *cluster_.structure();
  MachineWays& ways = WaysOf(0);
  size_t ranks = 0;
  for (const auto& [machine, own] : places) ranks += own.size();
  const auto latency_of = [&](const std::vector<uint32_t>& links, uint32_t first) {
    Seconds latency;
    for (const uint32_t link : links) latency += cluster_.LatencyOf(first + link);
    return latency;
  };
  std::map<uint32_t, AtSwitch> switches;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> within;  // pairs of switches, of one machine
  for (const auto& [machine, own] : places) {
    const uint32_t first = structure.FirstLinkOf(machine);
    const auto outside = static_cast<uint32_t>(ranks - own.size());
    for (const uint32_t place : own) {
      const Exit& exit = ways.ExitsOf(place).front();
      const uint32_t cable = structure.PortLink(machine, exit.port);
      for (const uint32_t link : exit.out.links) visit(first + link, outside);
      visit(cable, outside);
      visit(cable + 1, outside);
      for (const uint32_t link : exit.in.links) visit(first + link, outside);
      const uint32_t own_switch = SwitchOfPort(*structure.fabric, machine, exit.port);
      AtSwitch& at = switches[own_switch];
      ++at.members;
      at.out.Add(machine, latency_of(exit.out.links, first) + cluster_.LatencyOf(cable));
      at.in.Add(machine, cluster_.LatencyOf(cable + 1) + latency_of(exit.in.links, first));
      for (const uint32_t other : own)
        ++within[{own_switch,
                  SwitchOfPort(*structure.fabric, machine, ways.ExitsOf(other).front().port)}];
    }
  }
  Seconds longest;
  std::vector<uint32_t> links;
  for (const auto& [from, sender] : switches) {
    for (const auto& [to, receiver] : switches) {
      uint32_t pairs = sender.members * receiver.members;
      const auto of_one = within.find({from, to});
      if (of_one != within.end()) pairs -= of_one->second;
      if (pairs == 0) continue;
      links.clear();
      AppendFabric(from, to, 0, 0, &links);
      Seconds latency;
      for (const uint32_t link : links) {
        visit(link, pairs);
        latency += cluster_.LatencyOf(link);
      }
      if (const auto ends = sender.out.With(receiver.in))
        longest = std::max(longest, *ends + latency);
    }
  }
  return longest;
}

Seconds Router::VisitHashedPairs(const PlacesByMachine& places, const VisitLink& visit) {
  const ClusterStructure& structure = *cluster_.structure();
  const Fabric& fabric = *structure.fabric;
  const Clos& clos = std::get<Clos>(fabric.kind);
  MachineWays& ways = WaysOf(0);
  size_t ranks = 0;
  std::map<uint32_t, std::vector<uint32_t>> machines_with;  // by place
  for (const auto& [machine, own] : places) {
    ranks += own.size();
    for (const uint32_t place : own) machines_with[place].push_back(machine);
  }
  const auto visit_all = [&](const std::vector<uint32_t>& links, uint32_t first, size_t times) {
    Seconds latency;
    for (const uint32_t link : links) {
      if (times > 0) visit(first + link, static_cast<uint32_t>(times));
      latency += cluster_.LatencyOf(first + link);
    }
    return latency;
  };
  std::vector<uint32_t> crossings(structure.first_link);  // of cables between switches
  std::vector<Seconds> latencies(structure.first_link);
  for (uint32_t link = 0; link < structure.first_link; ++link)
    latencies[link] = cluster_.LatencyOf(link);

  // All that senders of one place send in one part leaves and arrives by the same ports.
  Seconds longest;
  std::vector<Arrival> arrivals;
  const auto send = [&](uint32_t place, uint32_t part, const std::vector<uint32_t>& senders) {
    arrivals.clear();
    for (const auto& [machine, own] : places) {
      const bool sends = std::binary_search(senders.begin(), senders.end(), machine);
      const size_t times = senders.size() - (sends ? 1 : 0);
      for (const uint32_t to_place : own) {
        const Exit& entry = *EndsOf(ways, place, ways, to_place, part)->entry;
        const uint32_t cable = structure.PortLink(machine, entry.port) + 1;
        const Seconds latency = visit_all({cable}, 0, times) +
                                visit_all(entry.in.links, structure.FirstLinkOf(machine), times);
        arrivals.push_back({SwitchOfPort(fabric, machine, entry.port),
                            machine * structure.devices_per_machine + to_place, machine, latency});
      }
    }
    std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
      return std::tie(a.leaf, a.rank) < std::tie(b.leaf, b.rank);
    });
    const std::vector<Exit>& exits = ways.ExitsOf(place);
    const Exit& exit = exits[part % exits.size()];
    for (const uint32_t machine : senders) {
      const uint32_t rank = machine * structure.devices_per_machine + place;
      const size_t outside = ranks - places.at(machine).size();
      const uint32_t cable = structure.PortLink(machine, exit.port);
      const Seconds out = visit_all(exit.out.links, structure.FirstLinkOf(machine), outside) +
                          visit_all({cable}, 0, outside);
      const uint32_t leaf = SwitchOfPort(fabric, machine, exit.port);
      for (size_t begin = 0, end = 0; begin < arrivals.size(); begin = end) {
        const HashedWays between(clos, leaf, arrivals[begin].leaf);
        for (; end < arrivals.size() && arrivals[end].leaf == arrivals[begin].leaf; ++end) {
          const Arrival& arrival = arrivals[end];
          if (arrival.machine == machine) continue;
          Seconds latency = out + arrival.latency;
          between.ForEachLink(FlowOf(rank, arrival.rank, part), [&](uint32_t link) {
            ++crossings[link];
            latency += latencies[link];
          });
          if (part == 0) longest = std::max(longest, latency);  // as Route::latency
        }
      }
    }
  };
  for (const auto& [place, senders] : machines_with)
    for (uint32_t part = 0; part < parts_; ++part) send(place, part, senders);
  for (uint32_t link = 0; link < structure.first_link; ++link)
    if (crossings[link] > 0) visit(link, crossings[link]);
  return longest;
}

}  // namespace rehearse
