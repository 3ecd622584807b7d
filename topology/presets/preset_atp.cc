// The interconnects IC1 to IC6 of the ATP paper (arXiv 2301.08658, sections 3.4, 5.1 and 5.4).
#include "topology/presets/link_rows.h"
#include "topology/presets/node_nvidia.h"
#include "topology/presets/node_pcie.h"
#include "topology/presets/preset_rows.h"

namespace rehearse {
namespace {

using Parameters = std::map<std::string, uint32_t>;

MachineSpec Ic1(const Parameters&) {
  return {
      "atp-ic1",
      AtpMachineAWithoutPeers(),
      1,
      std::nullopt,
      {"Copies within a socket and between sockets get what ATP calibrated for meshes (2,4) and "
       "(8,1); what it calibrated for two GPUs across the sockets is 3 times what this predicts."}};
}

MachineSpec Ic2(const Parameters&) {
  return {"atp-ic2",
          BridgePairsNode(),
          1,
          std::nullopt,
          {"ATP's machine B is taken to be like the box of nccl-tests issue 178."}};
}

MachineSpec Ic3(const Parameters&) {
  return {"atp-ic3",
          NvSwitchDomain(8, A100ToNvSwitch()),
          1,
          std::nullopt,
          {"Only the NVSwitch plane is drawn."}};
}

// Fig. 7 (a): four GPUs all to all with 4 NVLinks per pair, one HDR link per node. The 50 GB/s per
// link there count both directions.
MachineSpec Ic4(const Parameters& parameters) {
  Host host;
  host.nics = 1;
  host.device = Pcie(kPcie4, kDeviceToPcie);
  host.nic = Pcie(kPcie4, kPcieToNic);
  NodeSpec node;
  node.devices = 4;
  node.lanes = AllToAll(4, 4);
  node.lane = MakeLink(LinkKind::kNvLink, BytesPerSecond(25e9), 76 * kGib / 100e9, kNvLinkHop);
  node.host = host;
  node.cable = Network(200, kInfiniBandEfficiency);
  return {
      "atp-ic4",
      node,
      parameters.at("nodes"),
      OneSwitch(),
      {"Cluster C is drawn as in ATP's Fig. 7 (a).", "The fabric is one switch of full bandwidth.",
       "NVLink's efficiency is assumed to be Perlmutter's."}};
}

MachineSpec Ic5(const Parameters& parameters) {
  return {"atp-ic5",
          NvSwitchDomain(parameters.at("devices"), H100ToNvSwitch()),
          1,
          std::nullopt,
          {"A theoretical machine: one NVLink domain of any size, with the H100's 18 links."}};
}

MachineSpec Ic6(const Parameters& parameters) {
  NodeSpec node;
  // The cable into the torus is as wide as the four links together, so that it is never the limit.
  node.cable = MakeLink(LinkKind::kNetwork, BytesPerSecond(4 * 25e9), 1, Seconds(0.5e-6));
  const ClusterLink link = MakeLink(LinkKind::kNetwork, BytesPerSecond(25e9), 1, Seconds(0.5e-6));
  TorusSpec torus;
  torus.dimensions = {{parameters.at("x"), true, link}, {parameters.at("y"), true, link}};
  return {
      "atp-ic6",
      node,
      parameters.at("x") * parameters.at("y"),
      torus,
      {"A theoretical machine: links of 25 GB/s per direction as in Fig. 7 (b); 0.5 us per link is "
       "assumed."}};
}

}  // namespace

std::vector<ClusterPreset> AtpPresets() {
  const char* atp = "ATP (arXiv 2301.08658), sections 3.4, 5.1, 5.3 and 5.4";
  return {
      {"atp-ic1",
       "ATP's IC1: 8 A100 on PCIe without peer-to-peer, through the host's memory",
       atp,
       "a100-80g",
       {},
       Ic1},
      {"atp-ic2", "ATP's IC2: 8 A100 in NVLink pairs over PCIe", atp, "a100-80g", {}, Ic2},
      {"atp-ic3", "ATP's IC3: 8 A100 on NVSwitch", atp, "a100-80g", {}, Ic3},
      {"atp-ic4",
       "ATP's IC4: nodes of 4 A100 with one HDR NIC",
       atp,
       "a100-80g",
       {Nodes("nodes of 4 GPUs", 4)},
       Ic4},
      {"atp-ic5",
       "ATP's IC5: an NVLink-switch domain of any size",
       atp,
       "h100",
       {{"devices", 2, 4096, 16, "devices"}},
       Ic5},
      {"atp-ic6",
       "ATP's IC6: a 2-D torus of 25 GB/s links",
       atp,
       "a100-80g",
       {{"x", 1, 256, 4, "devices along the first dimension"},
        {"y", 1, 256, 4, "devices along the second dimension"}},
       Ic6},
  };
}

}  // namespace rehearse
