#include "tools/foreign/machines/hwloc/import_lstopo.h"

#include <utility>

#include "tools/foreign/machines/hwloc/hwloc_xml.h"
#include "tools/foreign/machines/machine_importer.h"

namespace rehearse {

ImportedCluster ImportLstopo(std::string_view text, const std::string& file,
                             const std::string& device) {
  Remarks remarks;
  NcclSystem system = ReadHwlocXml(text, file, remarks);
  return ImportSystem(std::move(system), std::move(remarks), file, "hwloc's XML", device);
}

}  // namespace rehearse
