// Supercomputers: their nodes and their dragonflies.
#include "topology/presets/link_rows.h"
#include "topology/presets/node_hpc.h"
#include "topology/presets/preset_rows.h"

namespace rehearse {
namespace {

using Parameters = std::map<std::string, uint32_t>;

constexpr const char* kAdaptive =
    "Two switches of a group get the bandwidth that adaptive routing reaches between them: all "
    "that the NICs of one inject.";
constexpr const char* kGlobals =
    "A group keeps all its global cables, shared out among the existing groups.";

// HPE Cray EX: a cabinet of 128 nodes is a group; each of its 8 chassis has 16 nodes and 4
// switches, and a node's four NICs go to the four (docs.nersc.gov/systems/perlmutter/architecture;
// glennklockwood.com/garden/systems/frontier). The 32 switches are joined all to all. 64 ports
// each: 16 to NICs, 31 to the group, the rest to other groups.
DragonflySpec Slingshot(uint32_t global_cables, double efficiency) {
  DragonflySpec spec;
  spec.local = {{32, SwitchCable(16 * 200, efficiency)}};
  spec.machines_per_switch = 16;
  spec.global_cables = global_cables;
  spec.global = SwitchCable(200, efficiency);
  return spec;
}

constexpr uint32_t kAllGlobalPorts = 32 * 17;

MachineSpec Perlmutter(const Parameters& parameters) {
  return {
      "perlmutter",
      PerlmutterNode(),
      parameters.at("nodes"),
      Slingshot(kAllGlobalPorts, kSlingshotEfficiency),
      {"The dragonfly's groups hold GPU nodes only, and all free ports of a switch are global "
       "cables (assumed).",
       kAdaptive, kGlobals, "The socket is drawn as four quadrants with one GPU and one NIC each."},
      "cxi"};
}

// There are 4 cables between every two of 74 groups.
MachineSpec FrontierWith(const char* name, double slingshot, const Parameters& parameters) {
  return {
      name,
      FrontierNode(slingshot),
      parameters.at("nodes"),
      Slingshot(4 * 73, slingshot),
      {kAdaptive, kGlobals,
       "Both dies of a package reach its NIC equally well; dies without a common link meet at the "
       "CPU."},
      "cxi"};
}

MachineSpec Frontier(const Parameters& parameters) {
  return FrontierWith("frontier", kFrontierSlingshot2024, parameters);
}

// Newer libraries reach more, but they are a preset of their own instead of replacing the figures
// of "frontier", because AxoNN's published rows count on these.
MachineSpec FrontierRocm6(const Parameters& parameters) {
  return FrontierWith("frontier-rocm6", kFrontierSlingshotRocm6, parameters);
}

MachineSpec Alps(const Parameters& parameters) {
  return {"alps",
          AlpsNode(),
          parameters.at("nodes"),
          Slingshot(kAllGlobalPorts, kSlingshotEfficiency),
          {"The groups and the efficiencies are assumed to be Perlmutter's.", kAdaptive, kGlobals},
          "cxi"};
}

// Cells of 180 nodes, 18 leaf and 18 spine switches, 22 global HDR cables per spine (Turisini et
// al., JLSRF 8, 2024). The 720 HDR100 ports of a cell are drawn on 20 switches of 36 instead of 18
// of 40.
MachineSpec Leonardo(const Parameters& parameters) {
  DragonflySpec fabric;
  fabric.local = {{20, SwitchCable(36 * 100, kInfiniBandEfficiency)}};
  fabric.machines_per_switch = 36;
  fabric.global_cables = 18 * 22;
  fabric.global = SwitchCable(200, kInfiniBandEfficiency);
  return {"leonardo",
          LeonardoNode(),
          parameters.at("nodes"),
          fabric,
          {"The cells of its Dragonfly+ (leaves and spines) are drawn as groups of switches joined "
           "all to all, 20 "
           "instead of 18.",
           kAdaptive, kGlobals}};
}

// Aries: a router has 4 nodes; 16 routers of a chassis are joined all to all, and so are the 6 of a
// group that have the same place in their chassis; 10 global cables of 3 lanes of 12.5 Gb/s per
// router (Cray WP-Aries01-1112; NeSI, XC50 Aries network architecture).
MachineSpec PizDaint(const Parameters& parameters) {
  DragonflySpec fabric;
  const ClusterLink local = SwitchCable(4 * 81.6, 8.5 / 10.2);
  fabric.local = {{16, local}, {6, local}};
  fabric.machines_per_switch = 4;
  fabric.global_cables = 96 * 10;
  fabric.global = SwitchCable(37.5, 8.5 / 10.2);
  return {"piz-daint",
          PizDaintNode(),
          parameters.at("nodes"),
          fabric,
          {kAdaptive, kGlobals, "Every router has its ten global cables (assumed)."}};
}

}  // namespace

std::vector<ClusterPreset> SupercomputerPresets() {
  return {
      {"perlmutter",
       "NERSC Perlmutter GPU nodes: 4 A100 with 4 NVLinks a pair, 4 Slingshot NICs; dragonfly",
       "docs.nersc.gov/systems/perlmutter/architecture; efficiencies: axonn-ai/Megatron-AxoNN "
       "885d2e75; latencies: "
       "NVIDIA/nccl tuning.cc",
       "a100-40g",
       {Nodes("nodes of 4 GPUs")},
       Perlmutter},
      {"frontier",
       "OLCF Frontier with the libraries of early 2024: 4 MI250X (8 dies) on Infinity Fabric, "
       "4 Slingshot NICs; dragonfly",
       "docs.olcf.ornl.gov Frontier user guide; ROCm/rccl topo_8p_90a.xml; "
       "glennklockwood.com/garden/systems/frontier; "
       "efficiencies: axonn-ai/Megatron-AxoNN 885d2e75",
       "mi250x-gcd",
       {Nodes("nodes of 8 dies")},
       Frontier},
      {"frontier-rocm6",
       "The same with RCCL 2.20 of ROCm 6.2, which gets twice as much from the NICs",
       "docs.olcf.ornl.gov Frontier user guide; ROCm/rccl topo_8p_90a.xml; "
       "glennklockwood.com/garden/systems/frontier; "
       "efficiencies: axonn-ai/Megatron-AxoNN 885d2e75, ggracelii/mpich-rccl 790b7e90",
       "mi250x-gcd",
       {Nodes("nodes of 8 dies")},
       FrontierRocm6},
      {"alps",
       "CSCS Alps: 4 GH200 with 6 NVLinks a pair, 4 Slingshot NICs; dragonfly",
       "arXiv 2408.11556; docs.cscs.ch/alps/hardware; efficiencies as perlmutter",
       "gh200",
       {Nodes("nodes of 4 GPUs")},
       Alps},
      {"leonardo",
       "CINECA Leonardo Booster: 4 A100 64 GB with 4 NVLinks a pair, 4 HDR100 ports; dragonfly",
       "docs.hpc.cineca.it; leonardo-supercomputer.cineca.eu; NVLink efficiency: NVIDIA/nccl-tests "
       "on Leonardo",
       "a100-64g",
       {Nodes("nodes of 4 GPUs")},
       Leonardo},
      {"piz-daint",
       "CSCS Piz Daint XC50: one P100 a node, Aries dragonfly",
       "AutoDDL (arXiv 2301.06813), section 5; Cray WP-Aries01-1112",
       "p100-16g",
       {Nodes("nodes of 1 GPU", 16)},
       PizDaint},
  };
}

}  // namespace rehearse
