// What all pairs of a group cross, by arithmetic: a way between machines leads out of the sender's,
// from its switch to the receiver's, and in, so members and pairs of switches determine everything.
#include <algorithm>
#include <array>
#include <map>

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

}  // namespace

std::optional<Seconds> Router::VisitAllPairs(const std::vector<uint32_t>& ranks,
                                             const std::function<void(uint32_t, uint32_t)>& visit) {
  constexpr size_t kMostRanks = 1u << 15;  // counts of pairs are 32 bits
  if (!MachinesAreAlike() || parts_ != 1 || ranks.size() > kMostRanks) return std::nullopt;
  const ClusterStructure& structure = *cluster_.structure();
  if (IsHashed() || (rule_ && rule_->choice == RouteChoice::kFlowlet)) return std::nullopt;
  std::map<uint32_t, std::vector<uint32_t>> places;  // by machine
  for (const uint32_t rank : ranks)
    places[rank / structure.devices_per_machine].push_back(rank % structure.devices_per_machine);
  if (!structure.fabric && places.size() > 1) return std::nullopt;
  // Ways from one tree to another begin inside the machine.
  if (structure.fabric && TreeOf(*structure.fabric, structure.ports() - 1) > 0) return std::nullopt;
  MachineWays& ways = WaysOf(0);  // all are alike
  for (const auto& [machine, own] : places) {
    for (const uint32_t place : own) {
      if (places.size() > 1) {
        const std::vector<MachineWays::Exit>& exits = ways.ExitsOf(place);
        if (exits.empty() || !exits.front().out.usable || !exits.front().in.usable)
          return std::nullopt;
      }
      for (const uint32_t other : own)
        if (other != place && !ways.Between(place, other).usable) return std::nullopt;
    }
  }

  Seconds longest;
  const auto latency_of = [&](const std::vector<uint32_t>& links, uint32_t first) {
    Seconds latency;
    for (const uint32_t link : links) latency += cluster_.LatencyOf(first + link);
    return latency;
  };
  std::map<uint32_t, AtSwitch> switches;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> within;  // pairs of switches, of one machine
  for (const auto& [machine, own] : places) {
    const uint32_t first = structure.FirstLinkOf(machine);
    const auto outside = static_cast<uint32_t>(ranks.size() - own.size());
    for (const uint32_t place : own) {
      for (const uint32_t other : own) {
        if (other == place) continue;
        const MachineWays::Way& way = ways.Between(place, other);
        for (const uint32_t link : way.links) visit(first + link, 1);
        longest = std::max(longest, latency_of(way.links, first));
      }
      if (outside == 0) continue;
      const MachineWays::Exit& exit = ways.ExitsOf(place).front();
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

}  // namespace rehearse
