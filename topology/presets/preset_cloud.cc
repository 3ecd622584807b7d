// Machines in the cloud. What joins them is not published in detail.
#include "topology/presets/link_rows.h"
#include "topology/presets/node_nvidia.h"
#include "topology/presets/preset_rows.h"

namespace rehearse {
namespace {

using Parameters = std::map<std::string, uint32_t>;

constexpr const char* kEfaSprays =
    "The fabric is one switch of full bandwidth: EFA sprays packets over all paths.";

MachineSpec AwsP4d(const Parameters& parameters) {
  return {"aws-p4d", AwsP4dNode(), parameters.at("nodes"), OneSwitch(), {kEfaSprays}, "efa"};
}
MachineSpec AwsP4de(const Parameters& parameters) {
  MachineSpec spec = AwsP4d(parameters);
  spec.name = "aws-p4de";
  return spec;
}

MachineSpec AwsP5(const Parameters& parameters) {
  return {"aws-p5",
          AwsP5Node(),
          parameters.at("nodes"),
          OneSwitch(),
          {kEfaSprays, "The 4 EFA NICs of a GPU are drawn as one."},
          "efa-p5"};
}

MachineSpec AwsP5en(const Parameters& parameters) {
  return {"aws-p5en",
          AwsP5Node(),
          parameters.at("nodes"),
          OneSwitch(),
          {kEfaSprays, "The 2 EFA NICs of a GPU are drawn as one."},
          "efa-p5en"};
}

MachineSpec AwsP6B200(const Parameters& parameters) {
  NodeSpec node = AwsP5Node();
  node.nvswitch = DgxB200Node().nvswitch;
  return {"aws-p6-b200", node, parameters.at("nodes"), OneSwitch(), {kEfaSprays}, "efa-p5en"};
}

// We assume a fat tree of 64-port switches of 400 Gb/s, as for DGX boxes.
ClosSpec NdrTree(bool rails) {
  ClosSpec fabric;
  fabric.radix = 64;
  fabric.rails = rails;
  fabric.cable = SwitchCable(400, kInfiniBandEfficiency);
  return fabric;
}

MachineSpec GcpA4(const Parameters& parameters) {
  return {"gcp-a4",
          DgxB200Node(),
          parameters.at("nodes"),
          NdrTree(true),
          {"The fabric is assumed: rails on a fat tree without oversubscription."}};
}

MachineSpec AzureNdH100(const Parameters& parameters) {
  return {"azure-nd-h100-v5",
          DgxH100Node(),
          parameters.at("nodes"),
          NdrTree(true),
          {"The fabric is assumed: rails on a fat tree of NDR switches without oversubscription."}};
}

MachineSpec OciH100(const Parameters& parameters) {
  return {"oci-h100",
          DgxH100Node(),
          parameters.at("nodes"),
          NdrTree(false),
          {"The fabric is assumed: a fat tree of RoCE switches without oversubscription.",
           "The 2 NICs of a GPU are drawn as one."}};
}

MachineSpec GcpA3Mega(const Parameters& parameters) {
  return {"gcp-a3-mega",
          GcpA3MegaNode(),
          parameters.at("nodes"),
          OneSwitch(),
          {"The fabric is one switch of full bandwidth."},
          "tcpxo"};
}
MachineSpec GcpA3High(const Parameters& parameters) {
  return {"gcp-a3-high",
          GcpA3HighNode(),
          parameters.at("nodes"),
          OneSwitch(),
          {"The fabric is one switch of full bandwidth."},
          "tcpx"};
}

// Each NUMA domain has 2 GPUs and 2 NICs on one PCIe switch (NCCL's ndv4-topo.xml), as a DGX A100
// has.
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
          {"The fabric is one switch of full bandwidth.",
           "All GPUs of a box share one NIC, through the host's memory.",
           "The NIC's efficiency (0.8) and the host are assumed."},
          "socket"};
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
      {"aws-p5",
       "AWS p5.48xlarge: 8 H100 on NVSwitch, 32 EFA NICs of 100 Gb/s",
       "aws.amazon.com/ec2/instance-types/p5; aws-ofi-nccl src/platform-aws.cpp; efficiencies as "
       "dgx-h100 and aws-p4d",
       "h100",
       {Nodes("instances of 8 GPUs")},
       AwsP5},
      {"aws-p5en",
       "AWS p5en.48xlarge: 8 H200 on NVSwitch, 16 EFA NICs of 200 Gb/s",
       "aws.amazon.com/ec2/instance-types/p5; efficiencies as aws-p5",
       "h200",
       {Nodes("instances of 8 GPUs")},
       AwsP5en},
      {"aws-p6-b200",
       "AWS p6-b200.48xlarge: 8 B200 on NVSwitch, 8 EFA NICs of 400 Gb/s",
       "aws.amazon.com/ec2/instance-types/p6; efficiencies as dgx-b200 and aws-p5",
       "b200",
       {Nodes("instances of 8 GPUs")},
       AwsP6B200},
      {"gcp-a4",
       "Google A4: 8 B200 on NVSwitch, 8 NICs of 400 Gb/s, RoCE",
       "Google Compute Engine documentation (a4-highgpu-8g); efficiencies as dgx-b200",
       "b200",
       {Nodes("instances of 8 GPUs")},
       GcpA4},
      {"azure-nd-h100-v5",
       "Azure ND H100 v5: 8 H100 on NVSwitch, 8 NDR NICs",
       "Microsoft Learn, ND-H100-v5 sizes; efficiencies as dgx-h100",
       "h100",
       {Nodes("instances of 8 GPUs")},
       AzureNdH100},
      {"oci-h100",
       "Oracle BM.GPU.H100.8: 8 H100 on NVSwitch, 16 RoCE NICs of 200 Gb/s",
       "Oracle Cloud documentation, GPU shapes; efficiencies as dgx-h100",
       "h100",
       {Nodes("boxes of 8 GPUs")},
       OciH100},
      {"gcp-a3-mega",
       "Google A3 Mega: 8 H100 on NVSwitch, 8 NICs of 200 Gb/s, TCPXO",
       "Google Compute Engine documentation; network: dstackai/dstack gcp.md",
       "h100",
       {Nodes("instances of 8 GPUs")},
       GcpA3Mega},
      {"gcp-a3-high",
       "Google A3 High: 8 H100 on NVSwitch, 4 NICs of 200 Gb/s, TCPX",
       "Google Compute Engine documentation; network: GoogleCloudPlatform/cluster-toolkit",
       "h100",
       {Nodes("instances of 8 GPUs")},
       GcpA3High},
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
       {Nodes("instances of 16 GPUs", 2), {"gpus", 1, 16, 16, "GPUs that an instance has"}},
       GcpA2},
  };
}

}  // namespace rehearse
