// NVIDIA DGX A100 (2020).
//
// Box: 2 AMD EPYC 7742, 8 A100 SXM4, 6 NVSwitches, 4 PCIe switch complexes with 2 GPUs and 2 NICs each, 8
// ConnectX-6 HDR NICs of 200 Gb/s for the compute fabric (NVIDIA DGX A100 System Architecture white paper;
// which GPU shares a complex with which NIC as in `nvidia-smi topo -m`, NVIDIA/DCGM issue 149).
#include <array>

#include <fmt/format.h>

#include "topology/preset_rows.h"

namespace rehearse {
namespace {

constexpr uint32_t kGpus = 8;
constexpr uint32_t kComplexes = 4;
constexpr uint32_t kSockets = 2;

// 12 links of 25 GB/s a direction from each GPU. The six switches are one non-blocking plane, and a GPU
// stripes over them. Eight GPUs reach an all-reduce bus bandwidth of 229.35 GB/s of these 300 (VIA-Research/
// vTrain f8dda847, a100_allreduce_8gpu.csv, row of 1 GiB), in which every GPU sends at that rate.
ClusterLink NvLinks() {
  ClusterLink link;
  link.kind = LinkKind::kNvLink;
  link.bandwidth = BytesPerSecond(12 * 25e9);
  link.efficiency = 0.765;
  link.latency = kNvLinkHop / 2;  // GPU to switch and switch to GPU are one hop
  return link;
}

// As in preset_perlmutter.cc: 31.5 GB/s nominal, about 25 GB/s measured; GPU to GPU over one PCIe switch is
// NCCL's PCIe hop, GPU to GPU over two NICs its network hop.
ClusterLink Pcie(Seconds latency) {
  ClusterLink link;
  link.kind = LinkKind::kPcie;
  link.bandwidth = BytesPerSecond(31.5e9);
  link.efficiency = 0.79;
  link.latency = latency;
  return link;
}
constexpr Seconds kGpuToPcieSwitch = kPcieHop / 2;  // 2.85 us
constexpr Seconds kNicToSwitch(3.5e-6);
constexpr Seconds kPcieSwitchToNic = kNetworkHop / 2 - kGpuToPcieSwitch - kNicToSwitch;  // 0.65 us
constexpr Seconds kPcieSwitchToSocket(0.5e-6);                                           // assumed

// Between the sockets. Assumed: three xGMI links of 16 lanes at 16 GT/s, 32 GB/s each, and 0.5 us. No path
// between GPUs that keeps to its own NIC uses it.
ClusterLink SocketToSocket() {
  ClusterLink link;
  link.kind = LinkKind::kSocket;
  link.bandwidth = BytesPerSecond(3 * 32e9);
  link.latency = Seconds(0.5e-6);
  return link;
}

// HDR InfiniBand, 200 Gb/s. Four boxes reach an all-reduce bus bandwidth of 191.05 GB/s (NVIDIA/deepops 3957a42f,
// 32 GPUs, 4 GiB out of place), of 200 GB/s that the 8 NICs of a box have.
ClusterLink Hdr() {
  ClusterLink link;
  link.kind = LinkKind::kNetwork;
  link.bandwidth = BytesPerSecond(25e9);
  link.efficiency = 0.955;
  link.latency = kNicToSwitch;
  return link;
}

void AddNode(Cluster& cluster, const std::string& node, uint32_t device, Cluster::VertexId fabric) {
  std::array<Cluster::VertexId, kGpus> gpus{};
  for (uint32_t i = 0; i < kGpus; ++i)
    gpus[i] =
        cluster.AddVertex({fmt::format("{}/gpu{}", node, i), VertexKind::kDevice, node, device});
  const auto nvswitch = cluster.AddVertex({node + "/nvswitch", VertexKind::kNvSwitch, node, 0});
  for (const auto gpu : gpus) cluster.AddLinks(gpu, nvswitch, NvLinks());

  std::array<Cluster::VertexId, kSockets> sockets{};
  for (uint32_t i = 0; i < kSockets; ++i)
    sockets[i] =
        cluster.AddVertex({fmt::format("{}/socket{}", node, i), VertexKind::kSocket, node, 0});
  cluster.AddLinks(sockets[0], sockets[1], SocketToSocket());

  for (uint32_t i = 0; i < kComplexes; ++i) {
    const auto pcie =
        cluster.AddVertex({fmt::format("{}/pcie{}", node, i), VertexKind::kPcieSwitch, node, 0});
    cluster.AddLinks(pcie, sockets[i / (kComplexes / kSockets)], Pcie(kPcieSwitchToSocket));
    for (uint32_t j = 2 * i; j < 2 * i + 2; ++j) {
      const auto nic =
          cluster.AddVertex({fmt::format("{}/nic{}", node, j), VertexKind::kNic, node, 0});
      cluster.AddLinks(gpus[j], pcie, Pcie(kGpuToPcieSwitch));
      cluster.AddLinks(pcie, nic, Pcie(kPcieSwitchToNic));
      cluster.AddLinks(nic, fabric, Hdr());
    }
  }
}

std::unique_ptr<Cluster> Build(const DeviceSpec& device,
                               const std::map<std::string, uint32_t>& parameters) {
  auto cluster = std::make_unique<Cluster>("dgx-a100");
  const uint32_t spec = cluster->AddDeviceSpec(device);
  const auto fabric = cluster->AddVertex({"fabric", VertexKind::kSwitch, "", 0});
  for (uint32_t i = 0; i < parameters.at("nodes"); ++i)
    AddNode(*cluster, fmt::format("node{}", i), spec, fabric);
  cluster->AddNote("The compute fabric is one switch of full bandwidth, not rails and a fat tree.");
  cluster->AddNote(
      "The six NVSwitches are one vertex, a non-blocking plane; the two storage NICs are left "
      "out.");
  cluster->Finish();
  return cluster;
}

ClusterPreset Row(const char* name, const char* summary, const char* device) {
  return {.name = name,
          .summary = summary,
          .source =
              "NVIDIA DGX A100 System Architecture white paper; efficiencies: VIA-Research/vTrain "
              "f8dda847, NVIDIA/deepops 3957a42f; latencies: NVIDIA/nccl tuning.cc",
          .device = device,
          .parameters = {{"nodes", 1, 65536, 1, "boxes of 8 GPUs"}},
          .build = Build};
}

}  // namespace

ClusterPreset DgxA100() {
  return Row("dgx-a100", "NVIDIA DGX A100: 8 A100 40 GB on NVSwitch, 8 HDR NICs", "a100-40g");
}

ClusterPreset DgxA100With80Gigabytes() {
  return Row("dgx-a100-80g", "NVIDIA DGX A100: 8 A100 80 GB on NVSwitch, 8 HDR NICs", "a100-80g");
}

}  // namespace rehearse
