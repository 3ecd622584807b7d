// Stands in for tools/foreign in the program that a first build makes (rehearse_first in
// CMakeLists.txt): it says what is missing and how to have it.
#include "sim/base/error.h"
#include "tools/foreign/logs/nccl_tests/nccl_log.h"
#include "tools/foreign/machines/host_filter.h"
#include "tools/foreign/machines/hwloc/import_lstopo.h"
#include "tools/foreign/machines/ibnetdiscover/import_ibnet.h"
#include "tools/foreign/machines/infragraph/import_infragraph.h"
#include "tools/foreign/machines/infragraph/infragraph_export.h"
#include "tools/foreign/machines/nccl/import_nccl.h"
#include "tools/foreign/machines/nccl/nccl_graph.h"
#include "tools/foreign/machines/slurm/import_slurm.h"
#include "tools/foreign/machines/smi/import_smi.h"
#include "tools/foreign/runs/maxtext/maxtext_import.h"
#include "tools/foreign/runs/megatron/megatron_import.h"
#include "tools/foreign/runs/torchtitan/torchtitan_import.h"
#include "tools/foreign/traces/chakra/chakra_read.h"
#include "tools/foreign/traces/chakra/chakra_write.h"
#include "tools/foreign/traces/goal/goal.h"
#include "tools/foreign/traces/kineto/kineto_read.h"
#include "tools/foreign/traces/kineto/kineto_write.h"

namespace rehearse {
namespace {

[[noreturn]] void RefuseFormats() {
  throw Error(
      "this is the program of a first build, which has no formats of other programs; "
      "tools/rehearse "
      "builds the whole one when it is asked for this, and so does the target rehearse");
}

}  // namespace

bool LooksLikeNcclLog(std::string_view) { RefuseFormats(); }
NcclLog ReadNcclLog(std::string_view, const std::string&, std::optional<CollectiveKind>,
                    std::optional<uint32_t>) {
  RefuseFormats();
}

ImportedCluster ImportLstopo(std::string_view, const std::string&, const std::string&) {
  RefuseFormats();
}
HostFilter::HostFilter(const std::string&) { RefuseFormats(); }
ImportedCluster ImportIbnetdiscover(std::string_view, const std::string&, const std::string&,
                                    const HostFilter&) {
  RefuseFormats();
}
ImportedCluster ImportInfraGraph(std::string_view, const std::string&, const std::string&) {
  RefuseFormats();
}
InfraGraphExport ClusterToInfraGraph(const Cluster&) { RefuseFormats(); }
ImportedCluster ImportNcclTopology(std::string_view, const std::string&, const std::string&) {
  RefuseFormats();
}
NcclGraphRings ReadNcclGraph(std::string_view, const std::string&) { RefuseFormats(); }
ImportedCluster ImportSlurm(std::string_view, const std::string&, const std::string&,
                            const HostFilter&) {
  RefuseFormats();
}
ImportedCluster ImportSmiTopology(std::string_view, const std::string&, const std::string&) {
  RefuseFormats();
}

ImportedScenario ImportMegatron(std::string_view, const std::string&, const std::string&,
                                const RunSettings&) {
  RefuseFormats();
}
ImportedScenario ImportMaxText(std::string_view, const std::string&, const std::string&,
                               const RunSettings&) {
  RefuseFormats();
}
ImportedScenario ImportTorchtitan(std::string_view, const std::string&, const std::string&,
                                  const RunSettings&) {
  RefuseFormats();
}

ImportedChakra ImportChakra(const std::vector<std::string>&) { RefuseFormats(); }
ChakraFiles WriteChakra(const Schedule&, const ScheduleTitle&, const ChakraDevices&,
                        const std::string&) {
  RefuseFormats();
}
GoalText WriteGoal(const Schedule&, Router&, uint32_t, const NcclSettings&, const ComputeTimes&) {
  RefuseFormats();
}
ImportedKineto ImportKineto(const std::vector<std::string>&, KinetoResult, const KinetoOptions&) {
  RefuseFormats();
}
ImportedKineto ImportNsys(const std::vector<std::string>&, KinetoResult, const KinetoOptions&) {
  RefuseFormats();
}
std::string KinetoFileName(uint32_t) { RefuseFormats(); }
std::string KinetoTraceOf(const Schedule&, const Timeline&, const TraceNames&, uint32_t) {
  RefuseFormats();
}

}  // namespace rehearse
