#include "collectives/lowering/folding.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/base/error.h"
#include "sim/base/growing_array.h"
#include "topology/fabrics/flow_hash.h"

namespace rehearse {
namespace {

using Colour = uint64_t;

// Not symmetric in a and b, even if one of them is already mixed.
[[gnu::always_inline]] inline Colour Join(Colour a, Colour b) {
  return Mix(std::rotl(a, 23) ^ Mix(b ^ 0x2545f4914f6cdd1du));
}
Colour JoinNumber(Colour a, double b) { return Join(a, std::bit_cast<uint64_t>(b)); }

// Numbers colours in the order in which they are first met. Colours are mixed, so their lowest bits
// are a hash; they are few compared with the objects, so the table stays in the cache.
class ColourNumbers {
 public:
  ColourNumbers() : slots_(128) {}

  uint32_t Of(Colour colour) {
    Slot& slot = Find(colour);
    if (slot.number != kFree) return slot.number;
    slot = {colour, count_++};
    const uint32_t number = slot.number;
    if (2 * size_t{count_} > slots_.size()) Grow();
    return number;
  }
  uint32_t count() const { return count_; }

 private:
  static constexpr uint32_t kFree = 0xffffffffu;
  struct Slot {
    Colour colour = 0;
    uint32_t number = kFree;
  };

  Slot& Find(Colour colour) {
    const size_t mask = slots_.size() - 1;
    size_t i = colour & mask;
    while (slots_[i].number != kFree && slots_[i].colour != colour) i = (i + 1) & mask;
    return slots_[i];
  }
  void Grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kFree) Find(slot.colour) = slot;
    }
  }

  std::vector<Slot> slots_;
  uint32_t count_ = 0;
};

size_t CountDistinct(const std::vector<Colour>& colours) {
  ColourNumbers numbers;
  for (const Colour colour : colours) numbers.Of(colour);
  return numbers.count();
}

Classes Number(const std::vector<Colour>& colours) {
  Classes classes;
  classes.of.resize(colours.size());
  ColourNumbers numbers;
  for (uint32_t i = 0; i < colours.size(); ++i) {
    const uint32_t number = numbers.Of(colours[i]);
    if (number == classes.size()) classes.representative.push_back(i);
    classes.of[i] = number;
  }
  return classes;
}

Classes Identity(size_t size) {
  Classes classes;
  classes.of.resize(size);
  for (uint32_t i = 0; i < size; ++i) classes.of[i] = i;
  classes.representative = classes.of;
  return classes;
}

