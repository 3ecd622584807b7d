#include "collectives/transfers.h"

#include "sim/error.h"

namespace rehearse {
namespace {

// What a slot of a role stands for: a group of a communicator, or a peer in it to send to or receive from.
struct Slot {
  uint32_t communicator = 0;
  bool is_pair = false;
  bool sends = false;
  uint32_t peer = 0;

  friend auto operator<=>(const Slot&, const Slot&) = default;
};

class Maker {
 public:
  Maker(const Schedule& schedule, Router& router, Fidelity fidelity, uint32_t channels)
      : schedule_(schedule),
        router_(router),
        finder_(router),
        fidelity_(fidelity),
        channels_(channels) {}

  TransferTable Run() {
    for (const Role& role : schedule_.roles) AddRole(role);
    group_sites_.resize(schedule_.communicators.size());
    table_.rank_begin.push_back(0);
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      for (const Slot& slot : slots_[schedule_.role_of_rank[rank]]) {
        table_.sites_of_rank.push_back(slot.is_pair ? PairSite(rank, slot)
                                                    : GroupSite(rank, slot.communicator));
      }
      table_.rank_begin.push_back(static_cast<uint32_t>(table_.sites_of_rank.size()));
    }
    return std::move(table_);
  }

 private:
  void AddRole(const Role& role) {
    std::vector<Slot> slots;
    std::map<Slot, uint32_t> index;
    std::vector<uint32_t> slot_of_op;
    for (const Op& op : role.ops) {
      const CommunicatorId id = CommunicatorOf(op.work);
      if (!id.IsSet() || schedule_.communicators[id.index()].size() == 1) {
        slot_of_op.push_back(kNoTransfer);
        continue;
      }
      Slot slot{.communicator = id.index(), .is_pair = false, .sends = false, .peer = 0};
      if (const auto* send = std::get_if<Send>(&op.work)) {
        slot = {id.index(), true, true, send->peer};
      } else if (const auto* receive = std::get_if<Receive>(&op.work)) {
        slot = {id.index(), true, false, receive->peer};
      }
      const auto [it, is_new] = index.emplace(slot, static_cast<uint32_t>(slots.size()));
      if (is_new) slots.push_back(slot);
      slot_of_op.push_back(it->second);
    }
    slots_.push_back(std::move(slots));
    table_.slot_of_op.push_back(std::move(slot_of_op));
  }

  Communicator::Position PositionOf(uint32_t rank, uint32_t communicator) const {
    const auto position = schedule_.communicators[communicator].PositionOf(rank);
    CHECK(position.has_value());
    return *position;
  }

  uint32_t GroupSite(uint32_t rank, uint32_t communicator_index) {
    const Communicator& communicator = schedule_.communicators[communicator_index];
    std::vector<uint32_t>& sites = group_sites_[communicator_index];
    if (sites.empty()) sites.assign(communicator.group_count(), kNoTransfer);
    const uint32_t group = PositionOf(rank, communicator_index).group;
    if (sites[group] != kNoTransfer) return sites[group];

    Site site;
    site.communicator = communicator_index;
    site.ranks.resize(communicator.size());
    for (uint32_t i = 0; i < communicator.size(); ++i) site.ranks[i] = communicator.Rank(group, i);
    std::vector<Channel> channels = finder_.Find(site.ranks, channels_);
    if (fidelity_ == Fidelity::kFormula) SetIdleRates(router_.cluster(), channels);
    site.transfer_begin = static_cast<uint32_t>(table_.transfers.size());
    for (const Channel& channel : channels) {
      if (fidelity_ == Fidelity::kStep) {
        AddEdges(channel);
      } else {
        AddRing(channel);
      }
    }
    sites[group] = AddSite(std::move(site));
    return sites[group];
  }

  void AddRing(const Channel& channel) {
    Transfer transfer;
    transfer.share = channel.share;
    transfer.step_latency = channel.step_latency;
    transfer.idle_rate = channel.rate;
    transfer.use_begin = static_cast<uint32_t>(table_.uses.size());
    table_.uses.insert(table_.uses.end(), channel.uses.begin(), channel.uses.end());
    transfer.use_end = static_cast<uint32_t>(table_.uses.size());
    table_.uses.insert(table_.uses.end(), channel.detour.begin(), channel.detour.end());
    transfer.detour_end = static_cast<uint32_t>(table_.uses.size());
    table_.transfers.push_back(transfer);
  }

  void AddEdges(const Channel& channel) {
    const uint32_t size = static_cast<uint32_t>(channel.ranks.size());
    const uint32_t first = static_cast<uint32_t>(table_.transfers.size());
    for (uint32_t i = 0; i < size; ++i) {
      Transfer transfer = OnRoute(*channel.edges[i]);
      transfer.share = channel.share;
      transfer.upstream = first + (i + size - 1) % size;
      transfer.downstream = first + (i + 1) % size;
      transfer.from = channel.ranks[i];
      transfer.to = channel.ranks[(i + 1) % size];
      table_.transfers.push_back(transfer);
    }
  }

  Transfer OnRoute(const Route& route) {
    Transfer transfer;
    transfer.step_latency = route.latency + router_.cluster().step_overhead();
    transfer.idle_rate = route.bandwidth;
    transfer.use_begin = static_cast<uint32_t>(table_.uses.size());
    for (const uint32_t link : route.links) table_.uses.push_back({LinkId(link), 1});
    transfer.use_end = static_cast<uint32_t>(table_.uses.size());
    for (const uint32_t link : route.detour) table_.uses.push_back({LinkId(link), 1});
    transfer.detour_end = static_cast<uint32_t>(table_.uses.size());
    return transfer;
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
      site.is_pair = true;
      site.ranks = {from, to};
      site.transfer_begin = static_cast<uint32_t>(table_.transfers.size());
      Transfer transfer = OnRoute(router_.Between(from, to));
      transfer.from = from;
      transfer.to = to;
      table_.transfers.push_back(transfer);
      it->second = AddSite(std::move(site));
    }
    return it->second;
  }

  uint32_t AddSite(Site site) {
    const uint32_t index = static_cast<uint32_t>(table_.sites.size());
    site.transfer_end = static_cast<uint32_t>(table_.transfers.size());
    for (uint32_t i = site.transfer_begin; i < site.transfer_end; ++i) {
      table_.transfers[i].site = index;
    }
    table_.sites.push_back(std::move(site));
    return index;
  }

  const Schedule& schedule_;
  Router& router_;
  ChannelFinder finder_;
  const Fidelity fidelity_;
  const uint32_t channels_;
  TransferTable table_;
  std::vector<std::vector<Slot>> slots_;            // by role
  std::vector<std::vector<uint32_t>> group_sites_;  // [communicator][group]
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> pair_sites_;
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
  }
  return "?";
}

TransferTable MakeTransfers(const Schedule& schedule, Router& router, Fidelity fidelity,
                            uint32_t channels) {
  return Maker(schedule, router, fidelity, channels).Run();
}

}  // namespace rehearse
