// Reads a machine from NCCL's topology XML (tools/foreign/machines/nccl/nccl_xml.h): dumps
// (NCCL_TOPO_DUMP_FILE), vendors' files that are only a PCI tree, RCCL's with xGMI.
// What becomes what, and what is filled in: tools/foreign/machines/machine_importer.h.
//
// Not in the file and so not in the model: whether GPUs may talk to each other over PCIe, Intel's
// overhead on that, GPUDirect.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

// `file` names the text in messages, and the cluster. `device` is what all GPUs are, if it is not
// "". Throws Error with file and line for text that is not such XML, contradicts itself or is out
// of range.
ImportedCluster ImportNcclTopology(std::string_view text, const std::string& file,
                                   const std::string& device = "");

}  // namespace rehearse
