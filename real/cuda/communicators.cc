#include "real/cuda/communicators.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "real/cuda/kernel_arguments.h"
#include "real/kernels/storage.h"
#include "real/transports/lost_rank_watch.h"

namespace rehearse {
namespace {

constexpr uint32_t kIdTag = kControlTag + 64;

uint64_t SizeOf(NcclType type) { return type == NcclType::kFp32 ? 4 : 2; }

NcclReduction ReductionOf(const Collective& collective) {
  return collective.reduction == Reduction::kMaximum ? NcclReduction::kMaximum
                                                     : NcclReduction::kSum;
}

// What rank 0 tells the others, who compare it with their own.
struct Invitation {
  NcclUniqueId id = {};
  int version = 0;
};

Invitation Exchange(const Nccl& nccl, Transport& transport) {
  Invitation own;
  nccl.GetVersion(&own.version);
  if (transport.rank() == 0) {
    nccl.GetUniqueId(&own.id);
    std::vector<Transport::Handle> handles;
    for (uint32_t to = 1; to < transport.size(); ++to) {
      handles.push_back(transport.Send(to, kIdTag, &own, sizeof own));
    }
    for (Transport::Handle& handle : handles) transport.Wait(std::move(handle));
    return own;
  }
  Invitation first;
  transport.Wait(transport.Receive(0, kIdTag, &first, sizeof first));
  if (first.version != own.version) {
    throw Error(fmt::format("rank {} has NCCL {} ({}), rank 0 has {}; all ranks need the same",
                            transport.rank(), NcclVersionText(own.version), nccl.library.path(),
                            NcclVersionText(first.version)));
  }
  return first;
}

// The directed pairs of ranks that exchange messages on some communicator, divided into rounds in
// which no rank appears twice, so that each round is one split.
using Pair = std::tuple<uint32_t, uint32_t, uint32_t>;
std::vector<std::vector<Pair>> RoundsOfPairs(const Schedule& schedule) {
  std::set<Pair> pairs;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (const Op& op : schedule.roles[schedule.role_of_rank[rank]].ops) {
      const auto* send = std::get_if<Send>(&op.work);
      if (send == nullptr) continue;
      const uint32_t id = send->communicator.index();
      const Communicator& communicator = schedule.communicators[id];
      const auto position = communicator.PositionOf(rank);
      CHECK(position.has_value());
      pairs.emplace(id, rank, communicator.Rank(position->group, send->peer));
    }
  }
  std::vector<std::vector<Pair>> rounds;
  std::vector<std::set<uint32_t>> busy;
  for (const Pair& pair : pairs) {
    const auto [id, from, to] = pair;
    size_t round = 0;
    while (round < rounds.size() && (busy[round].count(from) + busy[round].count(to)) > 0) ++round;
    if (round == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back();
    }
    rounds[round].push_back(pair);
    busy[round].insert({from, to});
  }
  return rounds;
}

// What `launch` runs is launched as one group. The group is closed whatever `launch` throws,
// because nothing can be aborted inside one.
template <typename Launch>
void InGroup(const Nccl& nccl, const Launch& launch) {
  nccl.GroupStart();
  try {
    launch();
  } catch (...) {
    nccl.GroupEnd.Status();
    throw;
  }
  nccl.GroupEnd();
}

}  // namespace

GpuCommunicators::GpuCommunicators(const GpuLibraries& gpu, const RankPlan& plan,
                                   Transport& transport)
    : cuda_(gpu.cuda),
      nccl_(transport.size() == 1 && !gpu.nccl ? nullptr : &gpu.RequireNccl()),
      plan_(plan) {
  if (nccl_ == nullptr) return;
  const Invitation invitation = Exchange(*nccl_, transport);
  transport.Barrier();  // so that nobody waits in NCCL for a rank that has given up
  try {
    const LostRankWatch watch(transport, "NCCL");
    MakeAll(invitation.id, transport);
  } catch (const Error&) {
    transport.Check();  // it may know which rank NCCL is missing
    throw;
  }
}

void GpuCommunicators::MakeAll(const NcclUniqueId& id, const Transport& transport) {
  nccl_->CommInitRank(&world_, static_cast<int>(transport.size()), id,
                      static_cast<int>(transport.rank()));
  all_.push_back(world_);
  for (const Communicator& communicator : plan_.schedule->communicators) {
    const auto position = communicator.PositionOf(plan_.rank);
    groups_.push_back(Split(position ? static_cast<int>(position->group) : kNcclNoColor,
                            position ? static_cast<int>(position->member) : 0));
  }
  for (const std::vector<Pair>& round : RoundsOfPairs(*plan_.schedule)) {
    int color = kNcclNoColor;
    int key = 0;
    for (size_t i = 0; i < round.size(); ++i) {
      const auto [communicator, from, to] = round[i];
      if (plan_.rank != from && plan_.rank != to) continue;
      color = static_cast<int>(i);
      key = plan_.rank == from ? 0 : 1;
    }
    NcclCommunicator pair = Split(color, key);
    if (color != kNcclNoColor) pairs_[round[static_cast<size_t>(color)]] = pair;
  }
}

GpuCommunicators::~GpuCommunicators() {
  if (is_aborted_) return;
  for (auto communicator = all_.rbegin(); communicator != all_.rend(); ++communicator) {
    nccl_->CommDestroy.Status(*communicator);
  }
}

NcclCommunicator GpuCommunicators::Split(int color, int key) {
  NcclCommunicator made = nullptr;
  nccl_->CommSplit(world_, color, key, &made, nullptr);
  if (made != nullptr) all_.push_back(made);
  return made;
}

NcclCommunicator GpuCommunicators::Of(uint32_t communicator) const {
  CHECK(groups_[communicator] != nullptr);
  return groups_[communicator];
}

