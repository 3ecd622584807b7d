#include "topology/import/import_lstopo.h"

#include <utility>

#include "topology/import/hwloc_xml.h"
#include "topology/import/machine_importer.h"

namespace rehearse {

ImportedCluster ImportLstopo(std::string_view text, const std::string& file,
                             const std::string& device) {
  Remarks remarks;
  NcclSystem system = ReadHwlocXml(text, file, remarks);
  return ImportSystem(std::move(system), std::move(remarks), file, "hwloc's XML", device);
}

}  // namespace rehearse
