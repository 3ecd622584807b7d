// Makes a cluster of one machine, or a few, from what NCCL's topology XML says
// (tools/foreign/machines/nccl/nccl_xml.h), or another file that was read into the same struct
// (tools/foreign/machines/hwloc/hwloc_xml.h).
//
// What becomes what, in NCCL's words:
//   <cpu>        a socket "node0/numaN"; all of a machine are linked pairwise, as NCCL does
//   <pci>        with something behind it: a PCIe switch; with a <gpu> or a graphics class: a
//                device; with a <nic> or a network class: a NIC (of several nets on one PCI device
//                each is a NIC, behind a common PCIe link)
//   <nvlink>     to a GPU: a link; to an NVSwitch, visible or not: all of them are one vertex
//   <xgmi>       a link; <c2c> a link between device and socket
//   <net>        a port to the vertex "fabric"
// Devices are ranked by `rank`, or if there is none by `dev`, or else by bus id, as NVML numbers
// them. Each host_hash is one machine, node0 if there is only one.
//
// What the file leaves open is filled in as NCCL would, or from the little there is, each time with
// a remark: link_speed (8 GT/s), link_width (16), a net's speed (10 Gbit/s), the class of a link's
// other end; the kind of a GPU (by PCI id, sm, gcn or model, else an A100), the port of a NIC that
// has no <net> (what its slot is made for), the class of a PCI device. Rates:
// tools/foreign/machines/import_rates.h.
#pragma once

#include <string>

#include "tools/foreign/machines/imported_cluster.h"
#include "tools/foreign/machines/nccl/nccl_xml.h"

namespace rehearse {

// `remarks` are those of the reader. `file` names the text in messages, and the cluster, `what`
// says what it is ("NCCL's topology XML"). `device` is what all GPUs are, if it is not "". Throws
// Error with file and line if something contradicts itself.
ImportedCluster ImportSystem(NcclSystem system, Remarks remarks, const std::string& file,
                             const char* what, const std::string& device);

}  // namespace rehearse
