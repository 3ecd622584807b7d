// A scenario's "cluster": a preset, its changes, a node and a fabric, a graph.
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/places.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

void ReadClusterText(std::string_view input) {
  if (NamesALargeMachine(input)) return;
  const JsonDocument document = JsonDocument::FromText(input, SourceDir() + "/scenarios/fuzz.json");
  ReadCluster(document.Root());
}

std::vector<std::string> ClusterSeeds() {
  std::vector<std::string> seeds = ShippedValues("cluster");
  seeds.insert(
      seeds.end(),
      {R"("dgx-a100:nodes=2")", R"({"preset": "perlmutter", "nodes": 4})",
       R"({"preset": "dgx-h100", "edits": [{"links": "node0/nic*", "bandwidth": "0.5x"}]})",
       R"({"name": "mine", "nodes": 4,
           "node": {"device": "a100-40g", "devices": 8, "nics": 4, "nvswitch": "300GBps",
                    "pcie": "25GBps", "nic": "25GBps"},
           "fabric": {"kind": "fat-tree", "ports": 8, "bandwidth": "25GBps", "latency": "1us"}})",
       R"({"name": "torus", "node": {"device": "h100", "devices": 1},
           "fabric": {"kind": "torus", "sizes": [4, 4], "bandwidth": "25GBps", "latency": "1us"}})"});
  return seeds;
}

std::vector<std::string> ClusterWords() { return SchemaWords("cluster"); }

const FuzzTargetRow kClusterRow({"cluster", ReadClusterText, ClusterSeeds, ClusterWords,
                                 FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
