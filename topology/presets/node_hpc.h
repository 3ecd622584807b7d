// The nodes of supercomputers.
#pragma once

#include "topology/presets/node.h"

namespace rehearse {

// Perlmutter, GPU nodes (NERSC): 1 AMD EPYC 7763, 4 A100 SXM4 with 4 NVLinks per pair, 4
// Slingshot-11 NICs, and no PCIe switch: GPUs and NICs hang on root ports of the socket
// (docs.nersc.gov/systems/perlmutter/architecture). The socket is drawn as its four NUMA quadrants
// with one GPU and one NIC each, all joined on the I/O die.
NodeSpec PerlmutterNode();

// Leonardo Booster (CINECA): 1 Xeon 8358, 4 A100 with 4 NVLinks per pair, 4 HDR100 ports on two
// dual-port NICs (docs.hpc.cineca.it, leonardo-supercomputer.cineca.eu/hpc-system).
NodeSpec LeonardoNode();

// Alps, quad GH200 (CSCS): 4 Grace-Hopper, 6 NVLinks (150 GB/s) per pair, each with its own
// Slingshot-11 NIC on its Grace; Graces joined all to all (Fusco et al., arXiv 2408.11556).
NodeSpec AlpsNode();

// Frontier (OLCF): 4 MI250X of two dies (GCDs) each, 1 EPYC 7A53, 4 Slingshot-11 NICs that hang on
// the GPU packages. Infinity Fabric of 50 GB/s per link: 4 inside a package, 1 or 2 between dies of
// different packages (OLCF Frontier user guide: 200 and 50 to 100 GB/s; which dies as in ROCm/rccl
// topo_8p_90a.xml), 36 GB/s from each die to the CPU. `slingshot`: the share of a NIC's 25 GB/s
// that RCCL reaches, which depends on its plugin for the network.
NodeSpec FrontierNode(double slingshot);

// Piz Daint, XC50 (CSCS): 1 Xeon E5-2690 v3, 1 P100 on PCIe 3, 1 Aries NIC (AutoDDL, section 5).
// NCCL reaches Aries through sockets, that is, through the host's memory.
NodeSpec PizDaintNode();

}  // namespace rehearse
