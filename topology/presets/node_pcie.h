// Machines whose devices meet on PCIe or in the host's memory.
#pragma once

#include "topology/presets/node.h"

namespace rehearse {

// 8 A100 PCIe in pairs with NVLink bridges (NV12, 300 GB/s), on root ports of two EPYC sockets with
// peer-to-peer access (NVIDIA/nccl-tests issue 178, `nvidia-smi topo -m`). ATP's machine B looks
// the same (Fig. 2b).
NodeSpec BridgePairsNode();

// ATP's machine A with NCCL_P2P_DISABLE: 8 A100, two per PCIe switch, two EPYC sockets; everything
// goes through the host's memory (ATP, sections 5.1 and 5.3).
NodeSpec AtpMachineAWithoutPeers();

// 8 RTX 4090 on root ports of two EPYC 7542, without peer-to-peer access (NVIDIA/nccl-tests issue
// 331); one 100 Gb/s NIC, assumed, on the first socket.
NodeSpec Rtx4090Node();

// CPU ranks of one host: they exchange messages by copying through the memory that they share.
NodeSpec CpuNode(uint32_t ranks);

}  // namespace rehearse
