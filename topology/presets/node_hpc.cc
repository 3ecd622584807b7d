#include "topology/presets/node_hpc.h"

#include "topology/presets/link_rows.h"

namespace rehearse {
namespace {

// Four devices, all to all, with sockets and NICs as given: one NIC for each device.
NodeSpec Quad(uint32_t lanes, double efficiency, uint32_t sockets, const ClusterLink& cable) {
  Host host;
  host.sockets = sockets;
  host.nics = 4;
  host.device = Pcie(kPcie4, kDeviceToPcie);
  host.nic = Pcie(kPcie4, kPcieToNic);
  NodeSpec node;
  node.devices = 4;
  node.lanes = AllToAll(4, lanes);
  node.lane = MakeLink(LinkKind::kNvLink, BytesPerSecond(25e9), efficiency, kNvLinkHop);
  node.host = host;
  node.cable = cable;
  return node;
}

// Two GPUs of a Perlmutter node reach 76 GiB/s over 4 NVLinks (axonn-ai/Megatron-AxoNN 885d2e75,
// examples/comm_model.py). The 225 GiB/s of four GPUs are not used here; three disjoint rings of
// such links make 228.
constexpr double kPerlmutterNvLink = 76 * kGib / 100e9;

}  // namespace

NodeSpec PerlmutterNode() {
  NodeSpec node = Quad(4, kPerlmutterNvLink, 4, Network(200, kSlingshotEfficiency));
  node.host->socket_name = "numa";
  node.host->memory_bandwidth = kEpycMemory / 4;
  // Assumed: the I/O die passes what the socket's memory delivers, 8 channels of DDR4-3200 (AMD
  // EPYC 7763 data sheet), and costs 0.1 us. It is wide enough not to be the limit.
  node.host->between_sockets =
      MakeLink(LinkKind::kSocket, BytesPerSecond(204.8e9), 1, Seconds(0.1e-6));
  return node;
}

// 4 NVLinks: one GPU sends 72 GB/s to another (NVIDIA/nccl-tests, sendrecv on Leonardo, 1 GiB). We
// assume that HDR100 is as efficient as HDR. The host is a Xeon 8358 (8 channels of DDR4-3200).
NodeSpec LeonardoNode() {
  NodeSpec node = Quad(4, 0.72, 1, Network(100, kInfiniBandEfficiency));
  node.host->memory_bandwidth = Channels(8, 3200);
  return node;
}

// We assume Perlmutter's efficiencies, because the NICs are the same; NVLinks are of generation 4.
NodeSpec AlpsNode() {
  NodeSpec node = Quad(6, kPerlmutterNvLink, 4, Network(200, kSlingshotEfficiency));
  node.host->socket_name = "grace";
  node.host->memory_bandwidth = kGraceMemory;
  // NVLink-C2C, 450 GB/s per direction; NIC on PCIe 5; Graces joined at 100 GB/s (arXiv
  // 2408.11556).
  node.host->device =
      MakeLink(LinkKind::kNvLink, BytesPerSecond(450e9), kPcieEfficiency, kDeviceToPcie);
  node.host->nic = Pcie(kPcie5, kPcieToNic);
  node.host->between_sockets =
      MakeLink(LinkKind::kSocket, BytesPerSecond(100e9), 1, Seconds(0.5e-6));
  return node;
}

// Two dies of a package reach 129 GiB/s of 200 GB/s (Megatron-AxoNN 885d2e75,
// examples/comm_model.py). The host is an EPYC 7A53.
NodeSpec FrontierNode(double slingshot) {
  Host host;
  host.sockets = 1;
  host.memory_bandwidth = kEpycMemory;
  host.switches = 4;
  host.switch_name = "package";
  host.nics = 4;
  host.device = MakeLink(LinkKind::kPcie, BytesPerSecond(50e9), kPcieEfficiency, kDeviceToPcie);
  host.device_to_socket =
      MakeLink(LinkKind::kXgmi, BytesPerSecond(36e9), kPcieEfficiency, kDeviceToPcie);
  host.nic = MakeLink(LinkKind::kPcie, BytesPerSecond(50e9), kPcieEfficiency, kPcieToNic);
  NodeSpec node;
  node.device_name = "gcd";
  node.devices = 8;
  node.lane = MakeLink(LinkKind::kXgmi, BytesPerSecond(50e9), 129 * kGib / 200e9, kNvLinkHop);
  node.lanes = {{0, 1, 4}, {2, 3, 4}, {4, 5, 4}, {6, 7, 4}, {0, 6, 2}, {1, 3, 2},
                {2, 4, 2}, {5, 7, 2}, {0, 2, 1}, {1, 5, 1}, {3, 7, 1}, {4, 6, 1}};
  node.host = host;
  node.cable = Network(200, slingshot);
  return node;
}

// Aries: AutoDDL gives a peak of 8.5 to 10 GB/s per node; 10.2 GB/s injection (Cray XC series
// network, WP-Aries01-1112).
NodeSpec PizDaintNode() {
  Host host;
  host.sockets = 1;
  host.nics = 1;
  host.device = Pcie(kPcie3, kDeviceToPcie);
  host.nic = Pcie(kPcie3, kPcieToNic);
  // 4 channels of DDR4-2133, 68 GB/s.
  host.memory = HostMemory(BytesPerSecond(68e9 / 2), kCopyEfficiency);
  host.memory_bandwidth = Channels(4, 2133);
  NodeSpec node;
  node.devices = 1;
  node.host = host;
  node.cable = Network(81.6, 8.5 / 10.2);
  return node;
}

}  // namespace rehearse
