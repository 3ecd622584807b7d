#include "tools/import_machine.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_parse.h"
#include "sim/base/say.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/machines/astra_sim/import_network.h"
#include "tools/foreign/machines/hwloc/import_lstopo.h"
#include "tools/foreign/machines/ibnetdiscover/import_ibnet.h"
#include "tools/foreign/machines/infragraph/import_infragraph.h"
#include "tools/foreign/machines/nccl/import_nccl.h"
#include "tools/foreign/machines/slurm/import_slurm.h"
#include "tools/foreign/machines/smi/import_smi.h"
#include "tools/foreign_kind.h"
#include "topology/devices/device.h"
#include "topology/files/cluster_export.h"
#include "topology/files/cluster_file.h"

namespace rehearse {

ImportedCluster ImportMachine(const std::string& kind, const std::string& file,
                              const std::string& device) {
  CHECK(kind == "nccl" || kind == "smi" || kind == "lstopo" || kind == "infragraph" ||
        kind == "astra-sim");
  const std::string name = InputName(file);
  const std::string text = ReadInputFile(file);
  if (kind == "infragraph") return ImportInfraGraph(text, name, device);
  if (kind == "astra-sim") return ImportAstraNetwork(text, name, device);
  if (kind == "lstopo") return ImportLstopo(text, name, device);
  return kind == "nccl" ? ImportNcclTopology(text, name, device)
                        : ImportSmiTopology(text, name, device);
}

ImportedCluster ImportFabric(const std::string& kind, const std::string& file,
                             const std::string& node, const std::string& hosts) {
  CHECK(kind == "slurm" || kind == "ibnetdiscover");
  const std::string name = InputName(file);
  const std::string text = ReadInputFile(file);
  const HostFilter filter(hosts);
  return kind == "slurm" ? ImportSlurm(text, name, node, filter)
                         : ImportIbnetdiscover(text, name, node, filter);
}

std::unique_ptr<Cluster> ReadClusterOrDump(const std::string& text, const ReadOptions& options) {
  const std::optional<std::string> kind = ForeignKind(text);
  if (!kind || !IsForeignMachine(*kind)) return ReadClusterArgument(text, options);
  const bool is_fabric = *kind == "slurm" || *kind == "ibnetdiscover";
  ImportedCluster imported =
      is_fabric ? ImportFabric(*kind, text, "") : ImportMachine(*kind, text, "");
  for (const std::string& remark : imported.remarks) Say(VisibleText(remark));
  return std::move(imported.cluster);
}

Taken TakenDevice() {
  Taken taken = TakenName({});
  for (const DeviceSpec& device : KnownDevices()) taken.names.push_back(device.name);
  taken.only_names = false;
  return taken;
}

std::string ClusterFileText(const Cluster& cluster, const std::string& routed_as) {
  std::string text = ClusterToText(cluster, routed_as);
  if (text.size() > kLargestJson) {
    throw Error(
        fmt::format("the cluster file would have {}, of which only {} could be read again; a "
                    "scenario can name the preset itself",
                    Print(Bytes(static_cast<double>(text.size()))),
                    Print(Bytes(static_cast<double>(kLargestJson)))));
  }
  return text;
}

}  // namespace rehearse
