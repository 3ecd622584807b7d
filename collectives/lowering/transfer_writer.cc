#include "collectives/lowering/transfer_writer.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "collectives/lowering/rounds.h"
#include "sim/base/error.h"
#include "sim/base/machine_memory.h"
#include "sim/base/units.h"
#include "topology/fabrics/structure.h"

namespace rehearse {

void TransferWriter::AddRing(const Choice& choice, const Channel& channel) {
  Transfer transfer;
  transfer.share = channel.share / channel.ways;
  for (const Route* edge : channel.edges) {
    transfer.step_latency = std::max(transfer.step_latency, StepLatency(choice, edge->latency));
  }
  transfer.idle_rate = channel.rate / channel.ways;
  AddUses(channel.uses, channel.detour, &transfer);
  table_.transfers.Add(transfer);
}

void TransferWriter::AddEdges(const Choice& choice, const Channel& channel) {
  const uint32_t size = static_cast<uint32_t>(channel.ranks.size());
  const uint32_t first = static_cast<uint32_t>(table_.transfers.size());
  for (uint32_t i = 0; i < size; ++i) {
    Transfer transfer = OnRoute(choice, *channel.edges[i]);
    transfer.share *= channel.share;
    transfer.upstream = first + (i + size - 1) % size;
    transfer.downstream = first + (i + 1) % size;
    transfer.from = channel.ranks[i];
    transfer.to = channel.ranks[(i + 1) % size];
    table_.transfers.Add(transfer);
  }
}

void TransferWriter::AddRounds(uint32_t part, const std::vector<RoundFlow>& rounds) {
  uint32_t before = static_cast<uint32_t>(table_.transfers.size());
  uint32_t own = before;
  for (size_t i = 0; i < rounds.size(); ++i) {
    const RoundFlow& flow = rounds[i];
    if (i > 0 && flow.round != rounds[i - 1].round) {
      before = own;
      own = static_cast<uint32_t>(table_.transfers.size());
    }
    Transfer transfer;
    transfer.share = flow.share;
    transfer.step_latency = flow.latency;
    transfer.part = part;
    transfer.steps = flow.steps;
    transfer.after_begin = before;
    transfer.after_end = own;
    AddUses(flow.uses, flow.detour, &transfer);
    table_.transfers.Add(transfer);
  }
}

namespace {

// Throws Error if there is no room for the ways of so many messages. What is not much is not asked
// about, so that small collectives do not depend on the machine.
void RefuseBeyondMemory(size_t messages) {
  constexpr size_t kMany = size_t{1} << 22;
  // A transfer, the route between two ranks and the links on it, of which there are some six.
  constexpr double kBytesOfMessage = sizeof(Transfer) + sizeof(Route) + 6 * sizeof(LinkUse);
  if (messages < kMany) return;
  const double wanted = static_cast<double>(messages) * kBytesOfMessage;
  const std::optional<uint64_t> left = FreeMemory();
  if (!left || wanted <= static_cast<double>(*left)) return;
  throw Error(
      fmt::format("the collective is too large for this machine: the ways of its {} messages need "
                  "about {}, and "
                  "{} are free. --fidelity fluid or formula needs less",
                  messages, Print(Bytes(wanted)), Print(Bytes(static_cast<double>(*left)))));
}

}  // namespace

void TransferWriter::AddMessages(const GroupPlan& plan, uint32_t part_index) {
  const Part& part = plan.parts[part_index];
  const uint32_t p = part.input.ranks();
  const auto end = [&](uint32_t position) {
    return position < p ? plan.ranks[part.order[position]]
                        : ranks_ + table_.switches + position - p;
  };
  const std::optional<Seconds> forwarding = ForwardingLatency(plan, part_index, router_);
  const std::vector<PartMessage> messages = MessagesOfPart(plan, part_index);
  RefuseBeyondMemory(messages.size());
  for (const PartMessage& message : messages) {
    if (message.share == 0 && plan.kind != CollectiveKind::kBarrier) continue;
    const MessageWay way = WayOf(plan, part, message, router_);
    Transfer transfer;
    transfer.share = message.share / way.ways;
    transfer.step_latency = forwarding.value_or(way.latency);
    transfer.part = part_index;
    transfer.steps = message.steps;
    transfer.step = forwarding ? 0 : message.step;
    transfer.from = end(message.from);
    transfer.to = end(message.to);
    AddPath(way, &transfer);
    table_.transfers.Add(transfer);
  }
  table_.switches += plan.choice.algorithm->switches(part.input);
}

void TransferWriter::AddMessage(const Choice& choice, uint32_t from, uint32_t to, uint64_t phase) {
  Transfer transfer = OnRoute(choice, router_.Between(from, to, phase));
  transfer.from = from;
  transfer.to = to;
  transfer.is_of_pair = true;
  table_.transfers.Add(transfer);
}

void TransferWriter::AddCopy(uint32_t rank, const std::vector<uint32_t>& links) {
  Transfer transfer;
  transfer.from = transfer.to = rank;
  transfer.idle_rate = BytesPerSecond(std::numeric_limits<double>::infinity());
  transfer.use_begin = static_cast<uint32_t>(table_.uses.size());
  for (const uint32_t link : links) {
    const ClusterLink figures = router_.cluster().Link(link);
    transfer.step_latency += figures.latency;
    transfer.idle_rate = std::min(transfer.idle_rate, figures.Capacity());
    table_.uses.Add({LinkId(link), 1});
  }
  transfer.use_end = transfer.detour_end = static_cast<uint32_t>(table_.uses.size());
  table_.transfers.Add(transfer);
}

void TransferWriter::CopyTransfers(const Site& alike, Site* site) {
  const ClusterStructure& structure = *router_.cluster().structure();
  const uint32_t devices = structure.devices_per_machine;
  const uint32_t machines = site->ranks[0] / devices - alike.ranks[0] / devices;
  const uint32_t links =
      machines * structure.links_per_machine();  // may wrap, and so may sums with it
  const uint32_t ranks = machines * devices;
  const auto move = [](uint32_t place, uint32_t by) {
    return place == kNoTransfer ? kNoTransfer : place + by;
  };
  for (uint32_t i = alike.transfer_begin; i < alike.transfer_end; ++i) {
    Transfer transfer = table_.transfers[i];
    const uint32_t begin = transfer.use_begin;
    const uint32_t end = transfer.detour_end;
    const uint32_t uses = static_cast<uint32_t>(table_.uses.size()) - begin;
    const uint32_t transfers = site->transfer_begin - alike.transfer_begin;
    transfer.use_begin += uses;
    transfer.use_end += uses;
    transfer.detour_end += uses;
    transfer.after_begin += transfers;
    transfer.after_end += transfers;
    transfer.upstream = move(transfer.upstream, transfers);
    transfer.downstream = move(transfer.downstream, transfers);
    if (transfer.from != transfer.to) {
      transfer.from += ranks;
      transfer.to += ranks;
    }
    for (uint32_t use = begin; use < end; ++use) {
      const LinkUse own = table_.uses[use];
      table_.uses.Add({LinkId(own.link.index() + links), own.multiplicity});
    }
    table_.transfers.Add(transfer);
  }
}

Transfer TransferWriter::OnRoute(const Choice& choice, const Route& route) {
  Transfer transfer;
  transfer.step_latency = StepLatency(choice, route.latency);
  transfer.share = 1.0 / router_.ways();
  transfer.idle_rate = route.bandwidth / router_.ways();
  const bool fails = router_.MeetsFailure(route);
  AddPath({&route, {}, route.detour, fails, Seconds(0), router_.ways()}, &transfer);
  return transfer;
}

void TransferWriter::AddPath(const MessageWay& way, Transfer* transfer) {
  transfer->use_begin = static_cast<uint32_t>(table_.uses.size());
  ForEachCrossing(way, [this](uint32_t link, uint32_t parts) {
    table_.uses.Add({LinkId(link), parts});
  });
  transfer->use_end = static_cast<uint32_t>(table_.uses.size());
  if (way.may_fail)
    for (const uint32_t link : way.detour) table_.uses.Add({LinkId(link), way.ways});
  transfer->detour_end = static_cast<uint32_t>(table_.uses.size());
}

void TransferWriter::AddUses(const std::vector<LinkUse>& own, const std::vector<LinkUse>& detour,
                             Transfer* transfer) {
  transfer->use_begin = static_cast<uint32_t>(table_.uses.size());
  table_.uses.Add(own);
  transfer->use_end = static_cast<uint32_t>(table_.uses.size());
  table_.uses.Add(detour);
  transfer->detour_end = static_cast<uint32_t>(table_.uses.size());
}

}  // namespace rehearse
