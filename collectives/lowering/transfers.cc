#include "collectives/lowering/transfers.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "collectives/lowering/collective_error.h"
#include "collectives/lowering/question.h"
#include "collectives/lowering/transfer_writer.h"
#include "collectives/lowering/tuning.h"
#include "sim/base/error.h"
#include "topology/fabrics/host_ways.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

// What a slot of a role stands for: a group of a communicator and what it is asked for, or a peer
// in it to send to or receive from.
struct Slot {
  uint32_t communicator = 0;
  bool is_pair = false;
  bool sends = false;  // to a peer, or to the host
  uint32_t peer = 0;
  uint32_t request = 0;
  bool is_host_copy = false;

  friend auto operator<=>(const Slot&, const Slot&) = default;
};

class Maker {
 public:
  Maker(const Schedule& schedule, Router& router, Fidelity fidelity, uint32_t channels,
        const NcclSettings& nccl, GroupMemory* memory)
      : schedule_(schedule),
        router_(router),
        own_memory_(memory == nullptr ? std::make_unique<GroupMemory>(router, nccl) : nullptr),
        memory_(memory == nullptr ? *own_memory_ : *memory),
        all_fidelity_(fidelity),
        fidelity_(fidelity),
        channels_(channels) {
    CHECK(memory == nullptr || (memory->IsUsable() && &memory->router() == &router));
    plain_.step_overhead = router.cluster().step_overhead();
  }

