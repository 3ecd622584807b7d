#include "topology/presets/node_nvidia.h"

#include "topology/presets/link_rows.h"

namespace rehearse {
namespace {

// What rings reach of the NVLinks, apart from the first copy of a ring (collectives/nccl/pace.h).
// A100: VIA-Research/vTrain f8dda847. H100 and B200: all-reduce, all-gather and reduce-scatter of
// 256 and 512 MiB on 2, 4 and 8 GPUs (ai-dynamo/aiconfigurator 095f58a51c4c, NCCL 2.29.2): 366 of
// 450 and 683 of 900 GB/s.
constexpr double kA100Efficiency = 0.765;
constexpr double kH100Efficiency = 366.0 / 450;
constexpr double kB200Efficiency = 683.0 / 900;

// From GPU to switch and from switch to GPU is one hop, so each of the two has half its latency.
ClusterLink ToNvSwitch(double bandwidth, double efficiency) {
  return MakeLink(LinkKind::kNvLink, BytesPerSecond(bandwidth), efficiency, kNvLinkHop / 2);
}

// Two sockets with peer-to-peer access; GPUs and NICs are on PCIe switches.
Host TwoSockets(uint32_t switches, uint32_t nics, BytesPerSecond pcie,
                const ClusterLink& between_sockets, BytesPerSecond memory) {
  Host host;
  host.sockets = 2;
  host.switches = switches;
  host.nics = nics;
  host.device = Pcie(pcie, kDeviceToPcie);
  host.root_port = Pcie(pcie, kRootPort);
  host.nic = Pcie(pcie, kPcieToNic);
  host.between_sockets = between_sockets;
  host.memory_bandwidth = memory;
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

ClusterLink A100ToNvSwitch() { return ToNvSwitch(12 * 25e9, kA100Efficiency); }
ClusterLink H100ToNvSwitch() { return ToNvSwitch(18 * 25e9, kH100Efficiency); }
ClusterLink B200ToNvSwitch() { return ToNvSwitch(18 * 50e9, kB200Efficiency); }

NodeSpec DgxA100Node() {
  return EightGpus(A100ToNvSwitch(), TwoSockets(4, 8, kPcie4, EpycToEpyc(), kEpycMemory),
                   Network(200, kInfiniBandEfficiency));
}

// We assume that 4 UPI links of 16 GT/s, 32 GB/s each, join the Xeons (8480C, DDR5-4800).
NodeSpec DgxH100Node() {
  ClusterLink upi = EpycToEpyc();
  upi.bandwidth = BytesPerSecond(4 * 32e9);
  return EightGpus(H100ToNvSwitch(), TwoSockets(8, 8, kPcie5, upi, Channels(8, 4800)),
                   Network(400, kInfiniBandEfficiency));
}

NodeSpec DgxH800Node() {
  NodeSpec node = DgxH100Node();
  node.nvswitch = ToNvSwitch(8 * 25e9, kH100Efficiency);
  return node;
}

// Xeons 8570, DDR5-5600.
NodeSpec DgxB200Node() {
  NodeSpec node = DgxH100Node();
  node.nvswitch = B200ToNvSwitch();
  node.host->memory_bandwidth = Channels(8, 5600);
  return node;
}

// The NICs are ConnectX-8 of 800 Gb/s; Xeons 6776P, DDR5-6400.
NodeSpec DgxB300Node() {
  NodeSpec node = DgxB200Node();
  node.host->memory_bandwidth = Channels(8, 6400);
  node.host->device = Pcie(kPcie6, kDeviceToPcie);
  node.host->root_port = Pcie(kPcie6, kRootPort);
  node.host->nic = Pcie(kPcie6, kPcieToNic);
  node.cable = Network(800, kInfiniBandEfficiency);
  return node;
}

// There are 32 EFA NICs of 100 Gb/s, 4 at each GPU's PCIe switch, which are drawn as one of 400. We
// assume that they reach what other makers' do. The hosts are EPYC 7R13.
NodeSpec AwsP5Node() {
  NodeSpec node = DgxH100Node();
  node.host->memory_bandwidth = kEpycMemory;
  return node;
}

// A3 Mega: 8 NICs of 200 Gb/s; all-gather of 16 GPUs reaches a bus bandwidth of 188.5 GB/s of the
// 200 that the NICs have (dstackai/dstack mkdocs/docs/examples/clusters/gcp.md, 8 GiB).
NodeSpec GcpA3MegaNode() {
  NodeSpec node = DgxH100Node();
  node.cable = Network(200, 188.5 / 200);
  return node;
}

// A3 High: 4 NICs of 200 Gb/s, 2 GPUs each; 70.9 of 100 GB/s (GoogleCloudPlatform/cluster-toolkit
// examples/gke-a3-highgpu/multi-node-test-plan.md, 512 MiB).
NodeSpec GcpA3HighNode() {
  NodeSpec node = DgxH100Node();
  node.host->switches = 4;
  node.host->nics = 4;
  node.cable = Network(200, 70.9 / 100);
  return node;
}

// EFA: two p4de reach an all-reduce algorithm bandwidth of 41.8 GB/s
// (awsome-distributed-training 7217859f, 2 GiB). NCCL's tree sends every byte once each way over
// the 4 NICs of 12.5 GB/s: 41.8 of 50, at 0.92 of the links (collectives/nccl/pace.h).
NodeSpec AwsP4dNode() {
  return EightGpus(A100ToNvSwitch(), TwoSockets(4, 4, kPcie3, XeonToXeon(), Channels(6, 2933)),
                   Network(100, 41.8 / 0.92 / 50));
}

// The NIC is used by TCP, for which we assume an efficiency of 0.8.
NodeSpec GcpA2MegagpuNode() {
  Host host;
  host.sockets = 2;
  host.nics = 1;
  host.nic_place = NicPlace::kSocket;
  host.device = Pcie(kPcie4, kDeviceToPcie);
  host.nic = Pcie(kPcie4, kPcieToNic);
  host.between_sockets = XeonToXeon();
  host.memory = HostMemory(BytesPerSecond(140e9 / 2), kCopyEfficiency);  // 6 channels of DDR4-2933
  host.memory_bandwidth = Channels(6, 2933);
  NodeSpec node;
  node.devices = 16;
  node.nvswitch = A100ToNvSwitch();
  node.host = host;
  node.cable = Network(100, 0.8);
  return node;
}

// Two GPUs over one NVLink of 25 GB/s reach 22.6 GB/s (vTrain f8dda847,
// v100_allreduce_2gpu.csv, 1 GiB). The hosts' memory is DDR4-2133 (DGX-1's data sheet).
NodeSpec Dgx1V100Node() {
  NodeSpec node;
  node.devices = 8;
  node.lane = MakeLink(LinkKind::kNvLink, BytesPerSecond(25e9), 22.6 / 25, kNvLinkHop);
  node.lanes = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  node.host = TwoSockets(4, 4, kPcie3, XeonToXeon(), Channels(4, 2133));
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
  host.memory_bandwidth = kGraceMemory;
  // NVLink-C2C, 450 GB/s per direction.
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

NodeSpec Gb300Rack() {
  NodeSpec node = Nvl72Rack();
  node.host->nic = Pcie(kPcie6, kPcieToNic);
  node.cable = Network(800, kInfiniBandEfficiency);
  return node;
}

NodeSpec NvSwitchDomain(uint32_t devices, const ClusterLink& nvlinks) {
  NodeSpec node;
  node.devices = devices;
  node.nvswitch = nvlinks;
  return node;
}

}  // namespace rehearse
