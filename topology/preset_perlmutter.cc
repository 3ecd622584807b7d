// Perlmutter, GPU nodes (NERSC, 2021).
//
// Node: 1 AMD EPYC 7763, 4 A100 SXM4 40 GB, 4 Slingshot-11 NICs, and no PCIe switch: GPUs and NICs hang on
// root ports of the socket (docs.nersc.gov/systems/perlmutter/architecture). The socket is drawn as its four
// NUMA quadrants with one GPU and one NIC each, all joined on the I/O die, so that every GPU has a NIC of its
// own. Every pair of GPUs has 4 NVLinks of the third generation.
#include <array>

#include <fmt/format.h>

#include "topology/preset_rows.h"

namespace rehearse {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr uint32_t kGpus = 4;

// 4 links of 25 GB/s a direction. Two GPUs of a node reach 76 GiB/s (axonn-ai/Megatron-AxoNN 885d2e75,
// examples/comm_model.py, whose GB are 2^30 bytes). The 225 GiB/s of four GPUs are not used here; three
// disjoint rings of such links make 228.
ClusterLink NvLinks() {
  ClusterLink link;
  link.kind = LinkKind::kNvLink;
  link.bandwidth = BytesPerSecond(4 * 25e9);
  link.efficiency = 76 * kGib / 100e9;
  link.latency = kNvLinkHop;
  return link;
}

// PCIe 4.0 x16: 16 lanes of 16 GT/s, 128 of 130 bits: 31.5 GB/s; about 25 GB/s measured between an A100 and
// its host (ZaidQureshi/bam, issue 54).
// GPU to GPU over the socket is NCCL's PCIe hop. The rest of the network hop is shared out so that the two
// GPU-socket, two socket-NIC and two NIC-switch links of a path make 14 us.
ClusterLink Pcie(Seconds latency) {
  ClusterLink link;
  link.kind = LinkKind::kPcie;
  link.bandwidth = BytesPerSecond(31.5e9);
  link.efficiency = 0.79;
  link.latency = latency;
  return link;
}
constexpr Seconds kGpuToSocket = kPcieHop / 2;  // 2.85 us
constexpr Seconds kNicToSwitch(3.5e-6);
constexpr Seconds kSocketToNic = kNetworkHop / 2 - kGpuToSocket - kNicToSwitch;  // 0.65 us

// Between quadrants. Assumed: the I/O die passes what the socket's memory delivers, 8 channels of DDR4-3200,
// 204.8 GB/s (AMD EPYC 7763 data sheet), and costs 0.1 us. It is wide enough not to bind.
ClusterLink IoDie() {
  ClusterLink link;
  link.kind = LinkKind::kSocket;
  link.bandwidth = BytesPerSecond(204.8e9);
  link.latency = Seconds(0.1e-6);
  return link;
}

// Slingshot 11, 200 Gb/s. Groups that cross nodes get 80 GiB/s from the four NICs of a node (Megatron-AxoNN,
// as above): 20 GiB/s each.
ClusterLink Slingshot() {
  ClusterLink link;
  link.kind = LinkKind::kNetwork;
  link.bandwidth = BytesPerSecond(25e9);
  link.efficiency = 20 * kGib / 25e9;
  link.latency = kNicToSwitch;
  return link;
}

void AddNode(Cluster& cluster, const std::string& node, uint32_t device, Cluster::VertexId fabric) {
  std::array<Cluster::VertexId, kGpus> gpus{};
  std::array<Cluster::VertexId, kGpus> quadrants{};
  for (uint32_t i = 0; i < kGpus; ++i)
    gpus[i] =
        cluster.AddVertex({fmt::format("{}/gpu{}", node, i), VertexKind::kDevice, node, device});
  for (uint32_t i = 0; i < kGpus; ++i) {
    quadrants[i] =
        cluster.AddVertex({fmt::format("{}/numa{}", node, i), VertexKind::kSocket, node, 0});
    const auto nic =
        cluster.AddVertex({fmt::format("{}/nic{}", node, i), VertexKind::kNic, node, 0});
    cluster.AddLinks(gpus[i], quadrants[i], Pcie(kGpuToSocket));
    cluster.AddLinks(quadrants[i], nic, Pcie(kSocketToNic));
    cluster.AddLinks(nic, fabric, Slingshot());
  }
  for (uint32_t i = 0; i < kGpus; ++i) {
    for (uint32_t j = i + 1; j < kGpus; ++j) {
      cluster.AddLinks(gpus[i], gpus[j], NvLinks());
      cluster.AddLinks(quadrants[i], quadrants[j], IoDie());
    }
  }
}

std::unique_ptr<Cluster> Build(const DeviceSpec& device,
                               const std::map<std::string, uint32_t>& parameters) {
  auto cluster = std::make_unique<Cluster>("perlmutter");
  const uint32_t spec = cluster->AddDeviceSpec(device);
  const auto fabric = cluster->AddVertex({"slingshot", VertexKind::kSwitch, "", 0});
  for (uint32_t i = 0; i < parameters.at("nodes"); ++i)
    AddNode(*cluster, fmt::format("node{}", i), spec, fabric);
  cluster->AddNote(
      "The dragonfly fabric is one switch of full bandwidth: no contention between groups.");
  cluster->AddNote("The socket is drawn as four quadrants with one GPU and one NIC each.");
  cluster->Finish();
  return cluster;
}

}  // namespace

ClusterPreset Perlmutter() {
  return {.name = "perlmutter",
          .summary = "NERSC Perlmutter GPU nodes: 4 A100 with 4 NVLinks a pair, 4 Slingshot NICs",
          .source =
              "docs.nersc.gov/systems/perlmutter/architecture; efficiencies: "
              "axonn-ai/Megatron-AxoNN 885d2e75; latencies: NVIDIA/nccl tuning.cc",
          .device = "a100-40g",
          .parameters = {{"nodes", 1, 65536, 1, "nodes of 4 GPUs"}},
          .build = Build};
}

}  // namespace rehearse
