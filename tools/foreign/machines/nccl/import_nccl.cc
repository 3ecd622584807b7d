#include "tools/foreign/machines/nccl/import_nccl.h"

#include <utility>

#include "tools/foreign/machines/machine_importer.h"

namespace rehearse {

ImportedCluster ImportNcclTopology(std::string_view text, const std::string& file,
                                   const std::string& device) {
  Remarks remarks;
  NcclSystem system = ReadNcclXml(text, file, remarks);
  return ImportSystem(std::move(system), std::move(remarks), file, "NCCL's topology XML", device);
}

}  // namespace rehearse