  TransferTable Run() {
    for (const Role& role : schedule_.roles) AddRole(role);
    table_.rank_begin.push_back(0);
    groups_.resize(schedule_.communicators.size());
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      group_of_rank_.assign(schedule_.communicators.size(), kNoTransfer);
      for (const Slot& slot : slots_[schedule_.role_of_rank[rank]]) {
        table_.sites_of_rank.push_back(slot.is_host_copy ? HostSite(rank, slot)
                                       : slot.is_pair    ? PairSite(rank, slot)
                                                         : GroupSite(rank, slot));
      }
      table_.rank_begin.push_back(static_cast<uint32_t>(table_.sites_of_rank.size()));
    }
    return std::move(table_);
  }

 private:
  // Where a way's transfers are, and the plan of the first site that takes it.
  struct PlacedWay {
    uint32_t plan = 0;
    uint32_t transfer_begin = 0;
    uint32_t transfer_end = 0;
  };

  // What a group is asked for, and the sites at which its groups do it.
  struct Request {
    const Collective* collective = nullptr;
    std::vector<uint32_t> sites;  // by group
    uint32_t plan = kNoTransfer;  // the last one of rings
  };

  void AddRole(const Role& role) {
    std::vector<Slot> slots;
    std::map<Slot, uint32_t> index;
    std::vector<uint32_t> slot_of_op;
    for (const Op& op : role.ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      const bool is_host_copy = IsHostCopy(op.work);
      if (collective && !is_host_copy) OrSayWhich(*collective, [&] { CheckNames(*collective); });
      const CommunicatorId id = CommunicatorOf(op.work);
      if (!id.IsSet() || MovesNothing(schedule_, op.work)) {
        slot_of_op.push_back(kNoTransfer);
        continue;
      }
      Slot slot{.communicator = id.index(), .is_pair = false, .sends = false, .peer = 0};
      if (is_host_copy) {
        slot.is_host_copy = true;
        slot.sends = collective->kind == CollectiveKind::kToHost;
      } else if (const auto* send = std::get_if<Send>(&op.work)) {
        slot = {id.index(), true, true, send->peer};
      } else if (const auto* receive = std::get_if<Receive>(&op.work)) {
        slot = {id.index(), true, false, receive->peer};
      } else {
        slot.request = RequestOf(*collective);
      }
      const auto [it, is_new] = index.emplace(slot, static_cast<uint32_t>(slots.size()));
      if (is_new) slots.push_back(slot);
      slot_of_op.push_back(it->second);
    }
    slots_.push_back(std::move(slots));
    table_.slot_of_op.push_back(std::move(slot_of_op));
  }

  // Errors of `work` are the collective's.
  template <typename Work>
  void OrSayWhich(const Collective& collective, const Work& work) const {
    try {
      work();
    } catch (const Error& error) {
      const std::string& axis = schedule_.communicators[collective.communicator.index()].name();
      throw CollectiveError(
          collective, axis,
          fmt::format("{} on \"{}\": {}", Name(collective.kind), axis, error.what()));
    }
  }

  static void CheckNames(const Collective& collective) {
    if (collective.algorithm != AlgorithmId::kAuto)
      CheckKind(FindAlgorithm(collective.algorithm), collective.kind);
  }

  // Equal collectives of one communicator are one request.
  uint32_t RequestOf(const Collective& collective) {
    const auto [it, is_new] =
        request_index_.try_emplace(Question(collective), static_cast<uint32_t>(requests_.size()));
    if (is_new) {
      const uint32_t groups =
          schedule_.communicators[collective.communicator.index()].group_count();
      requests_.push_back({&collective, std::vector<uint32_t>(groups, kNoTransfer), kNoTransfer});
    }
    return it->second;
  }

  Communicator::Position PositionOf(uint32_t rank, uint32_t communicator) const {
    const auto position = schedule_.communicators[communicator].PositionOf(rank);
    CHECK(position.has_value());
    return *position;
  }

  // The group of the rank that is being gone through.
  uint32_t GroupOf(uint32_t rank, uint32_t communicator) {
    uint32_t& group = group_of_rank_[communicator];
    if (group == kNoTransfer) group = PositionOf(rank, communicator).group;
    return group;
  }

  // A site of the group, with what all of them have in common.
  Site SiteOfGroup(uint32_t communicator_index, uint32_t group) {
    const Communicator& communicator = schedule_.communicators[communicator_index];
    std::vector<uint32_t>& first = groups_[communicator_index];
    first.resize(communicator.group_count(), kNoTransfer);
    Site site;
    site.communicator = communicator_index;
    if (first[group] != kNoTransfer) {
      site.group = first[group];
      site.ranks = table_.sites[site.group].ranks;
      site.fidelity = table_.sites[site.group].fidelity;
      return site;
    }
    site.group = first[group] = static_cast<uint32_t>(table_.sites.size());
    site.ranks.resize(communicator.size());
    for (uint32_t i = 0; i < communicator.size(); ++i) site.ranks[i] = communicator.Rank(group, i);
    site.fidelity = all_fidelity_;
    if (all_fidelity_ == Fidelity::kPacket && !NeedsNetwork(site.ranks))
      site.fidelity = Fidelity::kFluid;
    return site;
  }

  bool NeedsNetwork(const std::vector<uint32_t>& ranks) {
    const Cluster& cluster = router_.cluster();
    for (size_t i = 1; i < ranks.size(); ++i) {
      for (const auto& [from, to] :
           {std::pair(ranks[0], ranks[i]), std::pair(ranks[i], ranks[0])}) {
        bool crosses = false;
        ForEachCrossing(router_.Between(from, to), router_.ways(), [&](uint32_t link, uint32_t) {
          crosses = crosses || cluster.KindOf(link) == LinkKind::kNetwork;
        });
        if (crosses) return true;
      }
    }
    return false;
  }

  uint32_t GroupSite(uint32_t rank, const Slot& slot) {
    Request& request = requests_[slot.request];
    const uint32_t group = GroupOf(rank, slot.communicator);
    uint32_t& index = request.sites[group];
    if (index != kNoTransfer) return index;

    Site site = SiteOfGroup(slot.communicator, group);
    site.request = slot.request;
    fidelity_ = site.fidelity;
    uint32_t* const alike = AlikeInAMachine(site);
    if (alike != nullptr && *alike != kNoTransfer) {
      const Site& like = table_.sites[*alike];
      site.plan = like.plan;
      const GroupPlan& plan = table_.plans[site.plan];
      PlaceOnce(WayKey(slot, group, *request.collective, plan), &site,
                [&] { writer_.CopyTransfers(table_.sites[*alike], &site); });
    } else {
      OrSayWhich(*request.collective, [&] { PlanSite(slot, group, &site); });
      const bool has_numbered_ends = GoesByStep(site.fidelity) && !IsRing(table_.plans[site.plan]);
      if (alike != nullptr && !has_numbered_ends && StaysInMachine(site))
        *alike = static_cast<uint32_t>(table_.sites.size());
    }
    index = static_cast<uint32_t>(table_.sites.size());
    table_.sites.push_back(std::move(site));
    return index;
  }

  // What determines the group's transfers, whatever their bytes: collectives for which it is equal
  // go the same way. Those whose messages differ in size share it with no other.
  using Way = std::tuple<uint32_t, uint32_t, uint32_t, const Algorithm*, CollectiveKind, uint32_t,
                         uint32_t, bool, double>;
  static Way WayKey(const Slot& slot, uint32_t group, const Collective& collective,
                    const GroupPlan& plan) {
    const Choice& choice = plan.choice;
    const bool is_ring = IsRing(plan);
    const bool is_uneven = !collective.pair_bytes.empty() || choice.algorithm->forwards;
    const uint32_t own = is_uneven ? slot.request : kNoTransfer;
    return {slot.communicator,
            group,
            own,
            choice.algorithm,
            is_ring ? CollectiveKind::kAllReduce : collective.kind,
            is_ring ? 0 : collective.root,
            choice.channels,
            choice.steps_wait,
            choice.step_overhead.value()};
  }

  // The transfers of the first site that goes this way, which `make` adds.
  template <typename Make>
  void PlaceOnce(const Way& way, Site* site, const Make& make) {
    const auto [first, is_new] = first_of_way_.emplace(way, PlacedWay{});
    if (is_new) {
      site->transfer_begin = static_cast<uint32_t>(table_.transfers.size());
      make();
      site->transfer_end = static_cast<uint32_t>(table_.transfers.size());
      first->second = {site->plan, site->transfer_begin, site->transfer_end};
    } else {
      site->transfer_begin = first->second.transfer_begin;
      site->transfer_end = first->second.transfer_end;
    }
  }

  void PlanSite(const Slot& slot, uint32_t group, Site* site) {
    Request& request = requests_[slot.request];
    const Collective& collective = *request.collective;
    uint32_t* const of_shape = PlanOfShape(slot, group, site->ranks);
    if (of_shape != nullptr && *of_shape != kNoTransfer) {
      site->plan = *of_shape;
      PlaceAs(table_.plans[site->plan], slot, group, site);
      return;
    }
    GroupPlan plan;
    plan.kind = collective.kind;
    std::shared_ptr<GroupLayout> layout;
    plan.choice = tuner_.Choose({collective, site->ranks, channels_}, &layout);
    CHECK(plan.choice.bandwidth_share > 0 && plan.choice.bandwidth_share <= 1);
    const Way way = WayKey(slot, group, collective, plan);
    if (IsRing(plan)) {
      site->plan = RingPlan(plan, &request);
      PlaceOnce(way, site, [&] {
        AddRings(plan.choice, site->ranks, PhaseOf(slot.communicator, Name(AlgorithmId::kRing), 0));
      });
      if (of_shape != nullptr) *of_shape = site->plan;
      return;
    }
    site->plan = static_cast<uint32_t>(table_.plans.size());
    bool is_first = false;
    PlaceOnce(way, site, [&] {
      is_first = true;
      Arrange(collective, site->ranks, std::move(layout), &plan);
    });
    if (!is_first) {
      const Choice choice = plan.choice;
      plan = table_.plans[first_of_way_.at(way).plan];
      plan.choice = choice;
    }
    SetTime(collective.bytes, &plan);
    table_.plans.push_back(std::move(plan));
    if (of_shape != nullptr) *of_shape = site->plan;
  }

  // Where the plan of this request is noted for groups that are alike. Null if it depends on more:
  // on who sends to whom (step), or if no groups are alike.
  uint32_t* PlanOfShape(const Slot& slot, uint32_t group, const std::vector<uint32_t>& ranks) {
    if (GoesByStep(fidelity_) || !tuner_.ShapesAreExact()) return nullptr;
    std::vector<uint32_t>& shapes = shapes_[slot.communicator];
    if (group >= shapes.size()) shapes.resize(group + 1, kNoTransfer);
    if (shapes[group] == kNoTransfer) shapes[group] = memory_.ShapeOf(ranks);
    const auto key = std::make_pair(slot.request, shapes[group]);
    return &plan_of_shape_.emplace(key, kNoTransfer).first->second;
  }

  // Takes the transfers of a plan that was made for a group that is alike.
  void PlaceAs(const GroupPlan& like, const Slot& slot, uint32_t group, Site* site) {
    const Collective& collective = *requests_[slot.request].collective;
    PlaceOnce(WayKey(slot, group, collective, like), site, [&] {
      if (IsRing(like)) {
        AddRings(like.choice, site->ranks, PhaseOf(slot.communicator, Name(AlgorithmId::kRing), 0));
      } else if (fidelity_ == Fidelity::kFluid) {
        GroupPlan plan;
        plan.kind = like.kind;
        plan.choice = like.choice;
        const std::shared_ptr<GroupLayout> layout =
            LayoutOf(collective, site->ranks, nullptr, &plan);
        for (uint32_t part = 0; part < layout->rounds.size(); ++part)
          writer_.AddRounds(part, layout->rounds[part]);
      }
    });
  }

  // Plans of rings know nothing about their group, and are mostly equal.
  uint32_t RingPlan(const GroupPlan& plan, Request* request) {
    if (request->plan == kNoTransfer || table_.plans[request->plan].choice != plan.choice) {
      request->plan = static_cast<uint32_t>(table_.plans.size());
      table_.plans.push_back(plan);
    }
    return request->plan;
  }

  bool StaysInMachine(const Site& site) const {
    if (site.transfer_begin == site.transfer_end) return true;
    const ClusterStructure& structure = *router_.cluster().structure();
    const uint32_t first = structure.FirstLinkOf(site.ranks[0] / structure.devices_per_machine);
    const auto uses = std::span(table_.uses.data(), table_.uses.size())
                          .subspan(table_.transfers[site.transfer_begin].use_begin,
                                   table_.transfers[site.transfer_end - 1].detour_end -
                                       table_.transfers[site.transfer_begin].use_begin);
    return std::all_of(uses.begin(), uses.end(), [&](const LinkUse& use) {
      return use.link.index() - first < structure.links_per_machine();
    });
  }

  // Where the site that does the same at the same places of another machine is noted. Null for
  // groups across machines, and if machines are not alike.
  uint32_t* AlikeInAMachine(const Site& site) {
    if (!router_.MachinesAreAlike()) return nullptr;
    const Cluster& cluster = router_.cluster();
    const uint32_t devices = cluster.structure()->devices_per_machine;
    const uint32_t machine = site.ranks[0] / devices;
    std::vector<uint32_t>& key = alike_key_;
    key.assign(1, site.request);
    for (const uint32_t rank : site.ranks) {
      if (rank / devices != machine) return nullptr;
      key.push_back(rank % devices);
      key.push_back(cluster.SpecOf(rank));
    }
    return &alike_.try_emplace(key, kNoTransfer).first->second;
  }

  static bool IsRing(const GroupPlan& plan) {
    return plan.choice.algorithm->id == AlgorithmId::kRing && !plan.IsPipeline();
  }

  void AddRings(const Choice& choice, const std::vector<uint32_t>& ranks, uint64_t phase) {
    if (!memory_.KeepsGroups()) router_.ForgetMany();  // of other groups
    if (GoesByStep(fidelity_)) {
      const std::vector<Channel> channels = memory_.finder().Find(ranks, choice.channels, phase);
      for (const Channel& channel : channels) writer_.AddEdges(choice, channel);
      return;
    }
    const bool with_rates = fidelity_ == Fidelity::kFormula;
    const auto rings = memory_.RingsOf(ranks, choice.channels, phase, with_rates);
    for (const Channel& channel : *rings) writer_.AddRing(choice, channel);
  }

  // Everything except its time. `made`: its layout, if there is one already.
  void Arrange(const Collective& collective, const std::vector<uint32_t>& ranks,
               std::shared_ptr<GroupLayout> made, GroupPlan* plan) {
    const std::shared_ptr<GroupLayout> layout = LayoutOf(collective, ranks, std::move(made), plan);
    const std::vector<std::vector<RoundFlow>>& rounds = layout->rounds;
    const Cluster& cluster = router_.cluster();
    if (layout.use_count() == 1)
      plan->parts = std::move(layout->parts);
    else
      plan->parts = layout->parts;
    if (fidelity_ == Fidelity::kFormula && plan->IsUneven()) {
      for (const auto& part : rounds) plan->uneven.push_back(UnevenCost(part, cluster));
    } else if (fidelity_ == Fidelity::kFormula || plan->IsPipeline()) {
      if (!layout->paces) layout->paces = IdlePaces(rounds, cluster);
      plan->paces = *layout->paces;
    }
    if (plan->IsPipeline()) {
      if (!layout->pipeline) layout->pipeline = PipelineOf(*plan, rounds, router_);
      plan->pipeline = *layout->pipeline;
      for (const auto& part : rounds) plan->unit_shares.push_back(plan->ways * part[0].share);
    }
    for (uint32_t part = 0; part < plan->parts.size(); ++part) {
      if (fidelity_ == Fidelity::kFluid) writer_.AddRounds(part, rounds[part]);
      if (GoesByStep(fidelity_)) writer_.AddMessages(*plan, part);
    }
  }

  // What the plan is for; returns its parts and, unless they go step by step, their rounds.
  std::shared_ptr<GroupLayout> LayoutOf(const Collective& collective,
                                        const std::vector<uint32_t>& ranks,
                                        std::shared_ptr<GroupLayout> made, GroupPlan* plan) {
    const Algorithm& algorithm = *plan->choice.algorithm;
    plan->ranks = ranks;
    plan->ways = router_.ways();
    plan->phase = PhaseOf(collective.communicator.index(), algorithm.name(), 0);
    for (const Bytes bytes : collective.pair_bytes) {
      plan->pair_shares.push_back(collective.bytes > Bytes(0) ? bytes / collective.bytes : 0.0);
    }
    plan->rank_share = collective.rank_share;
    plan->machine_share = collective.machine_share;
    if (plan->IsUneven()) return MakeLayout(collective, plan);
    if (!memory_.KeepsGroups() || GoesByStep(fidelity_))
      return made ? made : MakeLayout(collective, plan);
    std::shared_ptr<GroupLayout>& known =
        memory_.Of(ranks).layouts[{&algorithm, collective.kind, collective.root,
                                   plan->choice.channels, plan->choice.steps_wait}];
    if (!known) known = made ? std::move(made) : MakeLayout(collective, plan);
    return known;
  }

  std::shared_ptr<GroupLayout> MakeLayout(const Collective& collective, GroupPlan* plan) {
    auto layout = std::make_shared<GroupLayout>();
    plan->parts = plan->choice.algorithm->arrange({collective.kind, collective.root, plan->ranks,
                                                   plan->choice.channels, router_, memory_.finder(),
                                                   !plan->pair_shares.empty()});
    if (!GoesByStep(fidelity_) || plan->IsPipeline()) {
      for (size_t part = 0; part < plan->parts.size(); ++part)
        layout->rounds.push_back(RoundsOfPart(*plan, part, router_, &messages_));
    }
    layout->parts = std::move(plan->parts);
    return layout;
  }

  void SetTime(Bytes bytes, GroupPlan* plan) const {
    if (fidelity_ == Fidelity::kFormula) {
      plan->time = ClosedForm(*plan, bytes);
    } else if (plan->IsPipeline()) {
      const Bytes wire = bytes / plan->choice.bandwidth_share;
      plan->time = plan->pipeline.Time(wire, plan->pipeline.BestPieces(wire));
    }
  }

  // A device's way to the memory of its host, or back.
  uint32_t HostSite(uint32_t rank, const Slot& slot) {
    Site site;
    site.communicator = slot.communicator;
    site.group = static_cast<uint32_t>(table_.sites.size());
    site.request = slot.sends ? 0 : 1;
    site.ranks = {rank};
    site.transfer_begin = static_cast<uint32_t>(table_.transfers.size());
    writer_.AddCopy(rank, host_ways_.Of(rank, slot.sends));
    site.transfer_end = static_cast<uint32_t>(table_.transfers.size());
    table_.sites.push_back(std::move(site));
    return static_cast<uint32_t>(table_.sites.size() - 1);
  }

  uint32_t PairSite(uint32_t rank, const Slot& slot) {
    const Communicator& communicator = schedule_.communicators[slot.communicator];
    const Communicator::Position position = PositionOf(rank, slot.communicator);
    const uint32_t peer = communicator.Rank(position.group, slot.peer);
    const uint32_t from = slot.sends ? rank : peer;
    const uint32_t to = slot.sends ? peer : rank;
    const auto [it, is_new] = pair_sites_.emplace(std::make_tuple(slot.communicator, from, to), 0);
    if (is_new) {
      Site site;
      site.communicator = slot.communicator;
      site.group = static_cast<uint32_t>(table_.sites.size());
      site.is_pair = true;
      site.ranks = {from, to};
      site.transfer_begin = static_cast<uint32_t>(table_.transfers.size());
      writer_.AddMessage(plain_, from, to, PhaseOf(slot.communicator, "", 0));
      site.transfer_end = static_cast<uint32_t>(table_.transfers.size());
      it->second = static_cast<uint32_t>(table_.sites.size());
      table_.sites.push_back(std::move(site));
    }
    return it->second;
  }

  const Schedule& schedule_;
  Router& router_;
  const std::unique_ptr<GroupMemory> own_memory_;  // null where there is one of many schedules
  GroupMemory& memory_;
  Tuner tuner_{memory_};
  const Fidelity all_fidelity_;
  Fidelity fidelity_;  // of the site that is being made
  const uint32_t channels_;
  TransferTable table_;
  TransferWriter writer_{router_, schedule_.ranks(), &table_};
  Choice plain_;                               // of sends and receives
  std::vector<std::vector<Slot>> slots_;       // by role
  std::vector<std::vector<uint32_t>> groups_;  // by communicator and group: its first site
  std::vector<uint32_t> group_of_rank_;        // by communicator, of one rank, once known
  std::vector<Request> requests_;
  std::map<Question, uint32_t> request_index_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> pair_sites_;
  HostWays host_ways_{router_.cluster()};
  MessageMemory messages_;
  std::map<Way, PlacedWay> first_of_way_;
  std::map<uint32_t, std::vector<uint32_t>> shapes_;  // by communicator and group, once known
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> plan_of_shape_;  // by request and shape
  std::map<std::vector<uint32_t>, uint32_t> alike_;                  // see AlikeInAMachine
  std::vector<uint32_t> alike_key_;                                  // while one is looked for
};

}  // namespace

const char* Name(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kFormula:
      return "formula";
    case Fidelity::kFluid:
      return "fluid";
    case Fidelity::kStep:
      return "step";
    case Fidelity::kPacket:
      return "packet";
  }
  return "?";
}

const char* LeftOutBy(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kFormula:
      return "links that several collectives share: each takes its closed form on an idle machine";
    case Fidelity::kFluid:
      return "single steps of a ring, packets, queues in switches";
    case Fidelity::kStep:
      return "packets, queues in switches";
    case Fidelity::kPacket:
      return "single steps within a machine; bandwidth of acknowledgements and pauses; links that "
             "packets and flows within a machine share";
  }
  return "?";
}

TransferTable MakeTransfers(const Schedule& schedule, Router& router, Fidelity fidelity,
                            uint32_t channels, const NcclSettings& nccl, GroupMemory* memory) {
  return Maker(schedule, router, fidelity, channels, nccl, memory).Run();
}

}  // namespace rehearse