NcclCommunicator GpuCommunicators::OfPair(const Pair& pair) const {
  const auto found = pairs_.find(pair);
  CHECK(found != pairs_.end());
  return found->second;
}

void GpuCommunicators::RunAsOne(const std::function<void()>& launch) const {
  InGroup(*nccl_, launch);
}

void GpuCommunicators::Run(const Collective& collective, const CollectiveBuffers& buffers,
                           CudaStream stream) const {
  const uint64_t bytes = buffers.elements * SizeOf(buffers.type);
  if (IsHostCopy(collective.kind)) {
    const bool stores = collective.kind == CollectiveKind::kToHost;
    cuda_.MemcpyAsync(buffers.to, buffers.from, bytes,
                      stores ? CopyKind::kDeviceToHost : CopyKind::kHostToDevice, stream);
    return;
  }
  if (nccl_ == nullptr) {
    if (buffers.from != buffers.to && bytes > 0)
      cuda_.MemcpyAsync(buffers.to, buffers.from, bytes, CopyKind::kDeviceToDevice, stream);
    return;
  }
  const uint32_t id = collective.communicator.index();
  NcclCommunicator communicator = Of(id);
  const auto root = static_cast<int>(collective.root);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      nccl_->AllReduce(buffers.from, buffers.to, buffers.elements, buffers.type,
                       ReductionOf(collective), communicator, stream);
      return;
    case CollectiveKind::kAllGather:
      nccl_->AllGather(buffers.from, buffers.to, buffers.elements, buffers.type, communicator,
                       stream);
      return;
    case CollectiveKind::kReduceScatter:
      nccl_->ReduceScatter(buffers.from, buffers.to, buffers.elements, buffers.type,
                           ReductionOf(collective), communicator, stream);
      return;
    case CollectiveKind::kBroadcast:
      nccl_->Broadcast(buffers.from, buffers.to, buffers.elements, buffers.type, root, communicator,
                       stream);
      return;
    case CollectiveKind::kReduce:
      nccl_->Reduce(buffers.from, buffers.to, buffers.elements, buffers.type,
                    ReductionOf(collective), root, communicator, stream);
      return;
    case CollectiveKind::kAllToAll:
      AllToAll(communicator, collective, *plan_.groups[id], buffers, stream);
      return;
    case CollectiveKind::kSendReceive:
      SendToNext(communicator, *plan_.groups[id], buffers, stream);
      return;
    case CollectiveKind::kToHost:  // is handled above
    case CollectiveKind::kFromHost:
      break;
    case CollectiveKind::kBarrier:
      throw Error("NCCL has no barrier; CPU ranks can run one");
  }
}

// All-to-all is a group of sends and receives of blocks of equal or given sizes, in the order of
// members on both sides.
void GpuCommunicators::AllToAll(NcclCommunicator communicator, const Collective& collective,
                                const Group& group, const CollectiveBuffers& buffers,
                                CudaStream stream) const {
  const uint32_t ranks = group.size();
  if (collective.pair_bytes.empty()) CHECK_EQ(buffers.elements % ranks, 0u);
  const auto elements_of = [&](uint32_t from, uint32_t to) {
    if (collective.pair_bytes.empty()) return buffers.elements / ranks;
    return static_cast<uint64_t>(collective.pair_bytes[size_t{from} * ranks + to] /
                                 SizeOf(collective.dtype));
  };
  const uint64_t size = SizeOf(buffers.type);
  const char* from = static_cast<const char*>(buffers.from);
  char* to = static_cast<char*>(buffers.to);
  InGroup(*nccl_, [&] {
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      const uint64_t away = elements_of(group.member, peer);
      const uint64_t here = elements_of(peer, group.member);
      const auto other = static_cast<int>(peer);
      if (away > 0) nccl_->Send(from, away, buffers.type, other, communicator, stream);
      if (here > 0) nccl_->Receive(to, here, buffers.type, other, communicator, stream);
      from += away * size;
      to += here * size;
    }
  });
}

void GpuCommunicators::SendToNext(NcclCommunicator communicator, const Group& group,
                                  const CollectiveBuffers& buffers, CudaStream stream) const {
  const uint32_t ranks = group.size();
  InGroup(*nccl_, [&] {
    nccl_->Send(buffers.from, buffers.elements, buffers.type,
                static_cast<int>((group.member + 1) % ranks), communicator, stream);
    nccl_->Receive(buffers.to, buffers.elements, buffers.type,
                   static_cast<int>((group.member + ranks - 1) % ranks), communicator, stream);
  });
}

// In a pair's communicator the sender is member 0.
void GpuCommunicators::Send(uint32_t communicator, uint32_t peer, const CollectiveBuffers& buffers,
                            CudaStream stream) const {
  nccl_->Send(buffers.from, buffers.elements, buffers.type, 1,
              OfPair({communicator, plan_.rank, peer}), stream);
}

void GpuCommunicators::Receive(uint32_t communicator, uint32_t peer,
                               const CollectiveBuffers& buffers, CudaStream stream) const {
  nccl_->Receive(buffers.to, buffers.elements, buffers.type, 0,
                 OfPair({communicator, peer, plan_.rank}), stream);
}

void GpuCommunicators::Check() const {
  for (NcclCommunicator communicator : all_) {
    int status = 0;
    nccl_->CommGetAsyncError(communicator, &status);
    if (status != 0 && status != kNcclInProgress) nccl_->CommGetAsyncError.Fail(status);
  }
}

void GpuCommunicators::Abort() {
  if (is_aborted_) return;
  is_aborted_ = true;
  for (auto communicator = all_.rbegin(); communicator != all_.rend(); ++communicator) {
    nccl_->CommAbort.Status(*communicator);
  }
}

}  // namespace rehearse
