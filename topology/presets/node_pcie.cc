#include "topology/presets/node_pcie.h"

#include "topology/presets/link_rows.h"

namespace rehearse {

// A bridged pair reaches an all-reduce bus bandwidth of 208 GB/s, three GPUs 20 (NVIDIA/nccl-tests
// issue 178). Of the three edges of that ring two are PCIe, through the root ports of one socket.
NodeSpec BridgePairsNode() {
  Host host;
  host.sockets = 2;
  host.device = MakeLink(LinkKind::kPcie, kPcie4, 20 / 31.5, kDeviceToPcie);
  host.between_sockets = EpycToEpyc();
  host.memory_bandwidth = kEpycMemory;
  NodeSpec node;
  node.devices = 8;
  node.lanes = {{0, 1, 12}, {2, 3, 12}, {4, 5, 12}, {6, 7, 12}};
  node.lane = MakeLink(LinkKind::kNvLink, BytesPerSecond(25e9), 208 / 300.0, kNvLinkHop);
  node.host = host;
  return node;
}

// ATP calibrated what remains of the bandwidth: four GPUs of a socket get 4.95 GB/s, in NCCL's
// terms a bus bandwidth of 4.95 · 2 · 3/4 = 7.4 on each of 4 edges through that socket's memory.
// Eight get 0.97, a bus bandwidth of 0.97 · 2 · 7/8 = 1.70 on the one edge each way that crosses
// between the sockets.
NodeSpec AtpMachineAWithoutPeers() {
  Host host;
  host.sockets = 2;
  host.switches = 4;
  host.device = Pcie(kPcie4, kDeviceToPcieStaged);
  host.root_port = Pcie(kPcie4, kRootPort);
  host.between_sockets = EpycToEpyc();
  host.memory_bandwidth = kEpycMemory;
  host.between_sockets->efficiency = 0.97 * 2 * 7 / 8 / 96;
  host.memory = HostMemory(kEpycCopies, 4 * 4.95 * 2 * 3 / 4 / 102.4);
  NodeSpec node;
  node.devices = 8;
  node.host = host;
  return node;
}

NodeSpec Rtx4090Node() {
  Host host;
  host.sockets = 2;
  host.nics = 1;
  host.device = Pcie(kPcie4, kDeviceToPcie);
  host.nic = Pcie(kPcie4, kPcieToNic);
  host.between_sockets = EpycToEpyc();
  host.memory_bandwidth = kEpycMemory;
  host.memory = HostMemory(kEpycCopies, kCopyEfficiency);
  NodeSpec node;
  node.devices = 8;
  node.host = host;
  node.cable = Network(100, kInfiniBandEfficiency);
  return node;
}

// These figures are assumed, for a calibration to replace: a core copies 10 GB/s, two channels of
// DDR4-3200 (51.2 GB/s, half of it for copies) serve all of them, and a message takes 0.5 us (an
// all-reduce of one integer between two ranks took 0.25 to 0.5 us on our development machine).
NodeSpec CpuNode(uint32_t ranks) {
  Host host;
  host.sockets = 1;
  host.device = MakeLink(LinkKind::kMemory, BytesPerSecond(10e9), 1, Seconds(0.25e-6));
  host.memory = HostMemory(BytesPerSecond(51.2e9 / 2), 0.8);
  NodeSpec node;
  node.prefix = "host";
  node.device_name = "rank";
  node.devices = ranks;
  node.host = host;
  return node;
}

}  // namespace rehearse
