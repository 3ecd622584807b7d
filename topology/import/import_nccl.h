// Reads a machine from NCCL's topology XML (topology/import/nccl_xml.h): dumps
// (NCCL_TOPO_DUMP_FILE), vendors' files that are only a PCI tree, RCCL's with xGMI.
//
// What becomes what:
//   <cpu>        a socket "node0/numaN"; all of a machine are linked pairwise, as NCCL does
//   <pci>        with something behind it: a PCIe switch; with a <gpu> or a graphics class: a
//                device; with a <nic> or a network class: a NIC (of several nets on one PCI device
//                each is a NIC, behind a common PCIe link)
//   <nvlink>     to a GPU: a link; to an NVSwitch, visible or not: all of them are one vertex
//   <xgmi>       a link; <c2c> a link between device and socket
//   <net>        a port to the vertex "fabric"
// Devices are ranked by `rank`; without any, by `dev`, else by bus id, as NVML numbers them. One
// host_hash is one machine, node0 if there is only one.
//
// What the file leaves open is filled in as NCCL would, or from the little there is, and each
// filling is said in the remarks: link_speed (8 GT/s), link_width (16), a net's speed (10 Gbit/s),
// the class of a link's other end; the kind of a GPU (by PCI id, sm or gcn, else an A100), the port
// of a NIC that has no <net> (what its slot is made for), the class of a PCI device. Rates:
// topology/import/import_rates.h.
//
// Not in the file and so not in the model: whether GPUs may talk to each other over PCIe, Intel's
// overhead on that, GPUDirect.
#pragma once

#include <string>
#include <string_view>

#include "topology/import/imported_cluster.h"

namespace rehearse {

// `file` names the text in messages, and the cluster. `device` is what all GPUs are, if it
// is not "". Throws Error with file and line for what is no such XML, contradicts itself or
// is out of range.
ImportedCluster ImportNcclTopology(std::string_view text, const std::string& file,
                                   const std::string& device = "");

}  // namespace rehearse
