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
          R"(devices:
- {name: h, components: [{name: xpu, type: xpu}, {name: nic, type: nic}], links: [{name: bus}],
   connections: [xpu.0.bus.nic.0, xpu.1.bus.nic.0]}
instances: [{name: s, device: h}]
links: [{name: eth}]
connections: [s.0.nic.0.eth.s.1.nic.0]
)",
          "a: &x [1, {b: c}]\nd: *x\n? e\n: |-\n  text\n  more\n--- >\n folded\n...\n"};
}

std::vector<std::string> InfraWordList() {
  return {"connections:",
          "xpu.0.",
          "devices:",
          "components:",
          "instances:",
          "edges:",
          "links:",
          "physical:",
          "bandwidth",
          "latency",
          "choice",
          "custom",
          "device",
          "xpu",
          "nic",
          "port",
          "switch",
          "memory",
          "many2many",
          "one2one",
          "[0:2]",
          "[1]",
          "[::2]",
          "ep1",
          "ep2",
          "instance",
          "component",
          "rehearse: ",
          "kind=",
          "node=",
          "one_way=yes",
          "cables=2",
          "efficiency=",
          "drawn=yes",
          "nvlink",
          "pcie",
          "network",
          "device=h100",
          "&a ",
          "*a",
          "<<: ",
          "!!str ",
          "|-\n",
          "? ",
          "- ",
          "\n",
          "  ",
          "{",
          "}",
          "[",
          "]",
          ",",
          "\"",
          "---\n",
          "...\n",
          "null"};
}

const FuzzTargetRow kInfraRow({"infragraph", ReadInfra, InfraSeeds, InfraWordList});

}  // namespace
}  // namespace rehearse
