// What a GPU loses to its driver and its libraries, besides what a job allocates.
//
//   driver  its context, and NCCL's first state: 1.06 GB on an H100 before the first collective
//           (NVIDIA/nccl issue 1685); assumed on all GPUs
//   NCCL    buffers of each communicator that the role communicates on. They grow with its channels
//           and not with its members (a maintainer in NVIDIA/nccl issue 986). Four A100 with 24
//           channels take 544 MiB where 2 of them communicate and 688 MiB where more do
//           (NVIDIA/nccl issue 964), which is 22.7 and 28.7 MiB a channel.
//           All-to-all and sends connect to each peer of the machine on all channels besides:
//           eight H100 with 32 channels take 3.28 GB (NVIDIA/nccl issue 1685), which is 14.6 MB a
//           peer and channel. We count the largest of a role's communicators for that, and at most
//           7 peers: what more take nobody has published. Peers in other machines share buffers,
//           which we leave out.
//   cuBLAS  workspaces: 32 MiB from compute capability 9.0 on, 8 MiB before
//           (pytorch.org/docs, CUBLAS_WORKSPACE_CONFIG)
//
// NCCL's channels are counted from the links of one machine, without routes: as its search finds
// them on NVSwitches (collectives/nccl/nccl_search.h), two for each NVLink elsewhere, two without
// NVLinks, and between machines two for each channel of the NICs beside the members there.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// How the members of a group lie.
struct GroupSpread {
  uint32_t inside = 1;    // members in the machine that has most of them
  uint32_t machines = 1;  // that have some
};

class LibraryMemory {
 public:
  // The cluster must outlive it.
  explicit LibraryMemory(const Cluster& cluster) : cluster_(cluster) {}

  // What a rank of the role takes on that device; 0 where that is no GPU. `placement`: rank ->
  // device. Of a communicator with groups that lie differently, the first counts. All calls must
  // ask about one schedule and placement.
  Bytes Of(const Schedule& schedule, const Role& role, const std::vector<uint32_t>& placement,
           uint32_t device);
  // How many channels NCCL has for such a group of devices like that one.
  uint32_t ChannelsOf(uint32_t device, const GroupSpread& spread);

 private:
  // What leaves a device, and its machine.
  struct Links {
    double nvlinks = 0;  // of the device
    bool has_nvswitch = false;
    uint32_t devices = 0;  // of its machine
    uint32_t nics = 0;
    BytesPerSecond nic;  // the cables of one
  };

  const Links& LinksOf(uint32_t device);
  void CountMachine(uint32_t device, Links* links) const;

  const Cluster& cluster_;
  std::map<uint32_t, Links> links_;          // by kind of device, which stand for their machines
  std::map<uint32_t, GroupSpread> spreads_;  // by communicator, of the schedule first asked about
};

}  // namespace rehearse