class Refinement {
 public:
  Refinement(const Schedule& schedule, const TransferTable& table, const Cluster& cluster,
             const Perturbation& perturbation)
      : table_(table),
        ranks_(schedule.ranks()),
        sites_(table.sites.size()),
        transfers_(table.transfers.size()),
        links_(cluster.way_count()),
        switches_(table.switches, Mix(2)) {
    for (const DeviceSpec& spec : cluster.device_specs()) shares_hosts_ |= spec.host_cores > 0;
    if (shares_hosts_) {
      nodes_.assign(cluster.node_count(), 0);
      for (uint32_t i = 0; i < schedule.ranks(); ++i) {
        node_of_rank_.push_back(cluster.NodeIndexOf(i));
      }
    }
    for (uint32_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i] = Join(Mix(schedule.role_of_rank[i]), cluster.SpecOf(i));
    }
    for (uint32_t i = 0; i < sites_.size(); ++i) {
      const Site& site = table.sites[i];
      sites_[i] =
          Join(Join(Join(Mix(site.is_pair), site.communicator), site.ranks.size()), site.request);
      if (const GroupPlan* plan = table.PlanOf(site)) {
        sites_[i] = JoinNumber(JoinNumber(sites_[i], plan->choice.start.value()),
                               plan->choice.bandwidth_share);
        sites_[i] = JoinNumber(sites_[i], plan->time.value());
      }
    }
    std::vector<uint32_t> depth(transfers_.size(), 0);
    for (uint32_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& transfer = table.transfers[i];
      // Rounds are never alike, since each waits for the one before. They are told apart from the
      // start: else each pass over them would set only one more apart.
      if (transfer.after_begin < transfer.after_end) depth[i] = depth[transfer.after_begin] + 1;
      transfers_[i] =
          JoinNumber(JoinNumber(JoinNumber(Mix(1), transfer.share), transfer.step_latency.value()),
                     transfer.idle_rate.value());
      transfers_[i] = Join(Join(Join(transfers_[i], transfer.step), transfer.steps), depth[i]);
      // Step by step a rank keeps the parts apart; round by round parts that behave the
      // same may fold.
      if (HasEnds(transfer)) transfers_[i] = Join(transfers_[i], transfer.part);
    }
    for (uint32_t i = 0; i < links_.size(); ++i) {
      const ClusterLink& link = cluster.Link(i);
      links_[i] = JoinNumber(Mix(static_cast<Colour>(link.kind)), link.Capacity().value());
    }
    for (uint32_t multiplicity = 0; multiplicity < kUsual; ++multiplicity) {
      crossings_[0][multiplicity] = CrossingOf(false, multiplicity);
      crossings_[1][multiplicity] = CrossingOf(true, multiplicity);
    }
    Perturb(perturbation);
  }

  Folding Run() {
    BundleLinks();
    size_t classes = Count();
    while (true) {
      RefineTransfers();
      RefineSites();
      RefineLinks();
      RefineNodes();
      RefineRanks();
      const size_t now = Count();
      if (now == classes) break;
      classes = now;
    }
    for (uint32_t link = 0; link < links_.size(); ++link)
      if (bundle_of_link_[link] != kNone) links_[link] = bundles_[bundle_of_link_[link]];
    return {Number(ranks_), Number(sites_), Number(transfers_),
            Number(links_), Number(nodes_), Number(switches_)};
  }

 private:
  // Jitter makes everybody different, everything else only those that it touches.
  void Perturb(const Perturbation& perturbation) {
    for (uint32_t i = 0; i < ranks_.size(); ++i) {
      if (!perturbation.straggling.empty()) {
        ranks_[i] = JoinNumber(ranks_[i], perturbation.straggling[i]);
      }
      if (perturbation.compute_jitter > 0) ranks_[i] = Join(ranks_[i], i);
    }
    if (perturbation.link_jitter > 0) {
      for (uint32_t i = 0; i < links_.size(); ++i) links_[i] = Join(links_[i], i);
    }
    for (const LinkEvent& event : perturbation.events) {
      Colour& link = links_[event.link];
      link = JoinNumber(Join(link, static_cast<Colour>(event.at.picoseconds())), event.factor);
    }
  }

  // Step by step: whether the transfer is an edge of a ring or a message, between two
  // ranks or switches.
  bool HasEnds(const Transfer& transfer) const {
    return transfer.from != transfer.to && !transfer.is_of_pair;
  }
  Colour EndAt(uint32_t end) const {
    return end < ranks_.size() ? ranks_[end] : switches_[end - ranks_.size()];
  }

  size_t Count() const {
    return CountDistinct(ranks_) + CountDistinct(switches_) + CountDistinct(sites_) +
           CountDistinct(transfers_) + CountDistinct(bundles_) + CountDistinct(nodes_);
  }

  // Links of one colour that are crossed by the same transfers in the same way, as the hops of a
  // way are, stay alike: they are refined as one. Links that nothing crosses keep their first
  // colours.
  void BundleLinks() {
    std::vector<Colour> crossed_by(links_.size(), 0);
    for (uint32_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& transfer = table_.transfers[i];
      const Colour own = Join(Mix(3), i);
      for (uint32_t use = transfer.use_begin; use < transfer.detour_end; ++use)
        crossed_by[table_.uses[use].link.index()] += own * Crossing(WayOf(transfer, use));
    }
    bundle_of_link_.assign(links_.size(), kNone);
    ColourNumbers numbers;
    std::vector<uint32_t> first;  // link, by bundle
    for (uint32_t link = 0; link < links_.size(); ++link) {
      if (crossed_by[link] == 0) continue;
      const uint32_t bundle = numbers.Of(Join(links_[link], crossed_by[link]));
      bundle_of_link_[link] = bundle;
      if (bundle == bundles_.size()) {
        first.push_back(link);
        bundles_.push_back(links_[link]);
        links_of_bundle_.push_back(0);
      }
      ++links_of_bundle_[bundle];
    }
    crossings_begin_.reserve(transfers_.size() + 1);
    for (uint32_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& transfer = table_.transfers[i];
      crossings_begin_.push_back(static_cast<uint32_t>(bundle_crossings_.size()));
      for (uint32_t use = transfer.use_begin; use < transfer.detour_end; ++use) {
        const uint32_t link = table_.uses[use].link.index();
        const uint32_t bundle = bundle_of_link_[link];
        if (first[bundle] == link) bundle_crossings_.Add({bundle, WayOf(transfer, use)});
      }
    }
    crossings_begin_.push_back(static_cast<uint32_t>(bundle_crossings_.size()));
  }

  // How a transfer crosses a link: how often, and whether on its way or on its detour.
  uint32_t WayOf(const Transfer& transfer, uint32_t use) const {
    const uint32_t multiplicity = table_.uses[use].multiplicity;
    CHECK_LT(multiplicity, kOnDetour);
    return multiplicity | (use >= transfer.use_end ? kOnDetour : 0);
  }
  // An odd number that mixed colours are multiplied by: there are many crossings, but few ways to
  // cross.
  Colour Crossing(uint32_t way) const {
    const uint32_t multiplicity = way & ~kOnDetour;
    const bool is_detour = way >= kOnDetour;
    if (multiplicity < kUsual) return crossings_[is_detour][multiplicity];
    return CrossingOf(is_detour, multiplicity);
  }
  static Colour CrossingOf(bool is_detour, uint32_t multiplicity) {
    return Mix(Colour{is_detour} << 32 | multiplicity) | 1;
  }

  void RefineTransfers() {
    // Of all sites that share it: added where a site's transfers begin, and taken off at their end.
    std::vector<Colour> sites(transfers_.size() + 1);
    for (uint32_t i = 0; i < sites_.size(); ++i) {
      const Site& site = table_.sites[i];
      const Colour colour = Mix(sites_[i]);
      sites[site.transfer_begin] += colour;
      sites[site.transfer_end] -= colour;
    }
    for (uint32_t i = 1; i < transfers_.size(); ++i) sites[i] += sites[i - 1];
    std::vector<Colour> next(transfers_.size());
    std::vector<Colour> links(bundles_.size());  // of a bundle, together
    for (uint32_t i = 0; i < links.size(); ++i) links[i] = Mix(bundles_[i]) * links_of_bundle_[i];
    std::pair<uint32_t, uint32_t> after;  // of the last transfer: what it comes after
    Colour colour_of_after = 0;
    for (uint32_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& transfer = table_.transfers[i];
      Colour sum = 0;
      for (uint32_t k = crossings_begin_[i]; k < crossings_begin_[i + 1]; ++k)
        sum += links[bundle_crossings_[k].bundle] * Crossing(bundle_crossings_[k].way);
      Colour colour = Join(Join(transfers_[i], sites[i]), sum);
      if (transfer.upstream != kNoTransfer) {
        colour = Join(Join(colour, transfers_[transfer.upstream]), transfers_[transfer.downstream]);
      }
      if (transfer.after_begin < transfer.after_end) {
        if (after != std::pair(transfer.after_begin, transfer.after_end)) {
          after = {transfer.after_begin, transfer.after_end};
          colour_of_after = 0;
          for (uint32_t j = after.first; j < after.second; ++j)
            colour_of_after = Join(colour_of_after, transfers_[j]);
        }
        colour = Join(colour, colour_of_after);
      }
      if (HasEnds(transfer)) {
        colour = Join(Join(colour, EndAt(transfer.from)), EndAt(transfer.to));
      }
      next[i] = colour;
    }
    transfers_ = std::move(next);
  }

  void RefineSites() {
    std::vector<Colour> ranks(ranks_.size());
    for (uint32_t i = 0; i < ranks_.size(); ++i) ranks[i] = Join(ranks_[i], Colour{0});
    std::vector<Colour> members(sites_.size());         // sums
    std::vector<Colour> before(transfers_.size() + 1);  // of all before a transfer
    for (uint32_t i = 0; i < transfers_.size(); ++i) before[i + 1] = before[i] + Mix(transfers_[i]);
    for (uint32_t i = 0; i < sites_.size(); ++i) {
      const Site& site = table_.sites[i];
      if (site.is_pair) {  // a sender is not a receiver; the members of a group are a multiset
        members[i] = ranks[site.ranks[0]] + Join(ranks_[site.ranks[1]], Colour{1});
      } else if (site.group != i) {
        members[i] = members[site.group];
      } else {
        for (const uint32_t rank : site.ranks) members[i] += ranks[rank];
      }
      const Colour transfers = before[site.transfer_end] - before[site.transfer_begin];
      sites_[i] = Join(Join(sites_[i], members[i]), transfers);
    }
  }

  void RefineLinks() {
    std::vector<Colour> sums(bundles_.size(), 0);
    for (uint32_t i = 0; i < transfers_.size(); ++i) {
      const Colour colour = Mix(transfers_[i]);
      for (uint32_t k = crossings_begin_[i]; k < crossings_begin_[i + 1]; ++k)
        sums[bundle_crossings_[k].bundle] += colour * Crossing(bundle_crossings_[k].way);
    }
    for (uint32_t i = 0; i < bundles_.size(); ++i) bundles_[i] = Join(bundles_[i], sums[i]);
  }

  void RefineNodes() {
    std::vector<Colour> sums(nodes_.size(), 0);
    for (uint32_t i = 0; i < node_of_rank_.size(); ++i) sums[node_of_rank_[i]] += Mix(ranks_[i]);
    for (uint32_t i = 0; i < nodes_.size(); ++i) nodes_[i] = Join(nodes_[i], sums[i]);
  }

  void RefineRanks() {
    std::vector<Colour> edges(ranks_.size() + switches_.size(), 0);
    for (uint32_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& transfer = table_.transfers[i];
      if (!HasEnds(transfer)) continue;
      edges[transfer.from] += Join(transfers_[i], Colour{1});
      edges[transfer.to] += Join(transfers_[i], Colour{2});
    }
    for (uint32_t i = 0; i < switches_.size(); ++i) {
      switches_[i] = Join(switches_[i], edges[ranks_.size() + i]);
    }
    // Ranks have many sites, so these are mixed once, and put in order by a polynomial.
    constexpr Colour kFactor = 0x9e3779b97f4a7c15u;
    std::vector<Colour> sites(sites_.size());
    for (uint32_t i = 0; i < sites_.size(); ++i) sites[i] = Mix(sites_[i]);
    for (uint32_t i = 0; i < ranks_.size(); ++i) {
      Colour colour = Join(ranks_[i], edges[i]);
      if (shares_hosts_) colour = Join(colour, nodes_[node_of_rank_[i]]);
      Colour in_order = 0;
      for (uint32_t j = table_.rank_begin[i]; j < table_.rank_begin[i + 1]; ++j)
        in_order = in_order * kFactor + sites[table_.sites_of_rank[j]];
      ranks_[i] = Join(colour, in_order);
    }
  }

  const TransferTable& table_;
  std::vector<Colour> ranks_;
  std::vector<Colour> sites_;
  std::vector<Colour> transfers_;
  std::vector<Colour> links_;
  std::vector<Colour> switches_;
  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr uint32_t kOnDetour = uint32_t{1} << 31;  // of a way to cross
  struct BundleCrossing {
    uint32_t bundle;
    uint32_t way;  // in which each of its links is crossed
  };
  std::vector<uint32_t> bundle_of_link_;  // kNone if nothing crosses it
  std::vector<Colour> bundles_;
  std::vector<uint32_t> links_of_bundle_;  // how many
  GrowingArray<BundleCrossing> bundle_crossings_;
  std::vector<uint32_t> crossings_begin_;  // by transfer, in bundle_crossings_
  static constexpr uint32_t kUsual = 64;
  std::array<std::array<Colour, kUsual>, 2> crossings_ = {};  // CrossingOf(is_detour, multiplicity)
  bool shares_hosts_ = false;
  std::vector<Colour> nodes_;           // empty unless hosts are shared
  std::vector<uint32_t> node_of_rank_;  // likewise
};

}  // namespace

