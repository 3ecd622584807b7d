#include "collectives/lowering/folding.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/base/error.h"
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
    FindCrossedLinks();
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
    ColourNumbers links;
    for (const uint32_t link : crossed_) links.Of(links_[link]);
    return CountDistinct(ranks_) + CountDistinct(switches_) + CountDistinct(sites_) +
           CountDistinct(transfers_) + links.count() + CountDistinct(nodes_);
  }

  // Finds the links that are crossed; the others keep their first colours.
  void FindCrossedLinks() {
    sums_.assign(links_.size(), 0);
    for (const LinkUse& use : table_.uses) sums_[use.link.index()] = 1;
    for (uint32_t link = 0; link < links_.size(); ++link) {
      if (sums_[link] != 0) crossed_.push_back(link);
    }
  }

  // How a transfer crosses a link: how often, and whether on its way or on its detour. Returns an
  // odd number that mixed colours are multiplied by: there are many crossings, but few ways to
  // cross.
  Colour Crossing(const Transfer& transfer, uint32_t use) const {
    const uint32_t multiplicity = table_.uses[use].multiplicity;
    const bool is_detour = use >= transfer.use_end;
    if (multiplicity < kUsual) return crossings_[is_detour][multiplicity];
    return CrossingOf(is_detour, multiplicity);
  }
  static Colour CrossingOf(bool is_detour, uint32_t multiplicity) {
    return Mix(Colour{is_detour} << 32 | multiplicity) | 1;
  }

  void RefineTransfers() {
    std::vector<Colour> sites(transfers_.size());  // of all sites that share it
    for (uint32_t i = 0; i < sites_.size(); ++i) {
      const Site& site = table_.sites[i];
      const Colour colour = Mix(sites_[i]);
      for (uint32_t j = site.transfer_begin; j < site.transfer_end; ++j) sites[j] += colour;
    }
    std::vector<Colour> next(transfers_.size());
    for (const uint32_t link : crossed_) sums_[link] = Mix(links_[link]);
    for (uint32_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& transfer = table_.transfers[i];
      Colour sum = 0;
      for (uint32_t use = transfer.use_begin; use < transfer.detour_end; ++use) {
        sum += sums_[table_.uses[use].link.index()] * Crossing(transfer, use);
      }
      Colour colour = Join(Join(transfers_[i], sites[i]), sum);
      if (transfer.upstream != kNoTransfer) {
        colour = Join(Join(colour, transfers_[transfer.upstream]), transfers_[transfer.downstream]);
      }
      for (uint32_t j = transfer.after_begin; j < transfer.after_end; ++j) {
        colour = Join(colour, transfers_[j]);
      }
      if (HasEnds(transfer)) {
        colour = Join(Join(colour, EndAt(transfer.from)), EndAt(transfer.to));
      }
      next[i] = colour;
    }
    transfers_ = std::move(next);
  }

  void RefineSites() {
    for (uint32_t i = 0; i < sites_.size(); ++i) {
      const Site& site = table_.sites[i];
      Colour members = 0;
      for (size_t j = 0; j < site.ranks.size(); ++j) {
        // A sender is not a receiver; the members of a group are a multiset.
        members += Join(ranks_[site.ranks[j]], site.is_pair ? j : 0);
      }
      Colour transfers = 0;
      for (uint32_t j = site.transfer_begin; j < site.transfer_end; ++j) {
        transfers += Mix(transfers_[j]);
      }
      sites_[i] = Join(Join(sites_[i], members), transfers);
    }
  }

  void RefineLinks() {
    for (const uint32_t link : crossed_) sums_[link] = 0;
    for (uint32_t i = 0; i < transfers_.size(); ++i) {
      const Transfer& transfer = table_.transfers[i];
      const Colour colour = Mix(transfers_[i]);
      for (uint32_t use = transfer.use_begin; use < transfer.detour_end; ++use) {
        sums_[table_.uses[use].link.index()] += colour * Crossing(transfer, use);
      }
    }
    for (const uint32_t link : crossed_) links_[link] = Join(links_[link], sums_[link]);
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
    for (uint32_t i = 0; i < ranks_.size(); ++i) {
      Colour colour = Join(ranks_[i], edges[i]);
      if (shares_hosts_) colour = Join(colour, nodes_[node_of_rank_[i]]);
      for (uint32_t j = table_.rank_begin[i]; j < table_.rank_begin[i + 1]; ++j) {
        colour = Join(colour, sites_[table_.sites_of_rank[j]]);
      }
      ranks_[i] = colour;
    }
  }

  const TransferTable& table_;
  std::vector<Colour> ranks_;
  std::vector<Colour> sites_;
  std::vector<Colour> transfers_;
  std::vector<Colour> links_;
  std::vector<Colour> switches_;
  std::vector<uint32_t> crossed_;  // links, by some transfer
  std::vector<Colour> sums_;       // by link, of the crossed ones: its mixed colour, then its sum
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
