// Infrastructures of InfraGraph, in YAML and in JSON.
#include "tests/foreign/machines/infragraph_files.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/machines/infragraph/import_infragraph.h"
#include "tools/foreign/machines/infragraph/infragraph_export.h"

namespace rehearse {
namespace {

void ReadInfra(std::string_view input) {
  if (HasLarger(input, {"count"}, 60)) return;
  ImportInfraGraph(input, "infra.yaml", "");
}

std::vector<std::string> InfraSeeds() {
  return {kInfraClos, kInfraPair, ClusterToInfraGraph(TwoMachines()).text,
          "a: &x [1, {b: c}]\nd: *x\n? e\n: |-\n  text\n  more\n--- >\n folded\n...\n"};
}

std::vector<std::string> InfraWordList() {
  return {"devices:",    "components:", "instances:", "edges:", "links:",      "physical:",
          "bandwidth",   "latency",     "choice",     "custom", "device",      "xpu",
          "nic",         "port",        "switch",     "memory", "many2many",   "one2one",
          "[0:2]",       "[1]",         "[::2]",      "ep1",    "ep2",         "instance",
          "component",   "rehearse: ",  "kind=",      "node=",  "one_way=yes", "cables=2",
          "efficiency=", "drawn=yes",   "nvlink",     "pcie",   "network",     "device=h100",
          "&a ",         "*a",          "<<: ",       "!!str ", "|-\n",        "? ",
          "- ",          "\n",          "  ",         "{",      "}",           "[",
          "]",           ",",           "\"",         "---\n",  "...\n",       "null"};
}

const FuzzTargetRow kInfraRow({"infragraph", ReadInfra, InfraSeeds, InfraWordList});

}  // namespace
}  // namespace rehearse
