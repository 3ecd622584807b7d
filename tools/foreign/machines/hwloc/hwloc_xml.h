// hwloc's XML (`lstopo --of xml`, versions 1 and 2) as the struct that NCCL's becomes
// (tools/foreign/machines/nccl/nccl_xml.h), checked.
//
//   <topology version="2.0">
//     <object type="Machine"> <info name= value=/>
//       <object type="Package"> <object type="NUMANode" os_index=/>  (1: a Socket in a NUMANode)
//         <object type="Bridge" bridge_type="0-1">                   host bridge
//           <object type="Bridge" bridge_type="1-1" pci_busid= pci_link_speed=>   a port of a root,
//             <object type="PCIDev" pci_busid= pci_type= pci_link_speed=>         or of a switch
//               <object type="OSDev" name="nvml0" gp_index=/> …
//     <distances2 name="NVLinkBandwidth" nbobjs=> <indexes>…</indexes> <u64values>…</u64values>
//
// What becomes what:
//   NUMANode   a <cpu>, where a GPU or NIC hangs on it: that of the nearest object that has one
//   Bridge     every second one in a chain is a switch's upper port, a <pci>; those in between are
//              ports of the host or of a switch, which NCCL leaves out too
//   PCIDev     of NVIDIA, AMD, or with a cudaN, nvmlN, rsmiN or zeN: a <gpu>; if some have such a
//              name, others are left out. With an InfiniBand or RoCE device: a <nic>; if there is
//              none, with any network class
//   distances  NVLinkBandwidth and XGMIBandwidth: <nvlink> and <xgmi>, to GPUs, NVSwitches and
//              processors
//   CPUVendor, CPUFamilyNumber, CPUModelNumber, Architecture: the processor
//
// pci_link_speed is in GB/s without a width; of a link's two ends the larger one counts. hwloc does
// not say how fast a network port is: we take what its slot is made for, with a remark. The remarks
// also say what is left out.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/machines/imported_cluster.h"
#include "tools/foreign/machines/nccl/nccl_xml.h"

namespace rehearse {

NcclSystem ReadHwlocXml(std::string_view text, const std::string& file, Remarks& remarks);

}  // namespace rehearse
