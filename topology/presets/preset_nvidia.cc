// NVIDIA's own machines: DGX boxes on rail-optimised fat trees as in its SuperPOD reference
// architectures.
#include "topology/presets/link_rows.h"
#include "topology/presets/node_nvidia.h"
#include "topology/presets/preset_rows.h"

namespace rehearse {
namespace {

using Parameters = std::map<std::string, uint32_t>;

constexpr const char* kRails =
    "Rails on a fat tree without oversubscription, as few levels as it takes; one switch if that "
    "is enough.";
constexpr const char* kPlane =
    "The NVSwitches are one vertex, a non-blocking plane; storage NICs are left out.";

// Quantum HDR switches have 40 ports, Quantum-2 NDR switches 64, EDR switches 36.
ClosSpec FatTree(uint32_t radix, double gigabits, bool rails) {
  ClosSpec spec;
  spec.radix = radix;
  spec.rails = rails;
  spec.cable = SwitchCable(gigabits, kInfiniBandEfficiency);
  return spec;
}

MachineSpec DgxA100(const Parameters& parameters) {
  return {
      "dgx-a100", DgxA100Node(), parameters.at("nodes"), FatTree(40, 200, true), {kRails, kPlane}};
}
MachineSpec DgxA100With80Gigabytes(const Parameters& parameters) {
  MachineSpec spec = DgxA100(parameters);
  spec.name = "dgx-a100-80g";
  return spec;
}
MachineSpec DgxH100(const Parameters& parameters) {
  return {
      "dgx-h100", DgxH100Node(), parameters.at("nodes"), FatTree(64, 400, true), {kRails, kPlane}};
}
MachineSpec DgxH200(const Parameters& parameters) {
  MachineSpec spec = DgxH100(parameters);
  spec.name = "dgx-h200";
  return spec;
}
MachineSpec DgxH800(const Parameters& parameters) {
  return {
      "dgx-h800", DgxH800Node(), parameters.at("nodes"), FatTree(64, 400, true), {kRails, kPlane}};
}
MachineSpec DgxB200(const Parameters& parameters) {
  return {
      "dgx-b200", DgxB200Node(), parameters.at("nodes"), FatTree(64, 400, true), {kRails, kPlane}};
}

MachineSpec DgxB300(const Parameters& parameters) {
  return {
      "dgx-b300", DgxB300Node(), parameters.at("nodes"), FatTree(64, 800, true), {kRails, kPlane}};
}

// These are the boxes of DgxH100, as their makers sell them for Ethernet.
MachineSpec RoceH100(const Parameters& parameters) {
  MachineSpec spec = DgxH100(parameters);
  spec.name = "roce-h100";
  ClosSpec fabric = FatTree(64, 400, false);
  fabric.routing = {RouteChoice::kEcmp, 1};
  spec.fabric = fabric;
  spec.notes = {
      "A plain fat tree of 64-port Ethernet switches without oversubscription, as few "
      "levels as it takes, which hash flows to cables (ECMP); NICs have one queue pair per peer, "
      "as in NCCL.",
      kPlane};
  return spec;
}

// Scalable units of 20 boxes, one leaf per rail and unit; spine and core above (DGX SuperPOD A100
// reference architecture).
MachineSpec Selene(const Parameters& parameters) {
  MachineSpec spec = DgxA100(parameters);
  spec.name = "selene";
  std::get<ClosSpec>(*spec.fabric).levels = parameters.at("nodes") > 20 * 20 / 8 ? 3 : 2;
  return spec;
}

MachineSpec Dgx1V100(const Parameters& parameters) {
  return {"dgx-1-v100",
          Dgx1V100Node(),
          parameters.at("nodes"),
          FatTree(36, 100, false),
          {"A plain fat tree of EDR switches, as few levels as it takes.",
           "GPUs without a common NVLink meet on PCIe and between the sockets; rings avoid that."}};
}

MachineSpec OneflowV100(const Parameters& parameters) {
  return {"oneflow-v100",
          OneflowV100Node(),
          parameters.at("nodes"),
          OneSwitch(),
          {"The fabric is one switch of full bandwidth.", "All GPUs of a box share one NIC.",
           "NVLink and host as in dgx-1-v100."}};
}

constexpr const char* kRack =
    "A rack is one machine: its 18 compute trays share one NVLink domain, drawn as one vertex.";
constexpr const char* kBetweenRacks =
    "The fabric is four rails, one for each NIC of a tray, whose leaves take whole racks.";
constexpr const char* kChipToChip = "The C2C link's efficiency is assumed to be PCIe's.";

// The i-th of the four NICs of every tray is on rail i, as NVIDIA's reference architectures cable
// them. They had a plain fat tree first, on which no two GPUs are alike, so that DeepSeek-V3 on 256
// GB200 took 4.4 s to simulate instead of 0.8.
ClosSpec RailsOfTrays(uint32_t radix, double gigabits) {
  ClosSpec spec = FatTree(radix, gigabits, true);
  spec.rail_count = 4;
  return spec;
}

MachineSpec Nvl72(const Parameters& parameters) {
  return {"gb200-nvl72",
          Nvl72Rack(),
          parameters.at("racks"),
          RailsOfTrays(64, 400),
          {kRack, kBetweenRacks, kChipToChip}};
}

MachineSpec Gb300Nvl72(const Parameters& parameters) {
  return {"gb300-nvl72",
          Gb300Rack(),
          parameters.at("racks"),
          RailsOfTrays(144, 800),
          {kRack, kBetweenRacks, kChipToChip}};
}

}  // namespace

std::vector<ClusterPreset> NvidiaPresets() {
  const char* a100 =
      "NVIDIA DGX A100 System Architecture white paper; efficiencies: VIA-Research/vTrain "
      "f8dda847, NVIDIA/deepops "
      "3957a42f; latencies: NVIDIA/nccl tuning.cc";
  const char* hopper =
      "NVIDIA DGX H100/H200 System Architecture; efficiencies: ai-dynamo/aiconfigurator "
      "095f58a51c4c, network as the DGX A100's; latencies: NVIDIA/nccl tuning.cc";
  const PresetParameter boxes = Nodes("boxes of 8 GPUs");
  return {
      {"dgx-a100",
       "NVIDIA DGX A100: 8 A100 40 GB on NVSwitch, 8 HDR NICs on rails",
       a100,
       "a100-40g",
       {boxes},
       DgxA100},
      {"dgx-a100-80g",
       "NVIDIA DGX A100: 8 A100 80 GB on NVSwitch, 8 HDR NICs on rails",
       a100,
       "a100-80g",
       {boxes},
       DgxA100With80Gigabytes},
      {"selene",
       "NVIDIA Selene: DGX A100 80 GB, HDR SuperPOD of three levels",
       "NVIDIA DGX SuperPOD (A100) reference architecture; box as dgx-a100-80g",
       "a100-80g",
       {{"nodes", 1, 2000, 64, "boxes of 8 GPUs; Selene had 560"}},
       Selene},
      {"dgx-h100",
       "NVIDIA DGX H100: 8 H100 on NVSwitch, 8 NDR NICs on rails",
       hopper,
       "h100",
       {boxes},
       DgxH100},
      {"roce-h100",
       "8 H100 on NVSwitch, 8 RoCE NICs of 400 Gb/s on a fat tree that hashes",
       "Gangidi et al., RDMA over Ethernet for distributed training at Meta scale, SIGCOMM 2024: "
       "boxes, NICs and ECMP; figures as dgx-h100",
       "h100",
       {boxes},
       RoceH100},
      {"dgx-h200",
       "NVIDIA DGX H200: 8 H200 on NVSwitch, 8 NDR NICs on rails",
       hopper,
       "h200",
       {boxes},
       DgxH200},
      {"dgx-h800",
       "8 H800 on NVSwitch at 200 GB/s each way, 8 NDR NICs on rails",
       "Lenovo ThinkSystem LP1814: 400 GB/s of NVLink; DeepSeek-V3 Technical Report, section 3.1; "
       "efficiencies and latencies as dgx-h100",
       "h800",
       {boxes},
       DgxH800},
      {"dgx-b200",
       "NVIDIA DGX B200: 8 B200 on NVSwitch, 8 NDR NICs on rails",
       "NVIDIA DGX B200 data sheet; efficiencies: ai-dynamo/aiconfigurator 095f58a51c4c, network "
       "as "
       "the DGX A100's",
       "b200",
       {boxes},
       DgxB200},
      {"dgx-b300",
       "NVIDIA DGX B300: 8 B300 on NVSwitch, 8 NICs of 800 Gb/s on rails",
       "NVIDIA DGX B300 data sheet; efficiencies as dgx-b200",
       "b300",
       {boxes},
       DgxB300},
      {"dgx-1-v100",
       "NVIDIA DGX-1: 8 V100 in a hybrid cube mesh, 4 EDR NICs",
       "nvidia-smi topo -m (microsoft/msccl, Microway); efficiency: VIA-Research/vTrain f8dda847",
       "v100-32g",
       {boxes},
       Dgx1V100},
      {"oneflow-v100",
       "OneFlow's boxes of 8 V100 16 GB in a hybrid cube mesh, one 100 Gb/s NIC each",
       "nvidia-smi topo -m of Oneflow-Inc/DLPerf c89430ba; efficiencies as dgx-1-v100",
       "v100-16g",
       {Nodes("boxes of 8 GPUs", 4)},
       OneflowV100},
      {"gb200-nvl72",
       "NVIDIA GB200 NVL72: 72 GB200 in one NVLink domain, 72 NDR NICs on 4 rails",
       "NVIDIA GB200 NVL72 product page, DGX SuperPOD (GB200) reference architecture; efficiencies "
       "as dgx-b200",
       "gb200",
       {{"racks", 1, 4096, 1, "racks of 72 GPUs"}},
       Nvl72},
      {"gb300-nvl72",
       "NVIDIA GB300 NVL72: 72 GB300 in one NVLink domain, 72 NICs of 800 Gb/s on 4 rails",
       "NVIDIA GB300 NVL72 product page, DGX SuperPOD (GB300) reference architecture; efficiencies "
       "as dgx-b200",
       "gb300",
       {{"racks", 1, 4096, 1, "racks of 72 GPUs"}},
       Gb300Nvl72},
  };
}

}  // namespace rehearse
