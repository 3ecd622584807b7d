// Reads a machine from hwloc's XML (tools/foreign/machines/hwloc/hwloc_xml.h), as `lstopo --of xml`
// writes it. It becomes what NCCL's topology XML of the same machine becomes
// (tools/foreign/machines/machine_importer.h).
//
// Not in the file: whether GPUs may talk to each other over PCIe, GPUDirect; NVLinks and xGMI if
// hwloc was built without NVML or AMD SMI, which the remarks then say.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

// The arguments are those of ImportNcclTopology().
ImportedCluster ImportLstopo(std::string_view text, const std::string& file,
                             const std::string& device = "");

}  // namespace rehearse