Folding NoFolding(const TransferTable& table, const Cluster& cluster, uint32_t ranks) {
  return {Identity(ranks),
          Identity(table.sites.size()),
          Identity(table.transfers.size()),
          Identity(cluster.way_count()),
          Identity(cluster.node_count()),
          Identity(table.switches)};
}

Folding Fold(const Schedule& schedule, const TransferTable& table, const Cluster& cluster,
             const Perturbation& perturbation) {
  return Refinement(schedule, table, cluster, perturbation).Run();
}

std::vector<std::vector<LinkUse>> FoldedUses(const TransferTable& table, const Folding& folding,
                                             Way way) {
  std::vector<std::vector<LinkUse>> result(folding.transfers.size());
  // Count crossings of the representative links by all transfers, class by class.
  for (uint32_t i = 0; i < table.transfers.size(); ++i) {
    const Transfer& transfer = table.transfers[i];
    std::vector<LinkUse>& uses = result[folding.transfers.of[i]];
    const uint32_t begin = way == Way::kOwn ? transfer.use_begin : transfer.use_end;
    const uint32_t end = way == Way::kOwn ? transfer.use_end : transfer.detour_end;
    for (uint32_t use = begin; use < end; ++use) {
      const uint32_t link = table.uses[use].link.index();
      const uint32_t link_class = folding.links.of[link];
      if (folding.links.representative[link_class] != link) continue;
      uses.push_back({LinkId(link_class), table.uses[use].multiplicity});
    }
  }
  for (std::vector<LinkUse>& uses : result) {
    std::sort(uses.begin(), uses.end(),
              [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
    size_t size = 0;
    for (const LinkUse& use : uses) {
      if (size > 0 && uses[size - 1].link == use.link) {
        uses[size - 1].multiplicity += use.multiplicity;
      } else {
        uses[size++] = use;
      }
    }
    uses.resize(size);
  }
  return result;
}

}  // namespace rehearse
