// NVIDIA's boxes and their relatives: NVSwitch, hybrid cube mesh, NVLink domains of a rack.
#pragma once

#include "topology/presets/node.h"

namespace rehearse {

// DGX A100: 2 AMD EPYC 7742, 8 A100 SXM4, 6 NVSwitches, 4 PCIe switch complexes with 2 GPUs and 2
// HDR NICs each (NVIDIA DGX A100 System Architecture white paper; which GPU shares a complex with
// which NIC as in `nvidia-smi topo -m`, NVIDIA/DCGM issue 149). The six NVSwitches are one vertex,
// a non-blocking plane.
NodeSpec DgxA100Node();

// DGX H100, H200: 2 Xeon 8480C, 8 GPUs with 18 NVLinks of 25 GB/s, each GPU with its
// ConnectX-7 (400 Gb/s) on a PCIe 5 switch port (NVIDIA DGX H100 System Architecture). DGX
// B200: NVLinks of 50 GB/s.
NodeSpec DgxH100Node();
NodeSpec DgxB200Node();
// H800: as H100 with 8 of the 18 NVLinks, 400 GB/s both ways together (Lenovo ThinkSystem product
// guide LP1814; DeepSeek-V3 Technical Report, arXiv 2412.19437, section 3.1: NVLink inside nodes of
// 8 and InfiniBand across; DeepEP's README: NICs of 400 Gb/s).
NodeSpec DgxH800Node();
// DGX B300: ConnectX-8 of 800 Gb/s on PCIe 6 (NVIDIA DGX B300 data sheet).
NodeSpec DgxB300Node();

// AWS p5: 8 H100, 32 EFA NICs of 100 Gb/s (aws.amazon.com/ec2/instance-types/p5).
NodeSpec AwsP5Node();

// Google A3 Mega and A3 High: 8 H100; 8 NICs of 200 Gb/s (GPUDirect-TCPXO), 4 (GPUDirect-TCPX)
// (Google Compute Engine documentation, GPU machine types).
NodeSpec GcpA3MegaNode();
NodeSpec GcpA3HighNode();

// AWS p4d and p4de: 8 A100 on NVSwitch; 4 PCIe switches with 2 GPUs and one 100 Gb/s EFA NIC each,
// PCIe 3 towards the host (aws-ofi-nccl, p4d-24xl-topo.xml, p4de-24xl-topo.xml).
NodeSpec AwsP4dNode();

// Google a2-megagpu-16g: 16 A100 40 GB on one NVSwitch plane, one 100 Gb/s NIC, reached through the
// host's memory (AutoDDL, section 5; Google Compute Engine documentation, A2 machine types).
NodeSpec GcpA2MegagpuNode();

// DGX-1 with V100: hybrid cube mesh of single and double NVLinks (`nvidia-smi topo -m`,
// microsoft/msccl tests and Microway), 4 PCIe 3 switches with 2 GPUs and one EDR NIC each, 2
// Xeon E5-2698 v4.
NodeSpec Dgx1V100Node();

// OneFlow's box: 8 V100 SXM2 in the same mesh, two Xeons of 24 threads, one EDR NIC on the first
// socket (`nvidia-smi topo -m`, Oneflow-Inc/DLPerf, GPT README; there the NIC is on the switch of
// GPUs 2 and 3, here on that of 0 and 1).
NodeSpec OneflowV100Node();

// GB200 NVL72: a rack is one machine here, an NVLink domain of 72 GPUs with 18 NVLinks of 50 GB/s
// each; 36 Grace CPUs with 2 GPUs and 2 ConnectX-7 (400 Gb/s) each (NVIDIA GB200 NVL72 product
// page; DGX GB200 user guide).
NodeSpec Nvl72Rack();
// GB300 NVL72: ConnectX-8 of 800 Gb/s (NVIDIA GB300 NVL72 product page).
NodeSpec Gb300Rack();

// Any number of GPUs on one NVSwitch plane, without NICs or host (ATP IC3 and IC5).
NodeSpec NvSwitchDomain(uint32_t devices, const ClusterLink& nvlinks);

// 12 NVLinks of 25 GB/s per direction from each GPU, striped over the six switches. Eight GPUs
// reach an all-reduce bus bandwidth of 229.35 GB/s of these 300 (VIA-Research/vTrain f8dda847,
// a100_allreduce_8gpu.csv, row of 1 GiB), in which every GPU sends at that rate.
ClusterLink A100ToNvSwitch();
// 18 of 25 GB/s.
ClusterLink H100ToNvSwitch();
// 18 of 50 GB/s.
ClusterLink B200ToNvSwitch();

}  // namespace rehearse
