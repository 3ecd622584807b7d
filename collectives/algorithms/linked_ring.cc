#include "collectives/algorithms/linked_ring.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

using Ring = std::vector<uint32_t>;

// Rings that differ by less are alike, as where rings are packed
// (collectives/algorithms/channels.cc): of those, the first is taken, whatever was rounded where
// capacities were added in another order.
constexpr double kAlikeRings = 5e-3;

// What the narrowest link of a ring carries, and what all of them do.
struct Width {
  double narrowest = 0;
  double sum = 0;

  bool IsAbove(const Width& other) const {
    if (narrowest > other.narrowest * (1 + kAlikeRings)) return true;
    return narrowest >= other.narrowest * (1 - kAlikeRings) && sum > other.sum * (1 + kAlikeRings);
  }
};

// What each pair's own link carries; 0 if it has none.
struct Links {
  std::vector<double> capacity;  // from · size + to
  size_t size = 0;
  bool is_xgmi = true;
  bool are_all = true;

  Links(Router& router, const std::vector<uint32_t>& devices) : size(devices.size()) {
    capacity.assign(size * size, 0);
    const Cluster& cluster = router.cluster();
    for (size_t a = 0; a < size; ++a) {
      for (size_t b = 0; b < size; ++b) {
        if (a == b) continue;
        const Route& route = router.Between(devices[a], devices[b]);
        const LinkKind kind = cluster.KindOf(route.links.front());
        const bool is_own =
            route.links.size() == 1 && (kind == LinkKind::kNvLink || kind == LinkKind::kXgmi);
        are_all = are_all && is_own;
        if (!is_own) continue;
        is_xgmi = is_xgmi && kind == LinkKind::kXgmi;
        capacity[a * size + b] = cluster.Link(route.links.front()).Capacity().value();
      }
    }
  }

  // A ring that has come so far, by one more link.
  Width Along(Width width, uint32_t from, uint32_t to) const {
    const double one = capacity[from * size + to];
    return {std::min(width.narrowest, one), width.sum + one};
  }
};

// Tries all rings over links, in the order of their names: where pairs have none, few are tried,
// and behind switches none.
class RingSearch {
 public:
  explicit RingSearch(const Links& links) : links_(links), ring_(links.size) {
    std::iota(ring_.begin(), ring_.end(), 0u);
  }

  Ring Widest() {
    Extend(1, {std::numeric_limits<double>::infinity(), 0});
    return std::move(found_);
  }

 private:
  // Of `ring_`, those before `place` are settled and the others sorted.
  void Extend(size_t place, Width so_far) {
    if (place == ring_.size()) {
      const Width around = links_.Along(so_far, ring_.back(), ring_.front());
      if (!(around.narrowest > 0) || !around.IsAbove(best_)) return;
      best_ = around;
      found_ = ring_;
      return;
    }
    const auto rest = ring_.begin() + static_cast<std::ptrdiff_t>(place);
    for (auto next = rest; next != ring_.end(); ++next) {
      std::rotate(rest, next, next + 1);
      const Width longer = links_.Along(so_far, ring_[place - 1], *rest);
      if (longer.narrowest > 0) Extend(place + 1, longer);
      std::rotate(rest, rest + 1, next + 1);
    }
  }

  const Links& links_;
  Ring ring_;
  Ring found_;
  Width best_;
};

// Whether all pairs of at least three devices have links of their own.
bool AreMeshed(Router& router, const std::vector<uint32_t>& devices) {
  if (devices.size() < 3 || devices.size() > kMostMeshed) return false;
  return Links(router, devices).are_all;
}

}  // namespace

LinkedRing WidestLinkedRing(Router& router, const std::vector<uint32_t>& devices) {
  if (devices.size() < 3 || devices.size() > kMostLinked) return {};
  const Links links(router, devices);
  LinkedRing found;
  found.is_xgmi = links.is_xgmi;
  if (links.are_all) return found;
  found.ring = RingSearch(links).Widest();
  return found;
}

std::vector<Joined> SortAlongLinks(Router& router, const std::vector<uint32_t>& ranks,
                                   std::vector<std::vector<uint32_t>>* machines) {
  const ClusterStructure* structure = router.cluster().structure().get();
  const bool are_alike = structure != nullptr && router.MachinesAreAlike();
  const uint32_t places = are_alike ? structure->devices_per_machine : 0;
  struct Known {
    Joined joined = Joined::kAnyhow;
    Ring ring;
  };
  std::map<std::vector<uint32_t>, Known> known;  // by places in the machine, or by rank
  std::vector<Joined> joined;
  for (std::vector<uint32_t>& members : *machines) {
    std::vector<uint32_t> devices;
    std::vector<uint32_t> key;
    for (const uint32_t member : members) {
      devices.push_back(ranks[member]);
      key.push_back(are_alike ? ranks[member] % places : ranks[member]);
    }
    const auto [it, is_new] = known.emplace(std::move(key), Known());
    if (is_new) {
      it->second.ring = WidestLinkedRing(router, devices).ring;
      if (!it->second.ring.empty())
        it->second.joined = Joined::kAlongRing;
      else if (AreMeshed(router, devices))
        it->second.joined = Joined::kAsMesh;
    }
    const Ring& ring = it->second.ring;
    joined.push_back(it->second.joined);
    const std::vector<uint32_t> given = members;
    for (size_t i = 0; i < ring.size(); ++i) members[i] = given[ring[i]];
  }
  return joined;
}

void AppendInTurn(const std::vector<uint32_t>& members, size_t first, Joined joined, size_t channel,
                  std::vector<uint32_t>* order) {
  const size_t size = members.size();
  const bool is_back = joined == Joined::kAlongRing && channel % 2 == 1;
  for (size_t i = 0; i < size; ++i) {
    size_t step = is_back ? size - i : i;
    if (joined == Joined::kAsMesh) step = i % 2 == 1 ? (i + 1) / 2 : size - i / 2;
    order->push_back(members[(first + step) % size]);
  }
}

}  // namespace rehearse
