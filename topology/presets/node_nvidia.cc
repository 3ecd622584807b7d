#include "topology/presets/node_nvidia.h"

#include "topology/presets/link_rows.h"

namespace rehearse {
namespace {

constexpr double kNvSwitchEfficiency = 0.765;

// GPU to switch and switch to GPU are one hop.
ClusterLink ToNvSwitch(double bandwidth) {
  return MakeLink(LinkKind::kNvLink, BytesPerSecond(bandwidth), kNvSwitchEfficiency,
                  kNvLinkHop / 2);
}

// Two sockets, with peer-to-peer: GPUs and NICs on PCIe switches.
Host TwoSockets(uint32_t switches, uint32_t nics, BytesPerSecond pcie,
                const ClusterLink& between_sockets) {
  Host host;
  host.sockets = 2;
  host.switches = switches;
  host.nics = nics;
  host.device = Pcie(pcie, kDeviceToPcie);
  host.root_port = Pcie(pcie, kRootPort);
  host.nic = Pcie(pcie, kPcieToNic);
  host.between_sockets = between_sockets;
  return host;
}

NodeSpec EightGpus(const ClusterLink& nvlinks, const Host& host, const ClusterLink& cable) {
  NodeSpec node;
  node.devices = 8;
  node.nvswitch = nvlinks;
  node.host = host;
  node.cable = cable;
  return node;
}

}  // namespace

ClusterLink A100ToNvSwitch() { return ToNvSwitch(12 * 25e9); }
ClusterLink H100ToNvSwitch() { return ToNvSwitch(18 * 25e9); }
ClusterLink B200ToNvSwitch() { return ToNvSwitch(18 * 50e9); }

NodeSpec DgxA100Node() {
  return EightGpus(A100ToNvSwitch(), TwoSockets(4, 8, kPcie4, EpycToEpyc()),
                   Network(200, kInfiniBandEfficiency));
}

// Between the Xeons: assumed 4 UPI links of 16 GT/s, 32 GB/s each.
NodeSpec DgxH100Node() {
  ClusterLink upi = EpycToEpyc();
  upi.bandwidth = BytesPerSecond(4 * 32e9);
  return EightGpus(H100ToNvSwitch(), TwoSockets(8, 8, kPcie5, upi),
                   Network(400, kInfiniBandEfficiency));
}

NodeSpec DgxB200Node() {
  NodeSpec node = DgxH100Node();
  node.nvswitch = B200ToNvSwitch();
  return node;
}

// EFA: two p4de reach an all-reduce algorithm bandwidth of 41.8 GB/s
// (awsome-distributed-training 7217859f, 2 GiB). NCCL's tree sends every byte once each way over
// the 4 NICs of 12.5 GB/s: 41.8 of 50.
NodeSpec AwsP4dNode() {
  return EightGpus(A100ToNvSwitch(), TwoSockets(4, 4, kPcie3, XeonToXeon()),
                   Network(100, 41.8 / 50));
}

// TCP: efficiency assumed 0.8.
NodeSpec GcpA2MegagpuNode() {
  Host host;
  host.sockets = 2;
  host.nics = 1;
  host.nic_place = NicPlace::kSocket;
  host.device = Pcie(kPcie4, kDeviceToPcie);
  host.nic = Pcie(kPcie4, kPcieToNic);
  host.between_sockets = XeonToXeon();
  host.memory = HostMemory(BytesPerSecond(140e9 / 2), kCopyEfficiency);  // 6 channels of DDR4-2933
  NodeSpec node;
  node.devices = 16;
  node.nvswitch = A100ToNvSwitch();
  node.host = host;
  node.cable = Network(100, 0.8);
  return node;
}

// Two GPUs over one NVLink of 25 GB/s reach 22.6 GB/s (vTrain f8dda847,
// v100_allreduce_2gpu.csv, 1 GiB).
NodeSpec Dgx1V100Node() {
  NodeSpec node;
  node.devices = 8;
  node.lane = MakeLink(LinkKind::kNvLink, BytesPerSecond(25e9), 22.6 / 25, kNvLinkHop);
  node.lanes = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  node.host = TwoSockets(4, 4, kPcie3, XeonToXeon());
  node.cable = Network(100, kInfiniBandEfficiency);
  return node;
}

NodeSpec OneflowV100Node() {
  NodeSpec node = Dgx1V100Node();
  node.host->nics = 1;
  return node;
}

NodeSpec Nvl72Rack() {
  Host host;
  host.sockets = 36;
  host.socket_name = "grace";
  host.nics = 72;
  // NVLink-C2C, 450 GB/s a direction.
  host.device = MakeLink(LinkKind::kNvLink, BytesPerSecond(450e9), kPcieEfficiency, kDeviceToPcie);
  host.nic = Pcie(kPcie5, kPcieToNic);
  NodeSpec node;
  node.prefix = "rack";
  node.devices = 72;
  node.nvswitch = B200ToNvSwitch();
  node.host = host;
  node.cable = Network(400, kInfiniBandEfficiency);
  return node;
}

NodeSpec NvSwitchDomain(uint32_t devices, const ClusterLink& nvlinks) {
  NodeSpec node;
  node.devices = devices;
  node.nvswitch = nvlinks;
  return node;
}

}  // namespace rehearse
