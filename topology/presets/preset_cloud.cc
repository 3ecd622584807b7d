// Machines of the clouds. What joins them is not published in detail.
#include "topology/presets/link_rows.h"
#include "topology/presets/node_nvidia.h"
#include "topology/presets/preset_rows.h"

namespace rehearse {
namespace {

using Parameters = std::map<std::string, uint32_t>;

MachineSpec AwsP4d(const Parameters& parameters) {
  return {"aws-p4d",
          AwsP4dNode(),
          parameters.at("nodes"),
          OneSwitch(),
          {"The fabric is one switch of full bandwidth: EFA sprays packets over all paths."}};
}
MachineSpec AwsP4de(const Parameters& parameters) {
  MachineSpec spec = AwsP4d(parameters);
  spec.name = "aws-p4de";
  return spec;
}

// Each NUMA domain with 2 GPUs and 2 NICs on one PCIe switch (NCCL's ndv4-topo.xml), as
// in a DGX A100.
MachineSpec AzureNdv4(const Parameters& parameters) {
  ClosSpec fabric;
  fabric.radix = 40;
  fabric.rails = true;
  fabric.cable = SwitchCable(200, kInfiniBandEfficiency);
  return {"azure-ndv4",
          DgxA100Node(),
          parameters.at("nodes"),
          fabric,
          {"The fabric is assumed: rails on a fat tree of HDR switches without oversubscription.",
           "The four NUMA domains are drawn as two sockets."}};
}

MachineSpec GcpA2(const Parameters& parameters) {
  NodeSpec node = GcpA2MegagpuNode();
  node.devices = parameters.at("gpus");
  return {"gcp-a2-megagpu-16g",
          node,
          parameters.at("nodes"),
          OneSwitch(),
          {"The fabric is one switch of full bandwidth; all GPUs of a box share one NIC, through "
           "the host's memory.",
           "The NIC's efficiency (0.8) and the host are assumed."}};
}

}  // namespace

std::vector<ClusterPreset> CloudPresets() {
  const char* aws =
      "aws-ofi-nccl p4d-24xl-topo.xml and p4de-24xl-topo.xml; EFA: awsome-distributed-training "
      "7217859f";
  return {
      {"aws-p4d",
       "AWS p4d.24xlarge: 8 A100 40 GB on NVSwitch, 4 EFA NICs of 100 Gb/s",
       aws,
       "a100-40g",
       {Nodes("instances of 8 GPUs")},
       AwsP4d},
      {"aws-p4de",
       "AWS p4de.24xlarge: 8 A100 80 GB on NVSwitch, 4 EFA NICs of 100 Gb/s",
       aws,
       "a100-80g",
       {Nodes("instances of 8 GPUs")},
       AwsP4de},
      {"azure-ndv4",
       "Azure ND A100 v4: 8 A100 40 GB on NVSwitch, 8 HDR NICs",
       "Azure ndv4-topo.xml; efficiencies as dgx-a100",
       "a100-40g",
       {Nodes("instances of 8 GPUs")},
       AzureNdv4},
      {"gcp-a2-megagpu-16g",
       "Google a2-megagpu-16g: 16 A100 40 GB on NVSwitch, one 100 Gb/s NIC",
       "AutoDDL (arXiv 2301.06813), section 5; Google Compute Engine documentation",
       "a100-40g",
       {Nodes("instances of 16 GPUs", 2),
        {"gpus", 1, 16, 16, "GPUs of an instance that are there"}},
       GcpA2},
  };
}

}  // namespace rehearse
