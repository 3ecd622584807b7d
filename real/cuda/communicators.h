// The NCCL communicators of one rank.
//
// Each communicator of the Schedule is split off one for all ranks (ncclCommSplit), with members in
// the Schedule's order. Sends and receives have communicators of two ranks, one for each directed
// pair that a Schedule's communicator uses: there the k-th send meets the k-th receive whatever
// else both ranks do, so that NCCL's order is the Schedule's on every stream. All ranks make all
// calls in the same order.
#pragma once

#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "real/backends/rank_plan.h"
#include "real/cuda/libraries.h"
#include "real/transports/transport.h"

namespace rehearse {

// A run of elements to send and one to receive, dense in device memory. Sizes as
// sim/schedule/schedule.h says: `elements` is of the smaller of the two.
struct CollectiveBuffers {
  const void* from = nullptr;
  void* to = nullptr;
  uint64_t elements = 0;
  NcclType type = NcclType::kFp32;
};

class GpuCommunicators {
 public:
  // Collective over all ranks of the transport, after every rank has set its device. Rank 0 makes
  // NCCL's unique id, and the transport carries it. Throws Error if ranks have different NCCL
  // versions. If a rank is lost while the others wait for it in NCCL, which cannot be stopped, the
  // process names it and ends. Without NCCL, a single rank copies.
  GpuCommunicators(const GpuLibraries& gpu, const RankPlan& plan, Transport& transport);
  GpuCommunicators(const GpuCommunicators&) = delete;
  GpuCommunicators& operator=(const GpuCommunicators&) = delete;
  ~GpuCommunicators();

  // What `launch` runs here is launched as one group.
  void RunAsOne(const std::function<void()>& launch) const;
  void Run(const Collective& collective, const CollectiveBuffers& buffers, CudaStream stream) const;
  void Send(uint32_t communicator, uint32_t peer, const CollectiveBuffers& buffers,
            CudaStream stream) const;
  void Receive(uint32_t communicator, uint32_t peer, const CollectiveBuffers& buffers,
               CudaStream stream) const;

  // Throws Error if NCCL has found a fault on any of them since the last call.
  void Check() const;
  // Ends everything that waits in NCCL; nothing can be run afterwards.
  void Abort();

 private:
  // A pair is a communicator, a sending rank and a receiving rank.
  using Pair = std::tuple<uint32_t, uint32_t, uint32_t>;

  void MakeAll(const NcclUniqueId& id, const Transport& transport);
  NcclCommunicator Split(int color, int key);
  NcclCommunicator Of(uint32_t communicator) const;
  NcclCommunicator OfPair(const Pair& pair) const;
  void AllToAll(NcclCommunicator communicator, const Collective& collective, const Group& group,
                const CollectiveBuffers& buffers, CudaStream stream) const;
  void SendToNext(NcclCommunicator communicator, const Group& group,
                  const CollectiveBuffers& buffers, CudaStream stream) const;

  const CudaRuntime& cuda_;
  const Nccl* nccl_;  // null: a single rank, without NCCL
  const RankPlan& plan_;
  bool is_aborted_ = false;
  NcclCommunicator world_ = nullptr;
  std::vector<NcclCommunicator> all_;     // in the order they were made, the world's first
  std::vector<NcclCommunicator> groups_;  // by the Schedule's communicator; null without this rank
  std::map<Pair, NcclCommunicator> pairs_;
};

}  // namespace rehearse
